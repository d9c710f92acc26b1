"""What is installed where: a list of files for one prefix, as values. Nothing is written here."""
import dataclasses
import os
import pathlib
import re
import subprocess
import unicodedata

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONTRIB = ROOT / "contrib"
PROGRAMS = ["watchwordd", "watchword"]
# Other names of the helper, under which git and others find it.
LINKS = ["git-credential-watchword", "watchword-askpass"]
# Specifiers and quotes of systemd.unit(5), what the Desktop Entry Specification reserves in Exec, and the marks of shells.
_MARKS = set("%\"'\\$`><~|&;*?#()[]{}!^")


@dataclasses.dataclass(frozen=True)
class Entry:
    """One file below the root of the system: bytes, or where a link leads."""
    path: str
    content: bytes = b""
    mode: int = 0o644
    link: str | None = None


@dataclasses.dataclass(frozen=True)
class Folders:
    """Absolute, as the installed system has them."""
    prefix: str
    units: str
    zsh: str
    # Of desktops, for what starts with the session.
    autostart: str

    @staticmethod
    def of(prefix, home=None):
        """`home` is given for an installation for one user."""
        if home is not None:
            configuration = os.environ.get("XDG_CONFIG_HOME", "")
            # XDG Base Directory Specification: a path that is relative is ignored.
            configuration = configuration.rstrip("/") if os.path.isabs(configuration) else f"{home}/.config"
            return Folders(prefix, f"{configuration}/systemd/user", f"{prefix}/share/zsh/site-functions", f"{configuration}/autostart")
        return Folders(prefix, f"{prefix}/lib/systemd/user",
                       f"{prefix}/share/zsh/" + ("vendor-completions" if prefix == "/usr" else "site-functions"),
                       "/etc/xdg/autostart")

    @property
    def all(self):
        """All that is installed is in one of them."""
        return [self.prefix, self.units, self.zsh, self.autostart]

    def problem(self):
        """Why nothing can be installed there; None where it can. Units, entries of the desktop and shells read the paths, each
        with marks of its own."""
        for path in self.all:
            if os.path.normpath(path) != path or path in ("/", "//") or path.startswith("//"):
                return f"{path!r} is no folder to install into: give the absolute path of one below /"
            for character in path:
                if character in _MARKS or unicodedata.category(character)[0] in "CZ":
                    name = unicodedata.name(character, f"U+{ord(character):04X}")
                    return (f"{path!r} has the character {character!r} ({name}), which means something else in units, entries of "
                            "the desktop or lists; choose another --prefix")
        return None

    @property
    def programs(self):
        return f"{self.prefix}/bin"

    @property
    def own(self):
        return f"{self.prefix}/share/watchword"

    @property
    def documents(self):
        return f"{self.prefix}/share/doc/watchword"


def version():
    text = (ROOT / "Sources/WatchwordProtocol/Version.swift").read_text()
    return re.search(r'current = "([^"]+)"', text).group(1)


def entries(folders, binaries):
    """Everything but what only a Debian package has. `binaries` is the folder of the built programs."""
    found = [Entry(f"{folders.programs}/{name}", (pathlib.Path(binaries) / name).read_bytes(), 0o755) for name in PROGRAMS]
    found += [Entry(f"{folders.programs}/{name}", link="watchword") for name in LINKS]
    found += _completions(folders, binaries)
    for page in sorted((CONTRIB / "man").glob("*.[1-8]")):
        found.append(Entry(f"{folders.prefix}/share/man/man{page.suffix[1:]}/{page.name}", page.read_bytes()))
    for unit in [*_files(CONTRIB / "systemd"), *sorted((CONTRIB / "agent").glob("*.service"))]:
        found.append(Entry(f"{folders.units}/{unit.name}", _with_paths(unit, folders)))
    found += _agent(folders)
    found += _desktop(folders)
    for file in _files(CONTRIB / "clients", recursive=True):
        found.append(Entry(f"{folders.own}/clients/{file.relative_to(CONTRIB / 'clients')}", file.read_bytes(), _mode(file)))
    for name in ["README.md", "SECURITY.md", "CHANGELOG.md", "LICENSE", "Protocol/SPECIFICATION.md", "Protocol/openrpc.json",
                 "contrib/AFAR.md", *(f"contrib/docs/{page.name}" for page in sorted((CONTRIB / "docs").glob("*.md")))]:
        found.append(Entry(f"{folders.documents}/{pathlib.Path(name).name}", (ROOT / name).read_bytes()))
    return found


