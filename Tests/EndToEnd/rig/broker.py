"""Runs the real broker with a home directory of its own."""
import atexit
import contextlib
import functools
import os
import pathlib
import resource
import shutil
import signal
import tempfile

import psutil

from rig.bodies import eventually
from rig.waiting import is_ready, started

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAMS = ROOT / "Tests" / "EndToEnd" / "programs"


# With `contrib/test --installed`, the prefix of the installation, or its place in an unpacked package.
PREFIX = pathlib.Path(os.environ["WATCHWORD_INSTALLED"]) if "WATCHWORD_INSTALLED" in os.environ else None
INSTALLED = {"watchword": "bin", "watchwordd": "bin", "watchword-pac": "lib/watchword"}


def program(name):
    """Returns the program `name`: the installed one, or the one in WATCHWORD_BIN_DIR or the debug build."""
    if PREFIX and name in INSTALLED:
        path = PREFIX / INSTALLED[name] / name
    else:
        path = pathlib.Path(os.environ.get("WATCHWORD_BIN_DIR", ROOT / ".build" / "debug")) / name
    assert path.exists(), f"{path} is missing; run `swift build`"
    return str(path)


def part(inside, source):
    """Returns a folder of the installation, or the one in `contrib` from which it is installed."""
    return PREFIX / inside if PREFIX else ROOT / "contrib" / source


@functools.cache
def binaries():
    """Returns a folder with all programs, as a build has it."""
    if not PREFIX:
        return os.path.dirname(program("watchwordd"))
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    os.chmod(folder, 0o755)
    for name in INSTALLED:
        shutil.copy(program(name), folder)
    return folder


class Broker:
    """Starts `watchwordd`, and ends it by its process id. `max_descriptors` limits its open files and sockets."""

    def __init__(self, folder, *options, environment=None, max_descriptors=None):
        self.folder, self.options, self.max_descriptors = pathlib.Path(folder), options, max_descriptors
        self.home, runtime = self.folder / "home", self.folder / "run"
        for one in (self.home, runtime):
            one.mkdir(mode=0o700, exist_ok=True)
        self.socket, self.restricted = str(runtime / "broker.sock"), str(runtime / "restricted.sock")
        self.log_path = self.folder / "broker.log"
        self.environment = {"HOME": str(self.home), "XDG_RUNTIME_DIR": str(runtime), "PATH": os.environ["PATH"], **(environment or {})}
        self.process = None

    def start(self, seconds=30):
        readable, writable = os.pipe()
        self.process = started(
            [program("watchwordd"), "--socket", self.socket, "--log-level", "debug", "--ready-fd", str(writable), *self.options],
            self.log_path, env=self.environment, pass_fds=[writable],
            # Without this function, no copy is made of the tests' memory.
            preexec_fn=self._limit if self.max_descriptors else None)
        self.about = psutil.Process(self.process.pid)
        os.close(writable)
        with open(readable) as file:
            assert is_ready(file, seconds) and file.readline() == "ready\n", f"the broker did not start: {self.log[-2000:]}"
        return self

    def _limit(self):
        resource.setrlimit(resource.RLIMIT_NOFILE, (self.max_descriptors, self.max_descriptors))

    def stop(self, seconds=20):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def reload(self, text=None):
        """Makes it load its configuration again, which is this text if one is given."""
        if text is not None:
            pathlib.Path(self.options[self.options.index("--config") + 1]).write_text(text)
        count = self.log.count("configuration reloaded")
        self.process.send_signal(signal.SIGHUP)
        eventually(lambda: self.log.count("configuration reloaded") > count, lambda: self.log[-1000:])

    def kill(self):
        self.process.kill()
        self.process.wait(30)

    @property
    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    @property
    def descriptors(self):
        return self.about.num_fds() if os.geteuid() == 0 else None

    @property
    def resident_kilobytes(self):
        return self.about.memory_info().rss >> 10

    @property
    def peak_kilobytes(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

    @property
    def processor_seconds(self):
        return sum(self.about.cpu_times()[:2])

    @property
    def temporary_files(self):
        """The disk space used by each of its unlinked files in /var/tmp, in bytes."""
        folder, found = f"/proc/{self.process.pid}/fd", []
        for name in os.listdir(folder):
            # It may be closed meanwhile.
            with contextlib.suppress(FileNotFoundError):
                if "/var/tmp/" in os.readlink(f"{folder}/{name}"):
                    found.append(os.stat(f"{folder}/{name}").st_blocks * 512)
        return found

    @property
    def temporary_bytes(self):
        return sum(self.temporary_files)
