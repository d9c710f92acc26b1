"""The agent of the desktop session, running, and the windows that it shows."""
import os
import signal
import subprocess

from . import audit
from .bodies import eventually
from .desktop import AGENT

# What a screen reader would make up for a widget that has no name.
NAMELESS = ("", "GtkImage", "GtkButton", "GtkToggleButton", "GtkText", "GtkEntry", "GtkPasswordEntry")


class RunningAgent:
    """On a desktop, for one broker. Whoever has no desktop gives an environment."""

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
        """Another one, to its end."""
        return subprocess.run([AGENT, *options], env=self.environment, capture_output=True, text=True, timeout=20)

    @property
    def log(self):
        return self.log_path.read_text()

    def wait_until_registered(self, times=1):
        eventually(lambda: self.log.count("registered with the broker") >= times, lambda: self.log)
        return self

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(5)
        return self.process.returncode

    # Windows

    def window(self, title):
        """Waits for the window, and looks whether everything in it that can be used has a name."""
        found = self.desktop.hear(title, role="frame" if title == "Saved Log-Ins" else "dialog")
        widgets = [one for one in self.desktop.heard() if one["window"] == title]
        for one in widgets:
            if one["focusable"] and one["role"] in ("push button", "text", "password text", "toggle button", "list item"):
                assert one["name"].strip() not in NAMELESS, f"{one} has no name"
                assert "_" not in one["name"], one
        return found

    def no_window(self, title):
        eventually(lambda: title not in self.titles(), lambda: self.desktop.heard())

    def titles(self):
        return [one["name"] for one in self.desktop.heard() if one["role"] in ("frame", "dialog")]

    def press(self, button, key=None):
        """Waits until the button works and the window has the keyboard; goes there and presses it, or presses `key`."""
        self.desktop.hear(button, role="push button", sensitive=True)
        self.desktop.hear("", 30, focused=True)
        if key is None:
            self.go(button)
        self.desktop.key(key or "space")

    def go(self, name):
        """Tab, until what has this name has the focus. Each step is waited for."""
        focused = lambda: next((one["name"] for one in self.desktop.heard() if one["focused"]), None)
        before = eventually(focused, lambda: self.desktop.summary())
        for _ in range(16):
            if before == name or before.endswith(f": {name}"):
                return
            self.desktop.key("Tab")
            before = eventually(lambda: (now := focused()) != before and now, lambda: self.desktop.summary())
        raise AssertionError(f"Tab does not come to {name}: {self.desktop.summary()}")


ASKPASS = """#!/bin/sh
printf '%s|%s\\n' "$SSH_ASKPASS_PROMPT" "$1" >> "$ASKPASS_LOG"
if [ "$SSH_ASKPASS_PROMPT" = confirm ]; then exit "${ASKPASS_CONFIRM:-1}"; fi
case "$1" in *"Password of"*) cat "$ASKPASS_SECRET" ;; *) echo bob ;; esac
"""


def askpass(folder, password):
    """A program for SSH_ASKPASS: the environment that names it. It writes down what it was asked."""
    script = folder / "askpass"
    script.write_text(ASKPASS)
    script.chmod(0o755)
    (folder / "typed").write_text(password + "\n")
    return {"SSH_ASKPASS": str(script), "ASKPASS_LOG": str(folder / "asked"), "ASKPASS_SECRET": str(folder / "typed")}
