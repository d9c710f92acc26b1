"""The command."""
import argparse
import locale
import signal
import sys
from typing import Optional, Sequence

from gi.repository import GLib

from . import VERSION, hardening, instance, places
from .agent import Agent, say
from .presenter import Presenter

ENDED, FAILED, ANOTHER_RUNS, USAGE = 0, 1, 3, 64


def main(arguments: Optional[Sequence[str]] = None) -> int:
    hardening.at_start()
    from .windows import toolkit
    toolkit.start()
    from .windows import presenter
    lock = instance.InstanceLock(places.runtime_folder())
    loop = GLib.MainLoop()
    agent = Agent(places.socket_path(), [presenter.WindowPresenter()], None, 0)
    agent.start()
    for number in (signal.SIGTERM, signal.SIGINT):
        GLib.unix_signal_add(GLib.PRIORITY_HIGH, number, loop.quit)
    loop.run()
    return 0
