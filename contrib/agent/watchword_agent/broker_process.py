"""The running broker as a process: which configuration it reads, and how it is told to read it again."""
import os
import pathlib
import shutil
import signal
import subprocess
from typing import Optional

from . import places
from .escaping import PATH_LIMIT, shown
from .messages import _

#: The time limit for the check of a configuration.
CHECK_SECONDS = 5


def configuration_file(pid: object) -> str:
    """Returns the path of the configuration that the broker reads: that of its option `--config`, which can be relative to an
    unknown directory, or else the usual one."""
    words = _words(pid) if _is_broker(pid) else []
    for index, word in enumerate(words):
        name, equals, path = word.partition("=")
        if name == "--config":
            return path if equals else "".join(words[index + 1:index + 2])
    return places.configuration_file()


def reload(pid: object) -> Optional[str]:
    """Tells the broker to read its configuration again. Returns why that was not possible, or `None`."""
    if not _is_broker(pid):
        return _("The file is written, but the broker's process was not found. Restart the broker to use it.")
    try:
        os.kill(int(str(pid)), signal.SIGHUP)
    except OSError as problem:
        return _("The file is written, but the broker did not read it: {reason}").format(reason=problem.strerror)
    return None


def check(path: str) -> Optional[str]:
    """Checks a configuration file with `watchword config check`. Returns its first error, or `None`."""
    program = _program()
    if program is None:
        return _("The program “watchword”, which checks the configuration, was not found")
    try:
        done = subprocess.run(
            [program, "config", "check", path], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=CHECK_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return _("The configuration could not be checked, so it is not changed")
    if done.returncode == 0:
        return None
    # The first line names the file, which is a temporary one.
    lines = [line for line in done.stderr.splitlines() if line.startswith("line ")] or done.stderr.splitlines()
    return _("The configuration would be invalid: {reason}").format(reason=shown(lines[0] if lines else "", PATH_LIMIT))


def _program() -> Optional[str]:
    """Returns the program that was installed with the agent, or the one in PATH."""
    agent = pathlib.Path(__file__).resolve().parents[1]
    installed = agent.parents[2] / "bin" / "watchword"
    is_installed = agent.parts[-3:] == ("lib", "watchword", "agent") and os.access(installed, os.X_OK)
    return str(installed) if is_installed else shutil.which("watchword")


def _is_broker(pid: object) -> bool:
    """Whether a process of the user has the broker's name. The broker can report a number of another PID namespace."""
    if type(pid) is not int or pid <= 1:
        return False
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            facts = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    except OSError:
        return False
    return facts.get("Name") == "watchwordd" and facts.get("Uid", "").split("\t")[0] == str(os.getuid())


def _words(pid: object) -> list[str]:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return os.fsdecode(file.read(1 << 16)).split("\0")
    except OSError:
        return []
