"""The Debian package: one for everything, the agent included, whose libraries are only recommended."""
import gzip
import os
import pathlib
import re
import subprocess
import tempfile
import textwrap

from . import layout
from .installation import Installation

CONTROL = layout.CONTRIB / "debian"
PROFILE = "/etc/apparmor.d/usr.bin.watchwordd"


def entries(binaries):
    """As for /usr, with what Debian's policy asks for: compressed pages, changelog, copyright."""
    folders = layout.Folders.of("/usr")
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
    changelog = (CONTROL / "changelog").read_text().replace("@version@", debian_version())
    found.append(layout.Entry(f"{folders.documents}/changelog.Debian.gz", compressed(changelog.encode())))
    found.append(layout.Entry(f"{folders.documents}/copyright", (CONTROL / "copyright").read_bytes()))
    found.append(layout.Entry(PROFILE, (layout.CONTRIB / "apparmor" / os.path.basename(PROFILE)).read_bytes()))
    return found


def debian_version():
    return layout.version() + "-1"


def compressed(content):
    """The same bytes at any time."""
    return gzip.compress(content, 9, mtime=0)


def build(binaries, output, is_release):
    """Writes the package into the folder `output`; returns its path."""
    with tempfile.TemporaryDirectory(prefix="watchword-deb-") as folder:
        root = pathlib.Path(folder) / "root"
        files = entries(binaries)
        Installation(root, "/.list", ["/"]).install(files)
        (root / ".list").unlink()
        root.chmod(0o755)
        (root / "DEBIAN").mkdir(mode=0o755)
        architecture = _output(["dpkg", "--print-architecture"]).strip()
        size = sum(-(-len(one.content) // 1024) for one in files)
        control = (CONTROL / "control").read_text()
        for name, value in {"version": debian_version(), "architecture": architecture, "size": str(size),
                            "depends": _libraries(pathlib.Path(folder), root, is_release)}.items():
            control = control.replace(f"@{name}@", value)
        (root / "DEBIAN" / "control").write_text(control)
        (root / "DEBIAN" / "conffiles").write_text("".join(f"{one.path}\n" for one in files if one.path.startswith("/etc/")))
        package = pathlib.Path(output) / f"watchword_{debian_version()}_{architecture}.deb"
        package.parent.mkdir(parents=True, exist_ok=True)
        _output(["dpkg-deb", "--root-owner-group", "--build", "-Zxz" if is_release else "-Znone",
                 str(root), str(package)])
        return package


def _libraries(folder, root, is_release):
    """What the programs are linked with, by the packages that it comes from. A debug build needs Swift's libraries, too, which no
    package has."""
    (folder / "debian").mkdir()
    (folder / "debian" / "control").write_text("Source: watchword\n\nPackage: watchword\nArchitecture: any\n")
    programs = [str(root / "usr" / "bin" / name) for name in layout.PROGRAMS]
    text = _output(["dpkg-shlibdeps", "-O", *([] if is_release else ["--ignore-missing-info"]), *programs], cwd=folder)
    return re.search("^shlibs:Depends=(.*)$", text, re.MULTILINE).group(1)


def _output(command, **more):
    try:
        done = subprocess.run(command, capture_output=True, text=True, **more)
    except FileNotFoundError:
        raise SystemExit(f"The command {command[0]} was not found. Install the package dpkg-dev.") from None
    if done.returncode != 0:
        raise SystemExit(f"{command[0]} ended with {done.returncode}:\n{textwrap.indent(done.stderr.strip(), '  ')}")
    return done.stdout
