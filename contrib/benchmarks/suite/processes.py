"""The processes of a measurement."""
import os
import pathlib
import select
import socket
import subprocess
import time

SECONDS = 20


class Process:
    """A server on the Unix socket `path`; call `wait_for_socket` before using it. Leaving the context terminates it."""

    def __init__(self, command, path, environment=None, pass_fds=(), log=None):
        self.path = str(path)
        with open(log or os.devnull, "ab") as output:
            self.process = subprocess.Popen(
                [str(word) for word in command], env=environment, pass_fds=pass_fds, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        self.pid = self.process.pid

    def wait_for_socket(self):
        end = time.monotonic() + SECONDS
        while True:
            try:
                with socket.socket(socket.AF_UNIX) as probe:
                    return probe.connect(self.path)
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"nothing listens on {self.path}") from None
                time.sleep(0.01)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(SECONDS)

    @property
    def cpu_seconds(self):
        """The CPU time of all threads, from the clock of the process (clock_getcpuclockid(3))."""
        return time.clock_gettime(~self.pid << 3 | 2)

    def kibibytes(self, name="VmRSS"):
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        return int(status.split(f"{name}:")[1].split()[0])


class Broker(Process):
    """A ready `watchwordd` with a home directory below `folder` and a configuration text. With a `prefix`, a command that changes the
    user, the folder belongs to that user."""

    def __init__(self, binaries, folder, *options, configuration="", prefix=()):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(mode=0o700)
        home, runtime = self.folder / "home", self.folder / "run"
        for inner in [home, runtime]:
            inner.mkdir(mode=0o700)
        (self.folder / "config.toml").write_text(configuration)
        self.environment = {"HOME": str(home), "XDG_RUNTIME_DIR": str(runtime), "PATH": os.environ["PATH"]}
        if prefix:
            output = subprocess.run([*prefix, "id", "-u"], check=True, capture_output=True, text=True, timeout=SECONDS).stdout
            for path in [self.folder, *self.folder.iterdir()]:
                os.chown(path, int(output), -1)
        self.command = [*prefix, binaries / "watchwordd", "--config", self.folder / "config.toml", "--socket", runtime / "broker.sock", *options]
        log = self.folder / "log"
        readable, writable = os.pipe()
        try:
            super().__init__([*self.command, "--ready-fd", writable], runtime / "broker.sock", self.environment, [writable], log)
        finally:
            os.close(writable)
        poll = select.poll()
        poll.register(readable, select.POLLIN)
        is_ready = poll.poll(SECONDS * 1000) and os.read(readable, 16) == b"ready\n"
        os.close(readable)
        if not is_ready:
            self.__exit__()
            raise RuntimeError(f"the broker did not start: {log.read_text()[-2000:]}")
