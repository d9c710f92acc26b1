"""The list of files to install for a prefix, as values. Nothing is written here."""
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import unicodedata

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONTRIB = ROOT / "contrib"
PROGRAMS = ["watchwordd", "watchword"]
# Programs that only the daemon runs: the evaluator of PAC files.
INTERNAL = ["watchword-pac"]
# Other names of `watchword`: a credential helper of git, and an askpass program.
LINKS = ["git-credential-watchword", "watchword-askpass"]
# The AppArmor profile of the daemon.
PROFILE = "usr.bin.watchwordd"
# The specifiers and quotes of systemd.unit(5), the characters that the Desktop Entry Specification reserves in Exec, and
# characters with a meaning to shells.
_MARKS = set("%\"'\\$`><~|&;*?#()[]{}!^")


@dataclasses.dataclass(frozen=True)
class Entry:
    """A file with its contents, or a symbolic link with its target."""
    path: str
    content: bytes = b""
    mode: int = 0o644
    link: str | None = None


@dataclasses.dataclass(frozen=True)
class Folders:
    """The absolute folders of an installation, without the destination directory."""
    prefix: str
    units: str
    zsh: str
    # The folder of desktop entries that start with the session. Desktops search none below another prefix than /.
    autostart: str
    apparmor: str
    # Folders to which no files are written, but from which those of an earlier version are removed.
    former: tuple[str, ...] = ()

    @staticmethod
    def of(prefix, home=None):
        """Returns the folders for a prefix; none is outside of it. `home` is set for the installation of a single user, whose units and
        autostart entry are in ~/.config."""
        own = f"{prefix}/share/watchword"
        if home is not None:
            configuration = os.environ.get("XDG_CONFIG_HOME", "")
            # Relative paths are ignored (XDG Base Directory Specification).
            configuration = configuration.rstrip("/") if os.path.isabs(configuration) else f"{home}/.config"
            return Folders(prefix, f"{configuration}/systemd/user", f"{prefix}/share/zsh/site-functions", f"{configuration}/autostart",
                           f"{own}/apparmor")
        return Folders(prefix, f"{prefix}/lib/systemd/user", f"{prefix}/share/zsh/site-functions", f"{own}/autostart", f"{own}/apparmor",
                       former=("/etc/xdg/autostart",))

    @staticmethod
    def of_package():
        """Returns the folders of a Debian package."""
        return Folders("/usr", "/usr/lib/systemd/user", "/usr/share/zsh/vendor-completions", "/etc/xdg/autostart", "/etc/apparmor.d")

    @property
    def all(self):
        """The folders that contain all installed files, also those of an earlier version."""
        return [self.prefix, self.units, self.zsh, self.autostart, self.apparmor, *self.former]

    def problem(self):
        """Returns why the folders cannot be used, or None. Units, desktop entries and shells parse the paths, each with its own
        special characters."""
        for path in self.all:
            if os.path.normpath(path) != path or path in ("/", "//") or path.startswith("//"):
                return f"{path!r} is not a valid folder; use an absolute path below /"
            for character in path:
                if character in _MARKS or unicodedata.category(character)[0] in "CZ":
                    name = unicodedata.name(character, f"U+{ord(character):04X}")
                    return (f"{path!r} contains {character!r} ({name}), which has a special meaning in units, desktop entries "
                            "or lists; choose another --prefix")
        return None

    @property
    def programs(self):
        return f"{self.prefix}/bin"

    @property
    def internal(self):
        """The folder of the programs that are not started by name. The daemon finds it beside its own folder."""
        return f"{self.prefix}/lib/watchword"

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
    """Returns the files of every installation. `binaries` is the folder of the programs."""
    found = [Entry(f"{folders.programs}/{name}", (pathlib.Path(binaries) / name).read_bytes(), 0o755) for name in PROGRAMS]
    found += [Entry(f"{folders.internal}/{name}", (pathlib.Path(binaries) / name).read_bytes(), 0o755) for name in INTERNAL]
    found += [Entry(f"{folders.programs}/{name}", link="watchword") for name in LINKS]
    found += _completions(folders, binaries)
    for page in sorted((CONTRIB / "man").glob("*.[1-8]")):
        found.append(Entry(f"{folders.prefix}/share/man/man{page.suffix[1:]}/{page.name}", page.read_bytes()))
    for unit in [*_files(CONTRIB / "systemd"), *sorted((CONTRIB / "agent").glob("*.service"))]:
        found.append(Entry(f"{folders.units}/{unit.name}", _with_paths(unit, folders)))
    found += _agent(folders)
    found += _desktop(folders)
    profile = CONTRIB / "apparmor" / PROFILE
    found.append(Entry(f"{folders.apparmor}/{profile.name}", _with_paths(profile, folders)))
    for file in _files(CONTRIB / "clients", recursive=True):
        found.append(Entry(f"{folders.own}/clients/{file.relative_to(CONTRIB / 'clients')}", file.read_bytes(), _mode(file)))
    for name in ["README.md", "SECURITY.md", "CHANGELOG.md", "LICENSE", "Protocol/SPECIFICATION.md", "Protocol/openrpc.json",
                 *(f"contrib/docs/{page.name}" for page in sorted((CONTRIB / "docs").glob("*.md")))]:
        found.append(Entry(f"{folders.documents}/{pathlib.Path(name).name}", (ROOT / name).read_bytes()))
    for page in sorted((CONTRIB / "docs" / "programs").glob("*.md")):
        found.append(Entry(f"{folders.documents}/programs/{page.name}", page.read_bytes()))
    return found