def _completions(folders, binaries):
    places = {"bash": f"{folders.prefix}/share/bash-completion/completions/watchword", "zsh": f"{folders.zsh}/_watchword",
              "fish": f"{folders.prefix}/share/fish/vendor_completions.d/watchword.fish"}
    found = []
    for shell, path in places.items():
        made = subprocess.run([pathlib.Path(binaries) / "watchword", "--generate-completion-script", shell],
                              capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
        if made.returncode != 0 or not made.stdout:
            raise SystemExit(f"The completions for {shell} could not be made: {made.stderr.decode(errors='replace').strip()}")
        found.append(Entry(path, _terminating(made.stdout) if shell == "fish" else made.stdout))
    return found


def _terminating(script):
    """The completions for fish, without the endless loop that the generator (swift-argument-parser 1.8) writes: it parses again, and
    with the same result, after an option that is unknown, or that fish's argparse cannot name (`-#`).
    """
    script = re.sub(rb"(?m)^( *argparse -sn .*)$", rb"\1; or break", script)
    return script.replace(b"'#/progress-bar'", b"'progress-bar'").replace(b" # progress-bar'", b" progress-bar'")


def _agent(folders):
    """A program with its Python package beside it, and a link to it: the interpreter looks behind the link."""
    agent = CONTRIB / "agent"
    if not (agent / "watchword-agent").exists():
        return []
    inside = f"{folders.prefix}/lib/watchword/agent"
    found = [Entry(f"{inside}/watchword-agent", (agent / "watchword-agent").read_bytes(), 0o755),
             Entry(f"{folders.programs}/watchword-agent", link="../lib/watchword/agent/watchword-agent")]
    for file in _files(agent / "watchword_agent", recursive=True):
        found.append(Entry(f"{inside}/watchword_agent/{file.relative_to(agent / 'watchword_agent')}", file.read_bytes()))
    return found


def _desktop(folders):
    """Entries for the desktop that name a program are left out where that program is not there."""
    share = {".desktop": "applications", ".xml": "metainfo", ".svg": "icons/hicolor/scalable/apps"}
    has_agent = (CONTRIB / "agent" / "watchword-agent").exists()
    found = []
    for file in _files(CONTRIB / "desktop"):
        if has_agent or file.suffix == ".svg":
            found.append(Entry(f"{folders.prefix}/share/{share[file.suffix]}/{file.name}", _with_paths(file, folders)))
    for file in sorted((CONTRIB / "agent").glob("*.desktop")):
        found.append(Entry(f"{folders.autostart}/{file.name}", _with_paths(file, folders)))
    return found


def _with_paths(file, folders):
    """The units and entries as they stand in the repository are for /usr/bin, or say @bindir@."""
    text = file.read_text().replace("@bindir@", "/usr/bin")
    return text.replace("/usr/bin/watchword", f"{folders.programs}/watchword").encode()


def _files(folder, recursive=False):
    """Without what building or running leaves there."""
    left = {"__pycache__", "target", "node_modules"}
    return sorted(one for one in (folder.rglob("*") if recursive else folder.glob("*")) if one.is_file() and not any(
        part in left or part.startswith(".") for part in one.relative_to(folder).parts))


def _mode(file):
    return 0o755 if os.access(file, os.X_OK) else 0o644
