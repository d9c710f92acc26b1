"""A running agent of the desktop session, and its windows."""
import os
import subprocess

from . import audit
from .bodies import eventually
from .desktop import AGENT
from .waiting import ended


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
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [AGENT, *self.options], env=self.environment,
                **{"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log, **self.more})
        return self

    def second(self, *options):
        """Runs a second agent until it exits."""
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
        """Waits for the window."""
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
        if key is None:
            self.go(button)
        self.desktop.key(key or "space")

    def open_details(self):
        """Expands the details with their Alt key."""
        self.desktop.hear("Details", role="push button")
        self.desktop.hear("", focused=True)
        self.desktop.key("alt+d")
        self.desktop.hear("Asked by: ")

    def go(self, name):
        """Presses Tab until the widget with this name has the focus, and waits after each step."""
        focused = lambda: next((one["name"] for one in self.desktop.heard() if one["focused"]), None)
        before = None
        for _ in range(17):
            before = eventually(lambda: (now := focused()) != before and now, self.desktop.summary)
            if is_named(before, name):
                return
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
    script = folder / "askpass"
    script.write_text(ASKPASS)
    script.chmod(0o755)
    (folder / "typed").write_text(password + "\n")
    return {"SSH_ASKPASS": str(script), "ASKPASS_LOG": str(folder / "asked"), "ASKPASS_SECRET": str(folder / "typed")}
