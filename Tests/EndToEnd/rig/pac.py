"""The evaluator of PAC files (watchword-pac), run alone."""
import subprocess

from .broker import program


class Evaluator:
    """One process. `environment` is all it gets."""

    def __init__(self, script, environment=None):
        self.process = subprocess.Popen(
            [program("watchword-pac")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment or {"TZ": "UTC"})
        self.loaded = self.load(script)

    def load(self, script):
        """Returns the reply to the loading of a script."""
        data = script.encode()
        return self._ask(b"load %d\n" % len(data) + data)

    def find(self, url="http://h.test/", host="h.test"):
        """Returns the reply to a question."""
        return self._ask(f"find {url} {host}\n".encode())

    def _ask(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()
        return self.process.stdout.readline().decode().rstrip("\n")

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        if self.process.poll() is None:
            self.process.kill()
        return self.process.wait(20)