def _completions(folders, binaries):
    places = {"bash": f"{folders.prefix}/share/bash-completion/completions/watchword", "zsh": f"{folders.zsh}/_watchword",
              "fish": f"{folders.prefix}/share/fish/vendor_completions.d/watchword.fish"}
    found = []
    for shell, path in places.items():
        made = subprocess.run([pathlib.Path(binaries) / "watchword", "--generate-completion-script", shell],
                              capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
        if made.returncode != 0 or not made.stdout:
            raise SystemExit(f"cannot generate the completions for {shell}: {made.stderr.decode(errors='replace').strip()}")
        # Shells read the scripts, and do not run them as programs.
        script = re.sub(rb"^#!.*\n", b"", made.stdout)
        found.append(Entry(path, _terminating(script) if shell == "fish" else script))
    return found


def _terminating(script):
    """Fixes an endless loop in the fish completions of swift-argument-parser 1.8: after an unknown option, or one that fish's argparse
    cannot name (`-#`), they parse again with the same result.
    """
    script = re.sub(rb"(?m)^( *argparse -sn .*)$", rb"\1; or break", script)
    return script.replace(b"'#/progress-bar'", b"'progress-bar'").replace(b" # progress-bar'", b" progress-bar'")


def _agent(folders):
    """Returns the agent: a script beside its Python package, and a link to it, which the interpreter resolves."""
    agent = CONTRIB / "agent"
    if not (agent / "watchword-agent").exists():
        return []
    inside = f"{folders.prefix}/lib/watchword/agent"
    found = [Entry(f"{inside}/watchword-agent", (agent / "watchword-agent").read_bytes(), 0o755),
             Entry(f"{folders.programs}/watchword-agent", link="../lib/watchword/agent/watchword-agent")]
    for file in _files(agent / "watchword_agent", recursive=True):
        found.append(Entry(f"{inside}/watchword_agent/{file.relative_to(agent / 'watchword_agent')}", file.read_bytes()))
    return found + _translations(folders)


def _translations(folders):
    """Returns the agent's compiled catalogues; without gettext's tools, none."""
    found = []
    for file in sorted((CONTRIB / "agent" / "po").glob("*.po")):
        try:
            made = subprocess.run(["msgfmt", "--output-file=-", file], capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
        except FileNotFoundError:
            print("command not found: msgfmt; the agent is installed in English only. For its translations, install the package gettext, "
                  "and run this again", file=sys.stderr)
            return []
        if made.returncode != 0:
            raise SystemExit(f"cannot compile {file}: {made.stderr.decode(errors='replace').strip()}")
        found.append(Entry(f"{folders.prefix}/share/locale/{file.stem}/LC_MESSAGES/watchword-agent.mo", made.stdout))
    return found


def _desktop(folders):
    """Returns the desktop files. Entries that start the agent are left out if it is missing."""
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
    """Replaces @bindir@, /usr/bin and /usr/lib/watchword in units, desktop entries and the AppArmor profile."""
    text = file.read_text().replace("@bindir@", "/usr/bin").replace("/usr/lib/watchword", folders.internal)
    return text.replace("/usr/bin/watchword", f"{folders.programs}/watchword").encode()


def _files(folder, recursive=False):
    """Returns the files of a folder, without build products and hidden files."""
    left = {"__pycache__", "target", "node_modules"}
    return sorted(one for one in (folder.rglob("*") if recursive else folder.glob("*")) if one.is_file() and not any(
        part in left or part.startswith(".") for part in one.relative_to(folder).parts))


def _mode(file):
    return 0o755 if os.access(file, os.X_OK) else 0o644
