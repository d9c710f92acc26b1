"""The second connection of a fetch in steps, and functions for tests of bodies that are transferred."""
import base64
import hashlib
import json
import time

from .client import connected, cut, framed


class Attached:
    """A connection after its `fetch/attach`. `reply` is the reply; `start` is the part of the body that arrived with it."""

    def __init__(self, path, token, side="response", framing="lines", seconds=30, receive_buffer=None):
        self.socket = connected(path, seconds, receive_buffer)
        message = {"jsonrpc": "2.0", "id": 1, "method": "fetch/attach", "params": {"token": token, "side": side}}
        self.socket.sendall(framed(json.dumps(message).encode(), framing))
        buffer = b""
        while not (found := cut(buffer, framing)):
            data = self.socket.recv(1 << 16)
            assert data, f"the connection ended before the reply: {buffer!r}"
            buffer += data
        self.reply, self.start = json.loads(found[0]), found[1]

    def parts(self):
        if self.start:
            yield self.start
            self.start = b""
        while data := self.socket.recv(1 << 20):
            yield data

    def read(self):
        return b"".join(self.parts())

    def digest(self):
        return digest_of(self.parts())

    def close(self):
        self.socket.close()


def digest_of(parts):
    digest, count = hashlib.sha256(), 0
    for part in parts:
        digest.update(part)
        count += len(part)
    return digest.hexdigest(), count


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class Download:
    """A fetch that `client` began with `fetch/start`, and its notifications."""

    def __init__(self, client, url, **params):
        self.client = client
        begun = client.call("fetch/start", {"url": url, **params})
        assert "result" in begun, begun
        self.id, self.token = begun["result"]["fetchId"], begun["result"]["attachToken"]

    def attach(self, **more):
        attached = self.try_to_attach(**more)
        assert attached.reply.get("result") == {}, attached.reply
        return attached

    def try_to_attach(self, **more):
        more.setdefault("framing", self.client.framing)
        return Attached(self.client.socket.getpeername(), self.token, **more)

    def notifications(self, method):
        return [message["params"] for side, message in list(self.client.messages)
                if side == "broker" and message.get("method") == method and message["params"]["fetchId"] == self.id]

    def _wait(self, method, seconds):
        with self.client.arrived:
            came = self.client.arrived.wait_for(lambda: self.notifications(method), seconds)
            assert came, f"no {method} for {self.id} within {seconds} s"
            return came[0]

    def headers(self, seconds=30):
        return self._wait("fetch/headers", seconds)

    def completed(self, seconds=30):
        return self._wait("fetch/completed", seconds)

    def failure(self, seconds=30):
        completed = self.completed(seconds)
        assert "error" in completed, completed
        return completed["error"]["data"]["kind"]

    def parts(self, max_bytes=1 << 20):
        return read_parts(self.client, self.id, max_bytes)

    def cancel(self):
        return self.client.call("fetch/cancel", {"fetchId": self.id})["result"]["cancelled"]


def read_parts(client, fetch_id, max_bytes=1 << 20):
    """Yields the parts of the body of a handle, or of a fetch in steps, read with `fetch/read`."""
    offset = 0
    while True:
        reply = client.call("fetch/read", {"fetchId": fetch_id, "maxBytes": max_bytes})
        assert "result" in reply, reply
        part = reply["result"]
        value = part["data"]["value"]
        data = base64.b64decode(value) if part["data"]["type"] == "base64" else value.encode()
        assert part["offsetBytes"] == offset and len(data) <= max_bytes
        offset += len(data)
        yield data
        if part["eof"]:
            return


def eventually(condition, what, seconds=30, pause=0.01):
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, f"after {seconds} s: {what() if callable(what) else what}"
        time.sleep(pause)
    return value


def wait_until_still(client, value):
    """Returns the value once it has not changed during many iterations of the broker's loop, in which the broker would read. Returning
    too early can only hide a failure."""
    last = -1
    while last != (last := value()):
        for _ in range(200):
            client.call("ping")
    return last
