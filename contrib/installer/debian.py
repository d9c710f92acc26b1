"""Builds the Debian package and its source package, from the files in contrib/debian.

The package contains everything, including the agent, whose libraries are only recommended.
"""
import gzip
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import textwrap

from . import building, layout
from .installation import Installation

# In a source package the files of contrib/debian are in debian, where they can be changed.
CONTROL = next(folder for folder in (layout.ROOT / "debian", layout.CONTRIB / "debian") if folder.exists())
# Copies of the Swift packages on which the programs depend; only in a source package. Package.swift names this folder, too.
DEPENDENCIES = layout.ROOT / "Dependencies"


def entries(binaries):
    """Returns the entries for /usr, changed as Debian's policy requires: compressed manual pages, changelog, copyright."""
    folders = layout.Folders.of_package()
    found = []
    for entry in layout.entries(folders, binaries):
        name = os.path.basename(entry.path)
        if name == "LICENSE":
            continue
        if name == "CHANGELOG.md":
            found.append(layout.Entry(f"{folders.documents}/changelog.gz", compressed(entry.content)))
        elif "/share/man/" in entry.path:
            found.append(layout.Entry(entry.path + ".gz", compressed(entry.content)))
        else:
            found.append(entry)
    found.append(layout.Entry(f"{folders.documents}/changelog.Debian.gz", compressed((CONTROL / "changelog").read_bytes())))
    found.append(layout.Entry(f"{folders.documents}/copyright", (CONTROL / "copyright").read_bytes()))
    # The Apache License demands this file of a package that contains another's code.
    found += [layout.Entry(f"{folders.documents}/{path.split('/')[1]}/NOTICE.txt", file.read_bytes())
              for path, file in _dependencies() if path.count("/") == 2 and path.endswith("/NOTICE.txt")]
    found.append(layout.Entry("/usr/share/lintian/overrides/watchword", (CONTROL / "watchword.lintian-overrides").read_bytes()))
    return found


def version():
    """Returns the version of the first entry in debian/changelog. Its upstream part must be that of the programs."""
    found = _output(["dpkg-parsechangelog", "-l", str(CONTROL / "changelog"), "-S", "Version"]).strip()
    if found.rpartition("-")[0] != layout.version():
        raise SystemExit(f"{CONTROL / 'changelog'} begins with version {found}, but the programs have version {layout.version()}; "
                         "add an entry to the changelog")
    return found


def compressed(content):
    """Compresses reproducibly: the result does not contain the time."""
    return gzip.compress(content, 9, mtime=0)


def build(binaries, output, is_release):
    """Writes the package into the folder `output`; returns its path."""
    with tempfile.TemporaryDirectory(prefix="watchword-deb-") as folder:
        root = pathlib.Path(folder) / "root"
        files = entries(binaries)
        Installation(root, "/.list", ["/"]).install(files)
        (root / ".list").unlink()
        root.chmod(0o755)
        control = root / "DEBIAN"
        control.mkdir(mode=0o755)
        (control / "conffiles").write_text("".join(f"{one.path}\n" for one in files if one.path.startswith("/etc/")))
        (control / "md5sums").write_text("".join(
            f"{hashlib.md5(one.content, usedforsecurity=False).hexdigest()}  {one.path[1:]}\n"
            for one in sorted(files, key=lambda one: one.path) if not one.link and not one.path.startswith("/etc/")))
        variables = pathlib.Path(folder) / "substvars"
        variables.write_text(f"shlibs:Depends={_libraries(pathlib.Path(folder), root, is_release)}\n")
        _output(["dpkg-gencontrol", "-pwatchword", f"-P{root}", f"-c{CONTROL / 'control'}", f"-l{CONTROL / 'changelog'}", f"-T{variables}",
                 f"-f{folder}/files", f"-v{version()}", f"-O{control / 'control'}"], cwd=folder)
        architecture = _output(["dpkg", "--print-architecture"]).strip()
        package = pathlib.Path(output) / f"watchword_{version()}_{architecture}.deb"
        package.parent.mkdir(parents=True, exist_ok=True)
        _output(["dpkg-deb", "--root-owner-group", "--build", *(["-Zxz"] if is_release else ["-Zgzip", "-z1"]),
                 str(root), str(package)])
        return package


