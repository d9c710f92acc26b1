"""A private desktop: an X server, a window manager, a message bus, and functions that type, click and read the screen. A desktop on
Wayland is in wayland.py."""
import json
import os
import pathlib
import subprocess

from .bodies import eventually
from .broker import part
from .servers import find
from .waiting import accepts, ended, is_ready

AGENT = part("lib/watchword/agent", "agent") / "watchword-agent"
BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path={folder}/bus</listen><policy context="default">
<allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/></policy></busconfig>
"""
# The pause between two reads of the screen: reading all the time keeps the program from drawing.
LOOK_PAUSE = 0.04
SETTINGS = "[Settings]\ngtk-enable-animations=false\ngtk-cursor-blink=false\ngtk-hint-font-metrics=true\n"


class Desktop:
    """A desktop whose processes are ended by their process ids. `environment` is for the programs on it."""

    def __init__(self, folder, scheme="light", size="1000x900"):
        self.size = size
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self.processes, self.reader = [], None
        (self.folder / "config" / "gtk-4.0").mkdir(parents=True, exist_ok=True)
        (self.folder / "config" / "gtk-4.0" / "settings.ini").write_text(SETTINGS)
        (self.folder / "bus.conf").write_text(BUS.format(folder=self.folder))
        self.environment = {
            "HOME": str(self.folder), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1",
            "XDG_CONFIG_HOME": str(self.folder / "config"), "DBUS_SESSION_BUS_ADDRESS": f"unix:path={self.folder}/bus",
            "GSK_RENDERER": "cairo", "GSETTINGS_BACKEND": "memory", "GTK_USE_PORTAL": "0",
            "ADW_DISABLE_PORTAL": "1", "ADW_DEBUG_COLOR_SCHEME": f"prefer-{scheme}" if scheme == "dark" else "default",
            "NO_AT_BRIDGE": "0"}
        try:
            self._start()
        except BaseException:
            self.end()
            raise

    def _start(self):
        self._start_display()
        self.start("dbus-daemon", f"--config-file={self.folder}/bus.conf", "--nofork", "--nopidfile")
        # The launcher connects once.
        eventually(lambda: accepts(self.folder / "bus"), "the message bus did not start")
        self.start("/usr/libexec/at-spi-bus-launcher", "--launch-immediately", "--a11y=1", "--screen-reader=1")
        # A program that starts before a screen reader is registered never reports its widgets.
        self.heard()

    def _start_display(self):
        """Starts the display and the window manager, and sets their variables."""
        readable, writable = os.pipe()
        self.start(
            "Xvfb", "-displayfd", str(writable), "-screen", "0", f"{self.size}x24", "-nolisten", "tcp", "-noreset",
            pass_fds=[writable])
        os.close(writable)
        with open(readable) as file:
            assert is_ready(file, 20) and (number := file.readline().strip()), f"Xvfb does not start: {self.log('Xvfb')}"
        self.environment.update(DISPLAY=f":{number}", GDK_BACKEND="x11")
        self.start("openbox", "--sm-disable")
        eventually(lambda: self.run("xdotool", "get_num_desktops").returncode == 0, "the window manager did not start")

    def start(self, program, *words, environment=None, **more):
        """Starts a program on this desktop; its output is written to NAME.log."""
        name = pathlib.Path(program).name
        with open(self.folder / f"{name}.log", "ab") as log:
            process = subprocess.Popen(
                [find(program), *words], env={**self.environment, **(environment or {})},
                **{"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log, **more})
        self.processes.append(process)
        return process

    def run(self, program, *words, **more):
        return subprocess.run([find(program), *words], env=self.environment, capture_output=True, text=True, timeout=30, **more)

    def log(self, name):
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def end(self):
        for process in reversed(self.processes):
            ended(process)

    # Input

    def type(self, text):
        """Types text into the widget with the focus. The text is not an argument of a program, because it may be a password."""
        subprocess.run([find("xdotool"), "type", "--delay", "2", "--file", "-"], input=text, text=True, env=self.environment, timeout=30, check=True)

    def key(self, *keys):
        """Presses keys: Tab, Return, alt+o. Alt is held as long as a person would: while GTK draws, it misses a shorter press."""
        words = []
        for key in keys:
            modifier, found, letter = key.partition("+")
            held = ["keydown", modifier, "sleep", "0.12", "key", letter, "sleep", "0.06", "keyup", modifier]
            words += held if found else ["key", key]
        assert self.run("xdotool", *words).returncode == 0

    # Screen

    def windows(self):
        """The titles of the visible windows."""
        found = self.run("xdotool", "search", "--onlyvisible", "--name", ".").stdout.split()
        return {identifier: self.run("xdotool", "getwindowname", identifier).stdout.strip() for identifier in found}

    def has_keyboard(self, title):
        """Waits until the window has the keyboard focus; a screen reader can report the window before that."""
        eventually(lambda: self.run("xdotool", "getactivewindow", "getwindowname").stdout.strip() == title, self.windows)

    def picture(self, name):
        """Saves a screenshot in the folder of the test."""
        path = self.folder / f"{name}.png"
        assert self.run("scrot", "--overwrite", str(path)).returncode == 0
        return path

    # Screen reader

    def heard(self):
        """Returns the widgets of the open windows as a screen reader gets them; see screen_reader.py."""
        return self._tell(b"")

    def _tell(self, line):
        if self.reader is None:
            self.reader = self.start(
                "/usr/bin/python3", str(pathlib.Path(__file__).with_name("screen_reader.py")), stdin=subprocess.PIPE,
                stdout=subprocess.PIPE)
        self.reader.stdin.write(line + b"\n")
        self.reader.stdin.flush()
        assert is_ready(self.reader.stdout, 20), "the screen reader returns nothing"
        return json.loads(self.reader.stdout.readline())

    def hear(self, what, seconds=30, is_whole=False, **states):
        """Waits for a widget whose name contains `what`, or is `what`, and for its states."""
        is_it = lambda name: what == name if is_whole else what in name  # noqa: E731
        return eventually(
            lambda: next((one for one in self.heard() if is_it(one["name"]) and states.items() <= one.items()), None),
            lambda: f"no {what!r} {states} among {self.summary()}", seconds, LOOK_PAUSE)

    def hear_all(self, *names):
        """Waits for a widget with each name."""
        for name in names:
            self.hear(name)

    def fill(self, fields):
        """Types the texts into the fields with these names, each as soon as it has the focus; Enter leads to the next one."""
        for number, (name, text) in enumerate(fields.items()):
            if number:
                self.key("Return")
            self.hear(name, role="password text" if name.startswith(("Password", "Passphrase", "Token")) else "text", focused=True)
            self.type(text)

    def operate(self, what, text=None, **states):
        """Clicks on a widget as a screen reader does, or replaces its text, once the widget is enabled."""
        place = self.hear(what, is_whole=True, sensitive=True, **states)["place"]
        assert self._tell(json.dumps({"place": place, **({} if text is None else {"text": text})}).encode()), what

    def summary(self):
        """Returns a description of the screen, for the message of a failed test."""
        return [f"{one['role']}: {one['name']}{' *' if one['focused'] else ''}"
                for one in self.heard() if one["role"] not in ("panel", "filler")]
