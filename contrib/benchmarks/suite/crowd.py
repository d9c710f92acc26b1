"""Idle clients, and clients whose fetches wait for answers to their challenges."""
import json
import socket
import time

from rig.waiting import is_ready

HELLO = {"client": {"name": "crowd"}, "protocolVersion": 1, "capabilities": {"challenge": {"delivery": "request"}}}
AT_ONCE = 512
SECONDS = 60


def line(number, method, params):
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"


class Crowd:
    """`count` idle connections that the broker has accepted."""

    def __init__(self, path, count):
        self.path, self.connections = path, []
        while len(self.connections) < count:
            self._connect(min(AT_ONCE, count - len(self.connections)))

    def _connect(self, count):
        for _ in range(count):
            self.connections.append(socket.socket(socket.AF_UNIX))
            self.connections[-1].connect(self.path)
        # Connections are accepted in order, so the last reply suffices.
        self.connections[-1].sendall(line(1, "ping", {}))
        if not is_ready(self.connections[-1], SECONDS) or not self.connections[-1].recv(1 << 16):
            raise RuntimeError("the broker did not accept all connections")

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        for connection in self.connections:
            connection.close()


class Waiting:
    """`count` fetches from the realms `first`, `first` + 1 and so on, each of which waits for the answer to its challenge."""

    PER_CONNECTION = 125

    def __init__(self, path, url, first, count):
        self.connections = []
        numbers = list(range(first, first + count))
        for start in range(0, count, self.PER_CONNECTION):
            part = numbers[start:start + self.PER_CONNECTION]
            connection = socket.socket(socket.AF_UNIX)
            self.connections.append(connection)
            connection.connect(path)
            fetches = [line(number + 1, "fetch/run", {"url": f"{url}realm/{number}/1k"}) for number in part]
            connection.sendall(line(0, "initialize", HELLO) + b"".join(fetches))
            self._wait_for_challenges(connection, len(part))

    @staticmethod
    def _wait_for_challenges(connection, count):
        received, end = b"", time.monotonic() + SECONDS
        while received.count(b'"auth/challenge"') < count:
            part = connection.recv(1 << 18) if is_ready(connection, max(0, end - time.monotonic())) else b""
            if not part:
                raise RuntimeError(f"expected {count} challenges: {received[-500:]}")
            received += part

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        for connection in self.connections:
            connection.close()