def _libraries(folder, root, is_release):
    """Returns the packages of the libraries that the programs are linked with, as a list of dependencies. A debug build also needs
    Swift's libraries, which are in no package. dpkg-shlibdeps examines only symbols, but packed relocations (DT_RELR) need version
    2.36 of the C library, too."""
    (folder / "debian").mkdir()
    (folder / "debian" / "control").write_text("Source: watchword\n\nPackage: watchword\nArchitecture: any\n")
    programs = [str(root / "usr" / "bin" / name) for name in layout.PROGRAMS]
    programs += [str(root / "usr" / "lib" / "watchword" / name) for name in layout.INTERNAL]
    text = _output(["dpkg-shlibdeps", "-O", *([] if is_release else ["--ignore-missing-info"]), *programs], cwd=folder)
    found = re.search("^shlibs:Depends=(.*)$", text, re.MULTILINE).group(1)
    packed = any("(RELR)" in _output(["readelf", "--dynamic", "--wide", program]) for program in programs)
    return f"{found}, libc6 (>= 2.36)" if packed else found


def build_source(output):
    """Writes the source package into the folder `output`; returns the path of its .dsc file. Its original archive contains the files
    that git knows, with their present contents, and the Swift packages on which they depend: it is built without a network."""
    output = pathlib.Path(output).resolve()
    output.mkdir(parents=True, exist_ok=True)
    name = f"watchword-{layout.version()}"
    date = int(_output(["dpkg-parsechangelog", "-l", str(CONTROL / "changelog"), "-S", "Timestamp"]))
    with tempfile.TemporaryDirectory(prefix="watchword-source-") as folder:
        root = pathlib.Path(folder) / name
        for file in [*_sources(), *_dependencies()]:
            copy = root / file[0]
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file[1], copy, follow_symlinks=False)

        def reproducible(member):
            member.uid = member.gid = 0
            member.uname = member.gname = "root"
            member.mtime, member.mode = date, 0o755 if member.mode & 0o100 else 0o644
            return member
        with tarfile.open(output / f"watchword_{layout.version()}.orig.tar.xz", "w:xz", preset=3) as archive:
            archive.add(root, name, filter=reproducible)  # tarfile sorts the names.
        shutil.copytree(CONTROL, root / "debian", ignore=shutil.ignore_patterns("files"))
        _output(["dpkg-source", "--build", str(root)], cwd=output)
    return output / f"watchword_{version()}.dsc"


def _sources():
    """Returns the files of the source, as pairs of relative path and path."""
    if (layout.ROOT / ".git").exists():
        listed = _output(["git", "ls-files", "-z"], cwd=layout.ROOT).split("\0")[:-1]
        listed.append(str(building.ORDER.relative_to(layout.ROOT)))
    else:
        # A source package has no repository.
        files = (file.relative_to(layout.ROOT) for file in layout.ROOT.rglob("*") if file.is_symlink() or file.is_file())
        listed = [str(file) for file in files if not file.parts[0].startswith((".build", ".pc"))
                  and file.parts[0] not in ("debian", "Dependencies") and not {"__pycache__", ".build-locale"} & {*file.parts}]
    return [(one, layout.ROOT / one) for one in listed if os.path.lexists(layout.ROOT / one)]


def _dependencies():
    """Returns the files of the Swift packages in the same way."""
    folder = DEPENDENCIES
    if not folder.exists():
        folder = layout.ROOT / ".build" / "checkouts"
        if not folder.exists():
            _output(["swift", "package", "resolve"], cwd=layout.ROOT)
    found = sorted(file for file in folder.rglob("*") if file.is_symlink() or file.is_file())
    return [(f"Dependencies/{file.relative_to(folder)}", file) for file in found if ".git" not in file.relative_to(folder).parts]


def _output(command, **more):
    try:
        done = subprocess.run(command, capture_output=True, text=True, **more)
    except FileNotFoundError:
        raise SystemExit(f"command not found: {command[0]}; install the package dpkg-dev") from None
    if done.returncode != 0:
        raise SystemExit(f"{command[0]} exited with {done.returncode}:\n{textwrap.indent(done.stderr.strip(), '  ')}")
    return done.stdout
