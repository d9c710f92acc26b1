"""A scripted broker, for questions that no server on this machine can be made to raise."""
import json
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
        self.last = getattr(self, "last", 0) + 1
        self._send({"id": self.last, "method": method, "params": params})
        reply = json.loads(self.file.readline())
        assert reply["id"] == self.last, reply
        return reply.get("result", reply.get("error"))

    def _send(self, message):
        self.connection.sendall(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

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
            body.sendall(json.dumps({"jsonrpc": "2.0", "id": attach["id"], "result": {}}).encode() + b"\n")
            try:
                result = {"fetchId": "f1", "url": params["url"], **self.plan(self, params)}
                data = result.pop("body")["value"].encode()
                result.setdefault("bodyBytes", len(data))
                self._send({"method": "fetch/headers", "params": result})
                body.sendall(data)
                self._send({"method": "fetch/completed", "params": result})
            except self.Failure as failure:
                self._send({"method": "fetch/completed", "params": {"fetchId": "f1", "error": failure.error}})

    def close(self):
        self.listener.close()
