"""Clients that end in the middle of a challenge, each in one of the ways in which a program can end."""
import json
import socket

from .scripted import reset_at_close
from .subjects import Relay

# Closes the connection without a message, like a killed program.
WHOLLY = ("close", "reset", "kill")
# Can still read, but not answer.
HALF = ("half",)


class DyingClient:
    """Subscribes with `subscription`, starts a fetch of each URL, and reads until it receives a challenge."""

    def __init__(self, path, way, *urls, subscription=None, **params):
        self.way = way
        calls = [("auth/subscribe", {"mode": "everything", **(subscription or {})}), *(("fetch/run", {"url": url, **params}) for url in urls)]
        text = b"".join(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"
                        for number, (method, params) in enumerate(calls))
        if way == "kill":
            self.process = Relay(path).process
            self.process.stdin.write(text)
            self.lines = self.process.stdout
        else:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(30)
            self.socket.connect(path)
            self.socket.sendall(text)
            self.lines = self.socket.makefile("rb")

    def messages(self):
        """Yields the messages up to the end."""
        for line in self.lines:
            if (message := json.loads(line)) != "closed":
                yield message

    def message(self):
        """Returns the next message, or `None` at the end."""
        return next(self.messages(), None)

    def wait_for(self, method):
        found = next((message for message in self.messages() if message.get("method") == method), None)
        assert found, f"no {method} arrived"
        return found

    def statuses(self):
        """Returns the statuses of the replies that arrive until the end, in order."""
        return [message["result"]["status"] for message in self.messages() if "status" in message.get("result", {})]

    def die(self):
        if self.way == "kill":
            self.process.kill()
            self.process.wait()
        elif self.way == "half":
            self.socket.shutdown(socket.SHUT_WR)
            return
        elif self.way == "reset":
            reset_at_close(self.socket)
        self.lines.close()
        (self.process.stdin if self.way == "kill" else self.socket).close()
