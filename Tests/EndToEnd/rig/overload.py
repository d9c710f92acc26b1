"""Clients that misbehave, and measurements of their effect on other clients."""
import contextlib
import json
import statistics
import threading
import time

from .client import connected, lines_of


def line(method, params=None, number=None):
    return lines_of({**({} if number is None else {"id": number}), "method": method, "params": params or {}})


class Raw:
    """A connection that reads only when it is told to."""

    def __init__(self, path, receive_buffer=None):
        self.socket, self.sent, self.is_over = connected(path, 20, receive_buffer), 0, threading.Event()

    def send(self, data, seconds=30):
        self.socket.settimeout(seconds)
        self.socket.sendall(data)
        self.sent += len(data)
        return self

    def repeat(self, data):
        """Sends `data` repeatedly, as fast as the broker receives it, until `end`, or until the broker closes the connection."""

        def run():
            self.socket.settimeout(0.2)
            rest = data
            with contextlib.suppress(OSError):
                while not self.is_over.is_set():
                    with contextlib.suppress(TimeoutError):
                        count = self.socket.send(rest)
                        self.sent += count
                        rest = rest[count:] or data

        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()
        return self

    def drain(self):
        """Reads and discards data while the other thread sends."""

        def run():
            with contextlib.suppress(OSError):
                while not self.is_over.is_set():
                    with contextlib.suppress(TimeoutError):
                        if not self.socket.recv(1 << 20):
                            return

        threading.Thread(target=run, daemon=True).start()
        return self

    def messages(self, count=None, seconds=30):
        """Returns the next `count` messages, or all until the broker closes the connection."""
        self.socket.settimeout(seconds)
        buffer, found = b"", []
        while count is None or len(found) < count:
            data = self.socket.recv(1 << 20)
            if not data:
                break
            *lines, buffer = (buffer + data).split(b"\n")
            found += [json.loads(text) for text in lines]
        return found

    def last_words(self, seconds=30):
        """Returns all bytes until the broker closes the connection, in any framing."""
        self.socket.settimeout(seconds)
        return b"".join(iter(lambda: self.socket.recv(1 << 16), b""))

    def is_closed(self, seconds=10):
        """Whether the broker has closed the connection; discards received data."""
        end = time.monotonic() + seconds
        try:
            while (left := end - time.monotonic()) > 0:
                self.socket.settimeout(left)
                if not self.socket.recv(1 << 20):
                    return True
        except TimeoutError:
            return False
        except OSError:
            return True
        return False

    def end(self):
        self.is_over.set()
        self.socket.close()


class Others:
    """A well-behaved client, whose pings are compared with those of a client of a second broker, which has no load.

    The pings are compared in pairs, because other programs on the machine delay both of a pair.
    """

    def __init__(self, stage, client, *options):
        self.client, self.idle = client, stage.client(broker=stage.broker(*options))

    @staticmethod
    def _seconds(client):
        begin = time.perf_counter()
        assert client.call("ping", {})["result"] == {}
        return time.perf_counter() - begin

    def ratio(self, what, at_most, count=300, seconds=10):
        """Checks the median of the ratios, and prints it for pytest -s."""
        pairs, end = [], time.monotonic() + seconds
        while len(pairs) < count and (time.monotonic() < end or len(pairs) < 5):
            pairs.append((self._seconds(self.client), self._seconds(self.idle)))
        ratio = statistics.median(loaded / idle for loaded, idle in pairs)
        print(f"{what}: others' pings take {ratio:.2f} times as long as those of an idle broker (of {len(pairs)})")
        assert ratio <= at_most, f"{what}: other clients wait {ratio:.2f} times as long"
