"""Private desktops on X and on Wayland, with functions that type, click and read the screen, and the agent that runs on one."""
import collections
import contextlib
import json
import os
import pathlib
import subprocess

from . import audit
from .bodies import eventually
from .broker import PROGRAMS, part
from .servers import find, written
from .waiting import accepts, ended, is_ready, output, started

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
        self.folder, self.size, self.processes, self.reader = pathlib.Path(folder), size, [], None
        self.folder.mkdir(mode=0o700, exist_ok=True)
        written(self.folder, {"config/gtk-4.0/settings.ini": SETTINGS, "bus.conf": BUS.format(folder=self.folder)})
        self.environment = {
            "HOME": str(self.folder), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1",
            "XDG_CONFIG_HOME": str(self.folder / "config"), "DBUS_SESSION_BUS_ADDRESS": f"unix:path={self.folder}/bus",
            "GSK_RENDERER": "cairo", "GSETTINGS_BACKEND": "memory", "GTK_USE_PORTAL": "0",
            "ADW_DISABLE_PORTAL": "1", "ADW_DEBUG_COLOR_SCHEME": f"prefer-{scheme}" if scheme == "dark" else "default",
            "NO_AT_BRIDGE": "0"}
        with contextlib.ExitStack() as stack:
            stack.callback(self.end)
            self._start_display()
            self.start("dbus-daemon", f"--config-file={self.folder}/bus.conf", "--nofork", "--nopidfile")
            # The launcher connects once.
            eventually(lambda: accepts(self.folder / "bus"), "the message bus did not start")
            self.start("/usr/libexec/at-spi-bus-launcher", "--launch-immediately", "--a11y=1", "--screen-reader=1")
            # A program that starts before a screen reader is registered never reports its widgets.
            self.heard()
            stack.pop_all()

    def _start_display(self):
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
        log = self.folder / f"{pathlib.Path(program).name}.log"
        self.processes.append(started([find(program), *words], log, env={**self.environment, **(environment or {})}, **more))
        return self.processes[-1]

    def run(self, program, *words, **more):
        return subprocess.run([find(program), *words], env=self.environment, capture_output=True, text=True, timeout=30, **more)

    def must(self, program, *words, **more):
        return output(find(program), *words, env=self.environment, **more)

    def log(self, name):
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def end(self):
        for process in reversed(self.processes):
            ended(process)

    close = end

    # Input

    def type(self, text):
        """Types text into the widget with the focus. The text is not an argument of a program, because it may be a password."""
        self.must("xdotool", "type", "--delay", "2", "--file", "-", input=text)

    def key(self, *keys):
        """Presses keys: Tab, Return, alt+o. Alt is held as long as a person would: while GTK draws, it misses a shorter press."""
        words = []
        for key in keys:
            modifier, found, letter = key.partition("+")
            held = ["keydown", modifier, "sleep", "0.12", "key", letter, "sleep", "0.06", "keyup", modifier]
            words += held if found else ["key", key]
        self.must("xdotool", *words)

    # Screen

    def windows(self):
        found = self.run("xdotool", "search", "--onlyvisible", "--name", ".").stdout.split()
        return {identifier: self.run("xdotool", "getwindowname", identifier).stdout.strip() for identifier in found}

    def has_keyboard(self, title):
        """Waits until the window has the keyboard focus; a screen reader can report the window before that."""
        eventually(lambda: self.run("xdotool", "getactivewindow", "getwindowname").stdout.strip() == title, self.windows)

    def picture(self, name):
        path = self.folder / f"{name}.png"
        self.must("scrot", "--overwrite", str(path))
        return path

    # Screen reader

    def heard(self):
        """Returns the widgets of the open windows as a screen reader gets them; see screen_reader.py."""
        return self._tell(b"")

    def _tell(self, line):
        if self.reader is None:
            self.reader = self.start("/usr/bin/python3", str(PROGRAMS / "screen_reader.py"), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
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


CONFIGURATION = """output HEADLESS-1 mode {size}@60Hz
output HEADLESS-1 scale {scale}
output HEADLESS-1 background #5a6270 solid_color
default_border none
for_window [app_id=".*"] floating enable
xwayland disable
"""
# sway does not run as root. In a user namespace it is another user, for whom the files have the same owner.
AS_USER = ["unshare", "--user", "--map-user=1000", "--map-group=1000"] if os.getuid() == 0 else []


class WaylandDesktop(Desktop):
    """A desktop with one output of `size` pixels, of which `scale` are one unit of the windows."""

    def __init__(self, folder, scheme="light", size="1280x800", scale=2):
        self.scale = scale
        super().__init__(folder, scheme, size)

    def _start_display(self):
        (self.folder / "sway.conf").write_text(CONFIGURATION.format(size=self.size, scale=self.scale))
        own = {"XDG_RUNTIME_DIR": str(self.folder), "WLR_BACKENDS": "headless", "WLR_RENDERER": "pixman", "WLR_LIBINPUT_NO_DEVICES": "1"}
        words = [*AS_USER, "sway", "--unsupported-gpu", "--config", str(self.folder / "sway.conf")]
        self.start(*words, environment=own)
        find = lambda pattern: next((str(one) for one in self.folder.glob(pattern) if one.is_socket()), None)  # noqa: E731
        sockets = [eventually(lambda: find(pattern), lambda: f"sway does not start: {self.log(words[0])}")
                   for pattern in ("sway-ipc*", "wayland-*")]
        self.environment.update(zip(("SWAYSOCK", "WAYLAND_DISPLAY"), sockets), GDK_BACKEND="wayland", XDG_RUNTIME_DIR=str(self.folder))
        self._output()

    def _output(self):
        return next(one for one in json.loads(self.must("swaymsg", "--raw", "--type", "get_tree"))["nodes"] if one["name"] == "HEADLESS-1")

    def windows(self):
        """Returns the title of each window with its place, without its shadow: x, y, width, height."""
        found, nodes = {}, [self._output()]
        while nodes:
            node = nodes.pop()
            nodes += node["nodes"] + node["floating_nodes"]
            if node.get("pid"):
                found[node["name"]] = tuple(node["rect"][side] for side in ("x", "y", "width", "height"))
        return found

    def is_inside(self, title):
        x, y, width, height = self.windows()[title]
        screen = self._output()["rect"]
        return min(x, y) >= 0 and width > 0 and x + width <= screen["width"] and y + height <= screen["height"]

    def picture(self, name):
        path = self.folder / f"{name}.png"
        self.must("grim", str(path))
        return path

    def colours(self, title):
        x, y, width, height = self.windows()[title]
        path = self.folder / "window.ppm"
        self.must("grim", "-t", "ppm", "-g", f"{x},{y} {width}x{height}", str(path))
        pixels = path.read_bytes().split(b"\n", 3)[3]
        return collections.Counter(pixels[place:place + 3] for place in range(0, len(pixels), 3))


class RunningAgent:
    """The agent of one broker. It runs on `desktop`, or without one in the given environment."""

    def __init__(self, folder, broker, desktop=None, *options, environment=None, **more):
        self.desktop, self.broker = desktop, broker
        self.log_path = folder / "agent.log"
        self.environment = {
            **(desktop.environment if desktop else {"PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C.UTF-8"}),
            "XDG_RUNTIME_DIR": broker.environment["XDG_RUNTIME_DIR"], "WATCHWORD_SOCKET": broker.socket,
            "XDG_STATE_HOME": str(audit.state(broker).parent), "PYTHONDONTWRITEBYTECODE": "1", **(environment or {})}
        self.options, self.more, self.process = options, more, None
        self.start()

    def start(self):
        self.process = started([AGENT, *self.options], self.log_path, env=self.environment, **self.more)
        return self

    def second(self, *options):
        return subprocess.run([AGENT, *options], env=self.environment, capture_output=True, text=True, timeout=30)

    @property
    def log(self):
        return self.log_path.read_text()

    def wait_until_registered(self, times=1):
        eventually(lambda: self.log.count("registered with the broker") >= times, lambda: self.log)
        return self

    def end(self):
        return ended(self.process)

    # Windows

    def window(self, title):
        return self.desktop.hear(title, role="frame" if title == "Saved Logins" else "dialog")

    def no_window(self, title):
        eventually(lambda: title not in self.titles(), lambda: self.desktop.heard())

    def titles(self):
        return [one["name"] for one in self.desktop.heard() if one["role"] in ("frame", "dialog")]

    def press(self, button, key=None):
        """Waits until the button is enabled and the window has the keyboard focus, then moves to the button and presses it, or
        presses `key`."""
        eventually(
            lambda: any(is_named(one["name"], button) and one["role"] == "push button" and one["sensitive"] for one in self.desktop.heard()),
            lambda: f"no enabled {button}: {self.desktop.summary()}")
        self.desktop.hear("", focused=True)
        self.desktop.key(key) if key else self.go(button, "space")

    def open_details(self):
        """Expands the details with their Alt key."""
        self.desktop.hear("Details", role="push button")
        self.desktop.hear("", focused=True)
        self.desktop.key("alt+d")
        self.desktop.hear("Asked by: ")

    def go(self, name, *keys):
        """Presses Tab until the widget with this name has the focus, and waits after each step; then presses the keys."""
        focused = lambda: next((one["name"] for one in self.desktop.heard() if one["focused"]), None)
        before = None
        for _ in range(17):
            before = eventually(lambda: (now := focused()) != before and now, self.desktop.summary)
            if is_named(before, name):
                return self.desktop.key(*keys) if keys else None
            self.desktop.key("Tab")
        raise AssertionError(f"Tab does not reach {name}: {self.desktop.summary()}")


def is_named(whole, name):
    """Whether a widget has the name, or is a choice with it. A part would not do: other buttons are enabled from the start."""
    return whole == name or whole.endswith(f": {name}")


ASKPASS = """#!/bin/sh
printf '%s|%s\\n' "$SSH_ASKPASS_PROMPT" "$1" >> "$ASKPASS_LOG"
if [ "$SSH_ASKPASS_PROMPT" = confirm ]; then exit "${ASKPASS_CONFIRM:-1}"; fi
case "$1" in *"Password of"*) cat "$ASKPASS_SECRET" ;; *) echo bob ;; esac
"""


def askpass(folder, password):
    """Writes a program for SSH_ASKPASS that records its arguments; returns the environment with it."""
    written(folder, {"askpass": ASKPASS, "typed": password + "\n"})
    (folder / "askpass").chmod(0o755)
    return {"SSH_ASKPASS": f"{folder}/askpass", "ASKPASS_LOG": f"{folder}/asked", "ASKPASS_SECRET": f"{folder}/typed"}
