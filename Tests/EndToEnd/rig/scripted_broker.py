"""Scripted brokers, for questions that no server on this machine can be made to raise."""
import contextlib
import json
import queue
import socket
import threading

from .broker import program
from .client import lines_of
from .scripted import end_listening
from .terminal import Terminal

OK = {"status": 200, "httpVersion": "1.1", "headers": [], "body": {"type": "string", "value": "done\n"}}


def send(connection, *messages):
    with contextlib.suppress(BrokenPipeError):  # the client has ended
        connection.sendall(lines_of(*messages))


class Listening:
    """Accepts connections at `path`. `take(connection, message)` gets each message, and returns false to close the connection."""

    def __init__(self, path, take=None):
        self.path, self.last, self.take = str(path), 0, take or self.take
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=self.listener.accept()[:1], daemon=True).start()

    def _serve(self, connection):
        self.connection, self.file = connection, connection.makefile("rb")
        with contextlib.suppress(OSError), connection, self.file as lines:
            for line in lines:
                if self.take(connection, json.loads(line)) is False:
                    return

    def send(self, method, params):
        self.last, self.asked = self.last + 1, params
        send(self.connection, {"id": self.last, "method": method, "params": params})

    def withdraw(self, reason="answered"):
        """Withdraws the last request, a challenge, as the broker does: both messages at once."""
        told = {"challengeId": self.asked["challengeId"], "fetchId": self.asked["fetchId"], "reason": reason}
        send(self.connection, {"method": "$/cancelRequest", "params": {"id": self.last}}, {"method": "auth/cancelled", "params": told})

    def replied(self, reply):
        assert reply["id"] == self.last, reply
        return reply.get("result", reply.get("error"))

    def close(self):
        end_listening(self.listener)


class ScriptedBroker(Listening):
    """Serves one `watchword fetch`. `plan(broker, params)` gets the parameters of `fetch/start`, and returns the result and the
    body for the attached connection, or raises `Failure`; it may call `ask`. `called` contains the requests of the client."""

    class Failure(Exception):
        def __init__(self, code, kind, message):
            self.error = {"code": code, "message": message, "data": {"kind": kind, "retry": "never"}}

    def __init__(self, folder, plan):
        self.plan, self.called = plan, []
        super().__init__(folder / "scripted.sock")
        self.environment = {"HOME": str(folder), "PATH": "/usr/bin:/bin", "WATCHWORD_SOCKET": self.path, "TERM": "dumb"}

    def at_terminal(self, *arguments):
        return Terminal(program("watchword"), *arguments, environment=self.environment)

    def ask(self, method, params):
        """Sends a request of the broker; returns the client's reply."""
        self.send(method, params)
        return self.replied(json.loads(self.file.readline()))

    def _accept(self):
        """The second connection is accepted during the fetch."""
        self._serve(self.listener.accept()[0])

    def take(self, connection, message):
        self.called.append((message["method"], message.get("params")))
        if message["method"] != "fetch/start":
            return send(connection, {"id": message["id"], "result": {}})
        send(connection, {"id": message["id"], "result": {"fetchId": "f1", "attachToken": "t"}})
        return self._fetch(connection, message["params"])

    def _fetch(self, connection, params):
        body, _ = self.listener.accept()
        with body, body.makefile("rb") as lines:
            attach = json.loads(lines.readline())
            assert (attach["method"], attach["params"]) == ("fetch/attach", {"token": "t", "side": "response"}), attach
            send(body, {"id": attach["id"], "result": {}})
            try:
                result = {"fetchId": "f1", "url": params["url"], **self.plan(self, params)}
                data = result.pop("body")["value"].encode()
                result.setdefault("bodyBytes", len(data))
                send(connection, {"method": "fetch/headers", "params": result})
                with contextlib.suppress(BrokenPipeError):
                    body.sendall(data)
                send(connection, {"method": "fetch/completed", "params": result})
            except self.Failure as failure:
                send(connection, {"method": "fetch/completed", "params": {"fetchId": "f1", "error": failure.error}})


class AgentBroker(Listening):
    """Serves agents. `ask` sends a challenge; the agent's replies are in `replies`."""

    def __init__(self, folder):
        self.home, self.replies = folder / "scripted", queue.Queue()
        self.home.mkdir(mode=0o700)
        self.environment = {"HOME": str(self.home), "XDG_RUNTIME_DIR": str(self.home), "PATH": "/usr/bin:/bin"}
        super().__init__(self.home / "broker.sock")
        self.socket = self.path

    def take(self, connection, message):
        if "method" not in message:
            self.replies.put(message)
        elif "id" in message:
            send(connection, {"id": message["id"], "result": {}})

    def ask(self, params):
        self.send("auth/challenge", params)

    def answer(self):
        return self.replied(self.replies.get(timeout=30))


@contextlib.contextmanager
def scripted(folder, answer):
    """Yields the path of a socket whose broker sends the messages that `answer(message)` yields, and then closes the connection if that
    returned None."""
    def told(connection, message):
        messages = answer(message)
        return messages is not None and send(connection, *messages)

    with contextlib.closing(Listening(folder / "scripted.sock", told)) as broker:
        yield broker.path
