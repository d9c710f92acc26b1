"""The programs: built here, or taken from where they are."""
import os
import pathlib
import stat
import subprocess

from . import layout


def binaries(kind, folder=None):
    """The folder of the programs. `kind` is debug, release or none; a release needs no Swift where it runs."""
    if kind == "none":
        found = pathlib.Path(folder or layout.ROOT / ".build" / "debug")
    else:
        options = ["--configuration", kind, *(["--static-swift-stdlib"] if kind == "release" else [])]
        for program in layout.PROGRAMS:
            _run(["swift", "build", *options, "--product", program])
        found = pathlib.Path(_run(["swift", "build", *options, "--show-bin-path"], capture_output=True).stdout.strip())
    missing = [name for name in layout.PROGRAMS if not (found / name).is_file()]
    if missing:
        raise SystemExit(f"{' and '.join(missing)} cannot be found in {found}. Build first, or name another folder with "
                         "--binaries.")
    for name in layout.PROGRAMS:
        _check(found / name)
    return _stripped(found) if kind == "release" else found


def _check(program):
    """Root runs the helper, for the completions, and installs both for everybody."""
    for path in (program, program.parent):
        facts = path.stat()
        if os.geteuid() == 0 and facts.st_mode & stat.S_IWOTH and not facts.st_mode & stat.S_ISVTX:
            raise SystemExit(f"{path} can be changed by other users (mode {stat.S_IMODE(facts.st_mode):04o}). Look whether one "
                             f"has, and run: chmod o-w '{path}'")


def _stripped(folder):
    """Without what only a debugger reads: a fifth of the size."""
    place = layout.ROOT / ".build" / "stripped"
    place.mkdir(parents=True, exist_ok=True)
    for program in layout.PROGRAMS:
        _run(["strip", "--strip-all", "-o", str(place / program), str(folder / program)])
    return place


def _run(command, **more):
    try:
        return subprocess.run(command, cwd=layout.ROOT, check=True, text=True, **more)
    except FileNotFoundError:
        raise SystemExit(f"The command `{command[0]}` was not found. Install the Swift toolchain and binutils, or give built "
                         "programs with --build none --binaries FOLDER.") from None
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"`{' '.join(command)}` ended with {error.returncode}. Nothing was installed.") from None
