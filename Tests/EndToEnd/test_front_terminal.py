"""`watchword run` as a job of an interactive shell: each signal reaches the program once, and a stopped program stops the job."""
import os
import re
import shlex
import signal
import sys

import pytest

from rig.broker import program
from rig.terminal import Terminal

SCRIPT = """
import collections, os, signal, sys
counts = collections.Counter()
def count(number, frame):
    counts[number] += 1
    print(f"<{signal.Signals(number).name} {counts[number]}>", flush=True)
for number in [signal.SIGINT, signal.SIGTERM]:
    signal.signal(number, count)
print(f"<ready {os.getppid()}>", flush=True)
for line in sys.stdin:
    print(f"<read {line.strip()}>", flush=True)
    if line == "stop\\n":
        os.kill(os.getpid(), signal.SIGSTOP)
    if line == "end\\n":
        sys.exit(7)
"""


@pytest.fixture
def shell(stage, tmp_path):
    """An interactive shell. `shell.start(suffix)` runs the script as a job, and returns the process of `watchword run`."""
    broker = stage.broker()
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = {**os.environ, "HOME": str(broker.home), "PS1": "$ ", "TERM": "dumb", "HISTFILE": ""}
    terminal = Terminal("/bin/bash", "--norc", "--noprofile", "-i", environment=environment)
    command = [program("watchword"), "run", "--socket", broker.socket, "--", sys.executable, "-u", str(tmp_path / "script.py")]

    def start(suffix=""):
        terminal.type(f"{shlex.join(command)} {suffix}\n")
        terminal.expect("<ready ")
        terminal.expect(">\r\n")
        return int(re.search(rb"<ready (\d+)>", terminal.shown)[1])

    terminal.start = start
    yield terminal
    terminal.type("\nexit\n")
    terminal.end()


def end(shell):
    """Ends the script, and expects its exit code at the shell."""
    shell.type("end\n")
    shell.expect("<read end>")
    shell.type("echo code=$?.\n")
    shell.expect("code=7.")


def test_the_terminal_interrupts_the_program_once(shell):
    shell.start()
    shell.type("\x03")
    shell.expect("<SIGINT 1>")
    end(shell)
    assert b"<SIGINT 2>" not in shell.shown


def test_a_signal_to_the_job_reaches_the_program_once(shell):
    os.killpg(shell.start(), signal.SIGTERM)
    shell.expect("<SIGTERM 1>")
    end(shell)
    assert b"<SIGTERM 2>" not in shell.shown


@pytest.mark.parametrize("keys", ["\x1a", "stop\n"], ids=["by the terminal", "by itself"])
def test_a_stopped_program_stops_the_job(shell, keys):
    shell.start()
    shell.type(keys)
    shell.expect("Stopped")
    shell.type("echo the-$((40 + 2))-shell\n")
    shell.expect("the-42-shell")
    shell.type("fg\n")
    shell.type("again\n")
    shell.expect("<read again>")
    end(shell)


def test_a_program_in_the_background_reads_after_it_is_brought_to_the_foreground(shell):
    shell.start("&")
    shell.type("echo the-$((40 + 2))-shell\n")
    shell.expect("the-42-shell")
    shell.type("fg\n")
    shell.type("again\n")
    shell.expect("<read again>")
    end(shell)
