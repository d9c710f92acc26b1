"""The command `watchword-agent`."""
import argparse
import locale
import os
import signal
import sys
from typing import Optional, Sequence

from gi.repository import GLib

from . import VERSION, hardening, instance, places
from .agent import Agent, say
from .fallbacks.dialogue import Unavailable
from .fallbacks.presenter import FALLBACKS, FallbackPresenter
from .presenter import Presenter
from .windows import toolkit

ENDED, FAILED, ANOTHER_RUNS, USAGE = 0, 1, 3, 64
DESCRIPTION = """\
Shows the questions of the Watchword broker: logins, client certificates, untrusted servers, which programs may use saved
logins, and the prompts of programs that watchword-askpass passes on. It starts with the desktop session; one agent runs per
session.

Without a display, or without GTK 4 and libadwaita, it uses the first of these that works: zenity, pinentry, the program in
SSH_ASKPASS, the terminal.
"""
EXITS = """\
exit codes:
  0  ended by SIGTERM or Ctrl-C, or the manager was closed
  1  no way to show questions, or the broker allows no agents on this socket
  3  another agent runs in this session
  64 invalid arguments
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        print(f"watchword-agent: {message}\nTry: watchword-agent --help", file=sys.stderr)
        raise SystemExit(USAGE)


def _arguments(words: Optional[Sequence[str]]) -> argparse.Namespace:
    parser = _Parser(
        prog="watchword-agent", description=DESCRIPTION, epilog=EXITS, formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False)
    parser.add_argument("--list", action="store_true", help="manage saved logins, permissions and settings instead of showing questions")
    parser.add_argument(
        "--fallback", choices=list(FALLBACKS), metavar="NAME", help=f"use only this fallback: {', '.join(FALLBACKS)}")
    parser.add_argument("--socket", metavar="PATH", help="the broker's socket (default: $WATCHWORD_SOCKET, or below $XDG_RUNTIME_DIR)")
    parser.add_argument("--priority", type=int, default=0, help="priority among agents: the highest is asked first (default: 0)")
    parser.add_argument("--version", action="version", version=f"watchword-agent {VERSION}")
    return parser.parse_args(words)


def main(words: Optional[Sequence[str]] = None) -> int:
    """Runs the command; returns the exit code."""
    arguments = _arguments(words)
    hardening.at_start()
    path = os.path.abspath(arguments.socket or places.socket_path())
    loop = GLib.MainLoop()
    for number in (signal.SIGTERM, signal.SIGINT):
        GLib.unix_signal_add(GLib.PRIORITY_HIGH, number, loop.quit)
    if arguments.list:
        return _list(path, loop)
    try:
        lock = instance.InstanceLock(places.runtime_folder())
    except instance.AnotherRuns as problem:
        say(f"{problem}; to see saved logins: watchword-agent --list")
        return ANOTHER_RUNS
    except OSError as problem:
        say(f"cannot lock {problem.filename}: {problem.strerror}; set XDG_RUNTIME_DIR to a directory you own")
        return FAILED
    presenters = _presenters(arguments.fallback)
    if not presenters:
        return FAILED
    code = _serve(path, presenters, arguments.priority, loop)
    lock.release()
    return code


def _serve(path: str, presenters: list[Presenter], priority: int, loop: GLib.MainLoop) -> int:
    code = ENDED
    agent = Agent(path, presenters, _locale(), priority)

    def denied(reason: str) -> None:
        nonlocal code
        code = FAILED
        say(f"the broker allows no agent here: {reason}; start the agent outside of any sandbox, on the main socket")
        loop.quit()

    agent.on_denied = denied
    # Started inside the loop, so that `denied` can quit it.
    GLib.idle_add(agent.start)
    loop.run()
    return code


def _presenters(fallback: Optional[str]) -> list[Presenter]:
    """Returns the presenters that work here, best first. If none works, prints what each one lacks."""
    reasons = []
    found: list[Presenter] = []
    if fallback is None:
        try:
            toolkit.start()
            from .windows.presenter import WindowPresenter
            found.append(WindowPresenter())
        except toolkit.NoWindows as problem:
            reasons.append(f"windows: {problem}")
    for name in [fallback] if fallback else FALLBACKS:
        one = FallbackPresenter(name)
        try:
            one.check()
            found.append(one)
        except Unavailable as problem:
            reasons.append(f"{name}: {problem}")
    if not found:
        say("no way to show questions: " + "; ".join(reasons))
    return found


def _list(path: str, loop: GLib.MainLoop) -> int:
    try:
        toolkit.start()
    except toolkit.NoWindows as problem:
        say(f"cannot open the list: {problem}; in a terminal use: watchword credentials list, watchword log")
        return FAILED
    from .windows.saved import SavedWindow
    SavedWindow(path, loop.quit).present()
    loop.run()
    return ENDED


def _locale() -> Optional[str]:
    try:
        return locale.getlocale(locale.LC_MESSAGES)[0] or os.environ.get("LANG", "").partition(".")[0] or None
    except ValueError:
        return None
