"""The command."""
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
Asks the person what the Watchword broker may not decide: log-ins, client certificates, whether to trust a server, and which
program may use what is kept. Starts with the session; one for each session.

Without a display, or without GTK 4 and libadwaita, it asks by zenity, pinentry, the program that SSH_ASKPASS names, or at the
terminal: by the first of them that works.
"""
EXITS = """\
exit codes:
  0  ended by SIGTERM or Ctrl-C, or the list was closed
  1  there is no way to ask, or the broker refuses agents here
  3  another agent runs in this session
  64 the arguments were not understood
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        print(f"watchword-agent: {message}\nTry: watchword-agent --help", file=sys.stderr)
        raise SystemExit(USAGE)


def _arguments(words: Optional[Sequence[str]]) -> argparse.Namespace:
    parser = _Parser(
        prog="watchword-agent", description=DESCRIPTION, epilog=EXITS, formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False)
    parser.add_argument("--list", action="store_true", help="show saved log-ins and recent use, and do nothing else")
    parser.add_argument(
        "--fallback", choices=list(FALLBACKS), metavar="NAME", help=f"ask by this and nothing else: {', '.join(FALLBACKS)}")
    parser.add_argument("--socket", metavar="PATH", help="the broker's (else $WATCHWORD_SOCKET, else below $XDG_RUNTIME_DIR)")
    parser.add_argument("--priority", type=int, default=0, help="of several agents the one with the highest is asked first")
    parser.add_argument("--version", action="version", version=f"watchword-agent {VERSION}")
    return parser.parse_args(words)


def main(words: Optional[Sequence[str]] = None) -> int:
    """Runs until it is ended; the exit code."""
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
        say(f"{problem}; that one asks. To see what is saved: watchword-agent --list")
        return ANOTHER_RUNS
    except OSError as problem:
        say(f"cannot lock {problem.filename}: {problem.strerror}. Is XDG_RUNTIME_DIR a folder of yours?")
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
        say(f"the broker allows no agent here: {reason}. Start it outside of the sandbox, on the broker's own socket")
        loop.quit()

    agent.on_denied = denied
    # In the loop: what quits it has something to quit.
    GLib.idle_add(agent.start)
    loop.run()
    return code


def _presenters(fallback: Optional[str]) -> list[Presenter]:
    """All ways of asking that work here, the best first; says what is missing if there is none."""
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
        say("there is no way to ask anybody: " + "; ".join(reasons))
    return found


def _list(path: str, loop: GLib.MainLoop) -> int:
    try:
        toolkit.start()
    except toolkit.NoWindows as problem:
        say(f"the list needs a window: {problem}. Without one: watchword credentials list; watchword log")
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
