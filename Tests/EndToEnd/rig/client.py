"""A client that is independent of ours. It speaks both framings, and records every message and every byte."""
import contextlib
import json
import queue
import socket
import threading

def password_answer(user, password, **more):
    return {"action": "credential", "credential": {"type": "password", "user": user, "password": password, **more}}


def trust_answer(challenge, persistence="none"):
    leaf = challenge["protectionSpace"]["serverTrust"]["chain"][0]
    return {"action": "credential", "credential": {"type": "trust", "spkiSha256": leaf["spkiSha256"], "persistence": persistence}}


def connected(path, seconds=None, receive_buffer=None):
    """Returns a connection to a broker, with this time limit for each operation."""
    connection = socket.socket(socket.AF_UNIX)
    if receive_buffer:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    # connect(2) with a timeout does not wait for room in the kernel's queue.
    connection.connect(path)
    connection.settimeout(seconds)
    return connection


def lines_of(*messages):
    return b"".join(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n" for message in messages)


def framed(text, framing):
    return text + b"\n" if framing == "lines" else b"Content-Length: %d\r\n\r\n%s" % (len(text), text)


def cut(buffer, framing):
    """Returns the first message in `buffer` and the rest, or None if it is not complete."""
    head, found, rest = buffer.partition(b"\n" if framing == "lines" else b"\r\n\r\n")
    if not found or framing == "lines":
        return (head, rest) if found else None
    length = int(head[len(b"Content-Length: "):])
    assert head == b"Content-Length: %d" % length, head
    return (rest[:length], rest[length:]) if len(rest) >= length else None


class Client:
    def __init__(self, path, framing="lines", delivery="request", answer=None, name="rig"):
        """`answer` is the result for the reply to each challenge, or a function of the challenge's parameters; `asked` are the parameters.

        Without `answer`, challenges wait in `challenges` for `reply`. `delivery=None` skips `initialize`.
        """
        self.framing, self.answer, self.asked = framing, answer, []
        self.takes = {}  # method: what is done with a message of the broker; the others wait in `notifications`
        self.messages = []  # ("client" | "broker", message)
        self.received_bytes = b""
        self.replies, self.challenges, self.notifications = {}, queue.Queue(), queue.Queue()
        self.arrived = threading.Condition()
        self.closed = threading.Event()
        self.next_id = 0
        self.socket = connected(path)
        threading.Thread(target=self._read, daemon=True).start()
        if delivery is not None:
            capabilities = {"challenge": {"delivery": delivery}}
            reply = self.call("initialize", {"client": {"name": name}, "protocolVersion": 1, "capabilities": capabilities})
            assert "result" in reply, reply

    # Sending

    def send_bytes(self, data):
        self.socket.sendall(data)

    def send(self, message):
        self.messages.append(("client", message))
        self.send_bytes(framed(json.dumps(message).encode(), self.framing))

    def start(self, method, params=None):
        self.next_id += 1
        message = {"jsonrpc": "2.0", "id": self.next_id, "method": method}
        self.send(message if params is None else {**message, "params": params})
        return self.next_id

    def wait(self, call, seconds=30):
        with self.arrived:
            assert self.arrived.wait_for(lambda: call in self.replies or self.closed.is_set(), seconds), f"no reply to {call}"
            return self.replies[call]

    def call(self, method, params=None, seconds=30):
        return self.wait(self.start(method, params), seconds)

    def fetch(self, url, seconds=30, **params):
        return self.call("fetch/run", {"url": url, **params}, seconds)

    def cancel(self, call):
        self.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": call}})
        assert self.wait(call)["error"]["code"] == -32800

    def store(self, server, user, password, persistence="forSession", **space):
        credential = {"type": "password", "user": user, "password": password, "persistence": persistence}
        reply = self.call("credential/store", {"credential": credential, "protectionSpace": {
            "protocol": "http", "host": "127.0.0.1", "port": server.port, **space}})
        assert "result" in reply, reply
        return reply["result"]["id"]

    def reply(self, challenge, result):
        self.send({"jsonrpc": "2.0", "id": challenge["id"], "result": result})

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    # Receiving

    def _read(self):
        buffer = b""
        try:
            while data := self.socket.recv(1 << 16):
                self.received_bytes += data
                buffer += data
                while found := cut(buffer, self.framing):
                    message, buffer = found
                    self._take(json.loads(message))
        except OSError:
            pass
        finally:
            self.closed.set()
            with self.arrived:
                self.arrived.notify_all()

    def _take(self, message):
        self.messages.append(("broker", message))
        messages = message if isinstance(message, list) else [message]
        for one in messages:
            method = one.get("method")
            if method == "auth/challenge" and self.answer is not None:
                self.asked.append(one["params"])
                self.reply(one, self.answer(one["params"]) if callable(self.answer) else self.answer)
            elif method == "auth/challenge":
                self.challenges.put(one)
            elif method in self.takes:
                self.takes[method](one)
            elif method:
                self.notifications.put(one)
        with self.arrived:
            self.replies.update({one.get("id"): one for one in messages if "method" not in one})
            self.arrived.notify_all()
