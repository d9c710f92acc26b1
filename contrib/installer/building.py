"""Builds the programs, or finds existing ones."""
import os
import pathlib
import stat
import subprocess

from . import layout

PROGRAMS = layout.PROGRAMS + layout.INTERNAL
# The record of contrib/linking/order.
ORDER = layout.CONTRIB / "linking" / "functions.order"


def options(kind):
    """Returns the options of `swift build`. In a release, functions of which the order is recorded are placed in that order."""
    if kind == "debug":
        return ["--configuration", "debug"]
    placing = ["-Xswiftc", "-Xfrontend", "-Xswiftc", "-function-sections", "-Xlinker", f"--symbol-ordering-file={ORDER}",
               "-Xlinker", "--no-warn-symbol-ordering"]
    return ["--configuration", "release", "--static-swift-stdlib", "--disable-local-rpath", *(placing if ORDER.is_file() else [])]


def binaries(kind, folder=None):
    """Returns the directory of the programs. `kind` is debug, release or none; release programs run without Swift's libraries."""
    if kind == "none":
        found = pathlib.Path(folder or layout.ROOT / ".build" / "debug")
    else:
        for program in PROGRAMS:
            _run(["swift", "build", *options(kind), "--product", program])
        found = pathlib.Path(_run(["swift", "build", *options(kind), "--show-bin-path"], capture_output=True).stdout.strip())
    missing = [name for name in PROGRAMS if not (found / name).is_file()]
    if missing:
        raise SystemExit(f"{' and '.join(missing)} cannot be found in {found}; build first, or name another directory with "
                         "--binaries")
    for name in PROGRAMS:
        _check(found / name)
    return _stripped(found) if kind == "release" else found


def _check(program):
    """Exits if another user could have changed a program. Root runs `watchword` for its completions, and installs for all users."""
    for path in (program, program.parent):
        facts = path.stat()
        # guard: install-binaries
        if os.geteuid() == 0 and facts.st_mode & stat.S_IWOTH and not facts.st_mode & stat.S_ISVTX:
            raise SystemExit(f"{path} can be changed by other users (mode {stat.S_IMODE(facts.st_mode):04o}); check "
                             f"its contents, and run: chmod o-w '{path}'")


def _stripped(folder):
    """Strips debugging symbols, which reduces the size to a fifth, and comments of compilers."""
    place = layout.ROOT / ".build" / "stripped"
    place.mkdir(parents=True, exist_ok=True)
    for program in PROGRAMS:
        _run(["strip", "--strip-all", "--remove-section=.comment", "-o", str(place / program), str(folder / program)])
    return place


def _run(command, **more):
    try:
        return subprocess.run(command, cwd=layout.ROOT, check=True, text=True, **more)
    except FileNotFoundError:
        raise SystemExit(f"command not found: {command[0]}; install the Swift toolchain and binutils, or use existing "
                         "programs with --build none --binaries DIR") from None
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"`{' '.join(command)}` exited with {error.returncode}; nothing was installed") from None
