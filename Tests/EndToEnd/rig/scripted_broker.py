"""Scripted brokers, for questions that no server on this machine can be made to raise."""
import contextlib
import json
import queue
import socket
import threading

from .terminal import Terminal
from .broker import program

OK = {"status": 200, "httpVersion": "1.1", "headers": [], "body": {"type": "string", "value": "done\n"}}


class ScriptedBroker:
    """Serves one `watchword fetch`. `plan(broker, params)` gets the parameters of `fetch/start`, and returns the result and the
    body for the attached connection, or raises `Failure`; it may call `ask`. `called` contains the requests of the client."""

    class Failure(Exception):
        def __init__(self, code, kind, message):
            self.error = {"code": code, "message": message, "data": {"kind": kind, "retry": "never"}}

    def __init__(self, folder, plan):
        self.path, self.plan, self.called, self.problem = str(folder / "scripted.sock"), plan, [], None
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(1)
        self.environment = {"HOME": str(folder), "PATH": "/usr/bin:/bin", "WATCHWORD_SOCKET": self.path, "TERM": "dumb"}
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def at_terminal(self, *arguments):
        return Terminal(program("watchword"), *arguments, environment=self.environment)

    def ask(self, method, params):
        """Sends a request of the broker; returns the client's reply."""
        self.send(method, params)
        reply = json.loads(self.file.readline())
        assert reply["id"] == self.last, reply
        return reply.get("result", reply.get("error"))

    def send(self, method, params):
        """Sends a request of the broker, whose reply `ask` would wait for."""
        self.last = getattr(self, "last", 0) + 1
        self._send({"id": self.last, "method": method, "params": params})

    def withdraw(self, challenge, reason):
        """Withdraws the last request, a challenge."""
        _withdraw(self.connection, self.last, challenge, reason)

    def _send(self, message):
        _send(self.connection, message)

    def _serve(self):
        self.connection, _ = self.listener.accept()
        self.file = self.connection.makefile("rb")
        for line in self.file:
            message = json.loads(line)
            self.called.append((message["method"], message.get("params")))
            if message["method"] == "fetch/start":
                self._send({"id": message["id"], "result": {"fetchId": "f1", "attachToken": "t"}})
                self._fetch(message["params"])
            else:
                self._send({"id": message["id"], "result": {}})

    def _fetch(self, params):
        body, _ = self.listener.accept()
        with body, body.makefile("rb") as lines:
            attach = json.loads(lines.readline())
            assert (attach["method"], attach["params"]) == ("fetch/attach", {"token": "t", "side": "response"}), attach
            _send(body, {"id": attach["id"], "result": {}})
            try:
                result = {"fetchId": "f1", "url": params["url"], **self.plan(self, params)}
                data = result.pop("body")["value"].encode()
                result.setdefault("bodyBytes", len(data))
                self._send({"method": "fetch/headers", "params": result})
                with contextlib.suppress(BrokenPipeError):
                    body.sendall(data)
                self._send({"method": "fetch/completed", "params": result})
            except self.Failure as failure:
                self._send({"method": "fetch/completed", "params": {"fetchId": "f1", "error": failure.error}})

    def close(self):
        self.listener.close()


class AgentBroker:
    """Serves agents, one after the other. `ask` sends a challenge; the agent's replies are in `replies`."""

    def __init__(self, folder):
        self.folder = folder / "scripted"
        self.folder.mkdir(mode=0o700)
        self.socket, self.home, self.replies, self.last = str(self.folder / "broker.sock"), self.folder, queue.Queue(), 0
        self.environment = {"HOME": str(self.folder), "XDG_RUNTIME_DIR": str(self.folder), "PATH": "/usr/bin:/bin"}
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.socket)
        self.listener.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def ask(self, params):
        self.last += 1
        self.asked = params
        _send(self.connection, {"id": self.last, "method": "auth/challenge", "params": params})

    def withdraw(self, reason="answered"):
        _withdraw(self.connection, self.last, self.asked, reason)

    def answer(self):
        """Waits for the reply to the last challenge; returns its result or error."""
        reply = self.replies.get(timeout=30)
        assert reply["id"] == self.last, reply
        return reply.get("result", reply.get("error"))

    def _serve(self):
        while True:
            try:
                self.connection, _ = self.listener.accept()
            except OSError:
                return
            for line in self.connection.makefile("rb"):
                message = json.loads(line)
                if "method" not in message:
                    self.replies.put(message)
                elif "id" in message:
                    _send(self.connection, {"id": message["id"], "result": {}})

    def close(self):
        # A thread that waits in accept() is not woken by close().
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def _send(connection, message):
    with contextlib.suppress(BrokenPipeError):  # the client has ended
        connection.sendall(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def _withdraw(connection, request, challenge, reason):
    """Withdraws a challenge as the broker does: both messages at once."""
    messages = [{"method": "$/cancelRequest", "params": {"id": request}},
                {"method": "auth/cancelled", "params": {"challengeId": challenge["challengeId"], "fetchId": challenge["fetchId"], "reason": reason}}]
    connection.sendall(b"".join(json.dumps({"jsonrpc": "2.0", **one}).encode() + b"\n" for one in messages))
