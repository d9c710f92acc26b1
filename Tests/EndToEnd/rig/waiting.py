"""Waits for descriptors and for processes. Not with select(2), which does not support descriptors above 1023, and a long run has
such descriptors."""
import array
import fcntl
import pathlib
import select
import socket
import subprocess
import termios


def started(command, log, **more):
    """Starts a program without input, whose output is appended to the file `log`."""
    with open(log, "ab") as output:
        return subprocess.Popen(command, **{"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output, **more})


def output(*command, **more):
    """Runs a program, which must succeed; returns what it prints."""
    done = subprocess.run(command, **{"capture_output": True, "text": True, "timeout": 60, **more})
    assert done.returncode == 0, f"{' '.join(map(str, command))}: {done.stdout}{done.stderr}"
    return done.stdout


def ended(process, seconds=30):
    """Ends a process if it runs, at last by force; returns its exit status."""
    if process.poll() is None:
        process.terminate()
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait(seconds)


def is_ready(file, seconds):
    """Whether `file`, an object or a number, is readable within `seconds`."""
    poll = select.poll()
    poll.register(file, select.POLLIN | select.POLLHUP | select.POLLERR)
    return bool(poll.poll(seconds * 1000))


def accepts(path):
    with socket.socket(socket.AF_UNIX) as connection:
        return connection.connect_ex(str(path)) == 0


#: The numbers of poll(2) and ppoll(2), on x86-64 and on AArch64.
POLLS = ["7", "271", "73"]


def is_polling(process):
    """Whether a child process waits in poll(2)."""
    return pathlib.Path(f"/proc/{process.pid}/syscall").read_text().split()[0] in POLLS


def is_drained(pipe):
    """Whether the reader of a pipe has read everything that was written to it."""
    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0] == 0
