"""A client for the Watchword broker: standard library only.

>>> broker = Watchword(answer=lambda challenge: ("bob", getpass.getpass()))
>>> broker.fetch("https://intranet.example/report")["body"]["value"]
"""
import itertools
import json
import os
import socket
from typing import Any, Callable, Optional, Tuple

Challenge = dict
#: Gets a challenge, returns user and password, or None to go on without logging in.
Answer = Callable[[Challenge], Optional[Tuple[str, str]]]


class BrokerError(Exception):
    """What the broker says went wrong. `kind` is stable, the text is for people."""

    def __init__(self, error: dict):
        data = error.get("data", {})
        super().__init__(data.get("detail", error["message"]))
        self.kind = data.get("kind")


class Watchword:
    """One connection. Calls block; challenges are answered by `answer` while a call waits."""

    def __init__(self, answer: Optional[Answer] = None, path: Optional[str] = None, name: str = "python"):
        runtime = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path or os.environ.get("WATCHWORD_SOCKET") or f"{runtime}/watchword/broker.sock")
        self._lines = self._socket.makefile("rb")
        self._ids = itertools.count(1)
        self._answer = answer
        capabilities = {"challenge": {"delivery": "request"}} if answer else {}
        self.call("initialize", client={"name": name}, protocolVersion=1, capabilities=capabilities)

    def fetch(self, url: str, **params: Any) -> dict:
        """The response, whatever its status: `status`, `headers`, `body` and more, as `fetch/run` returns them."""
        return self.call("fetch/run", url=url, **params)

    def call(self, method: str, **params: Any) -> dict:
        request = next(self._ids)
        self._send({"jsonrpc": "2.0", "id": request, "method": method, "params": params})
        for line in self._lines:
            message = json.loads(line)
            if message.get("method") == "auth/challenge":
                self._send({"jsonrpc": "2.0", "id": message["id"], "result": self._reply(message["params"])})
            elif "method" not in message and message.get("id") == request:
                if "error" in message:
                    raise BrokerError(message["error"])
                return message["result"]
        raise ConnectionError("the broker has closed the connection")

    def close(self) -> None:
        self._socket.close()

    def _reply(self, challenge: Challenge) -> dict:
        credential = self._answer(challenge) if self._answer else None
        if credential is None:
            return {"action": "continue"}
        user, password = credential
        return {"action": "credential", "credential": {"type": "password", "user": user, "password": password}}

    def _send(self, message: dict) -> None:
        self._socket.sendall(json.dumps(message).encode() + b"\n")
