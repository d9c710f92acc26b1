"""A desktop of its own: an X server, a window manager, a message bus, and somebody who types and looks."""
import json
import os
import pathlib
import signal
import subprocess

from .bodies import eventually
from .broker import ROOT
from .servers import find
from .waiting import is_ready

AGENT = ROOT / "contrib" / "agent" / "watchword-agent"
BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path={folder}/bus</listen><policy context="default">
<allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/></policy></busconfig>
"""
# Between two looks: whoever looks all the time keeps the program from drawing what is looked for.
LOOK_PAUSE = 0.04
SETTINGS = "[Settings]\ngtk-enable-animations=false\ngtk-cursor-blink=false\ngtk-hint-font-metrics=true\n"


class Desktop:
    """What was started is ended by its process id. `environment` is for programs on it."""

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
            "GSK_RENDERER": "cairo", "GDK_BACKEND": "x11", "GSETTINGS_BACKEND": "memory", "GTK_USE_PORTAL": "0",
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
        self.start("openbox", "--sm-disable")
        eventually(lambda: self.run("xdotool", "get_num_desktops").returncode == 0, "no window manager")
        self.start("/usr/libexec/at-spi-bus-launcher", "--launch-immediately", "--a11y=1", "--screen-reader=1")
        eventually((self.folder / "bus").exists, "no bus")
        # A program that starts before there is somebody to tell never tells anything.
        self.heard()

    def _start_display(self):
        readable, writable = os.pipe()
        self.start(
            "Xvfb", "-displayfd", str(writable), "-screen", "0", f"{self.size}x24", "-nolisten", "tcp", "-noreset",
            pass_fds=[writable])
        os.close(writable)
        text = b""
        while not text.endswith(b"\n"):
            assert is_ready(readable, 20) and (piece := os.read(readable, 16)), f"Xvfb does not start: {self.log('Xvfb')}"
            text += piece
        os.close(readable)
        self.environment["DISPLAY"] = f":{text.decode().strip()}"

    def start(self, program, *words, environment=None, **more):
        """A program on this desktop; what it says is in NAME.log."""
        name = pathlib.Path(program).name
        with open(self.folder / f"{name}.log", "ab") as log:
            process = subprocess.Popen(
                [find(program), *words], env={**self.environment, **(environment or {})},
                **{"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log, **more})
        self.processes.append(process)
        return process

    def run(self, program, *words, **more):
        return subprocess.run([find(program), *words], env=self.environment, capture_output=True, text=True, timeout=20, **more)

    def log(self, name):
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def end(self):
        for process in reversed(self.processes):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(5)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait(5)

    # Hands

    def type(self, text):
        """Types into whatever has the focus; not in the arguments of a program, where a password has no business."""
        typed = subprocess.run(
            [find("xdotool"), "type", "--delay", "2", "--file", "-"], input=text, text=True, env=self.environment, timeout=20)
        assert typed.returncode == 0

    def key(self, *keys):
        """Presses keys: Tab, Return, alt+o. Alt is held for as long as a hand does: while GTK draws it misses what is shorter."""
        words = []
        for key in keys:
            modifier, found, letter = key.partition("+")
            held = ["keydown", modifier, "sleep", "0.12", "key", letter, "sleep", "0.06", "keyup", modifier]
            words += held if found else ["key", key]
        assert self.run("xdotool", *words).returncode == 0

    # Eyes

    def windows(self):
        """The titles of the windows that can be seen."""
        found = self.run("xdotool", "search", "--onlyvisible", "--name", ".").stdout.split()
        return {identifier: self.run("xdotool", "getwindowname", identifier).stdout.strip() for identifier in found}

    def has_keyboard(self, title):
        """Waits until keys go to that window: it can be heard before."""
        eventually(lambda: self.run("xdotool", "getactivewindow", "getwindowname").stdout.strip() == title, self.windows)

    def picture(self, name):
        """A screenshot, kept with the test."""
        path = self.folder / f"{name}.png"
        assert self.run("scrot", "--overwrite", str(path)).returncode == 0
        return path

    # Ears

    def heard(self):
        """What a screen reader is told of the windows that are open, a list of widgets; see screen_reader.py."""
        if self.reader is None:
            self.reader = self.start(
                "/usr/bin/python3", str(pathlib.Path(__file__).with_name("screen_reader.py")), stdin=subprocess.PIPE,
                stdout=subprocess.PIPE)
        self.reader.stdin.write(b"\n")
        self.reader.stdin.flush()
        assert is_ready(self.reader.stdout, 20), "the screen reader says nothing"
        return json.loads(self.reader.stdout.readline())

    def hear(self, what, seconds=10, **states):
        """Waits for a widget whose name has `what` in it, and its states."""
        def look():
            for one in self.heard():
                if what in one["name"] and all(one[key] == value for key, value in states.items()):
                    return one
            return None

        return eventually(look, lambda: f"no {what!r} {states} among {self.summary()}", seconds, LOOK_PAUSE)

    def summary(self):
        """For people who read what went wrong."""
        return [f"{one['role']}: {one['name']}{' *' if one['focused'] else ''}"
                for one in self.heard() if one["role"] not in ("panel", "filler")]
