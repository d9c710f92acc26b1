"""Clients that end in the middle of a challenge, each in one of the ways in which a program can end."""
import json
import signal
import socket
import struct
import subprocess
import sys

# Closes the connection without a message, like a killed program.
WHOLLY = ("close", "reset", "kill")
# Can still read, but not answer.
HALF = ("half",)

PROGRAM = """
import socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
connection.sendall(sys.stdin.buffer.read())
while data := connection.recv(65536):
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
"""


class DyingClient:
    """Subscribes with `subscription`, starts a fetch of each URL, and reads until it receives a challenge."""

    def __init__(self, path, way, *urls, subscription=None, **params):
        self.way, self.buffer, self.process, self.socket = way, b"", None, None
        subscribe = ("auth/subscribe", {"mode": "everything", **(subscription or {})})
        calls = [subscribe, *(("fetch/run", {"url": url, **params}) for url in urls)]
        text = b"".join(
            json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"
            for number, (method, params) in enumerate(calls))
        if way == "kill":
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
            self.process.stdin.write(text)
            self.process.stdin.close()
        else:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(30)
            self.socket.connect(path)
            self.socket.sendall(text)

    def message(self):
        """Returns the next message, or `None` at the end."""
        while b"\n" not in self.buffer:
            data = self.process.stdout.read(1 << 16) if self.process else self.socket.recv(1 << 16)
            if not data:
                return None
            self.buffer += data
        line, _, self.buffer = self.buffer.partition(b"\n")
        return json.loads(line)

    def wait_for(self, method):
        while (message := self.message()) is not None:
            if message.get("method") == method:
                return message
        raise AssertionError(f"no {method} arrived")

    def statuses(self):
        """Returns the statuses of the replies that arrive until the end, in order."""
        found = []
        while (message := self.message()) is not None:
            if "status" in message.get("result", {}):
                found.append(message["result"]["status"])
        return found

    def die(self):
        if self.way == "kill":
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process.stdout.close()
        elif self.way == "half":
            self.socket.shutdown(socket.SHUT_WR)
        else:
            if self.way == "reset":
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.socket.close()
