"""A client for the Watchword broker: standard library only.

>>> broker = Watchword(answer=lambda challenge: ("bob", getpass.getpass()))
>>> broker.fetch("https://intranet.example/report")["body"]["value"]

A body of any size, on its way: as a file with `attach`, or in parts with `read`.

>>> download = broker.start("https://intranet.example/backup.tar")
>>> with broker.attach(download) as body, open("backup.tar", "wb") as file:
...     shutil.copyfileobj(body, file)
>>> broker.finish(download)["bodyBytes"]
"""
import base64
import itertools
import json
import os
import socket
from typing import Any, BinaryIO, Callable, Dict, Iterator, Optional, Tuple

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
        self._path = path or os.environ.get("WATCHWORD_SOCKET") or f"{runtime}/watchword/broker.sock"
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(self._path)
        # Of fetches that were begun with `start`, by name.
        self._begun: Dict[str, dict] = {}
        self._completed: Dict[str, dict] = {}
        self._lines = self._socket.makefile("rb")
        self._ids = itertools.count(1)
        self._answer = answer
        capabilities = {"challenge": {"delivery": "request"}} if answer else {}
        self.call("initialize", client={"name": name}, protocolVersion=1, capabilities=capabilities)

    def fetch(self, url: str, **params: Any) -> dict:
        """The response, whatever its status: `status`, `headers`, `body` and more, as `fetch/run` returns them."""
        return self.call("fetch/run", url=url, **params)

    def start(self, url: str, **params: Any) -> dict:
        """Begins a fetch whose body is taken by `attach` or `read`; then `finish` says how it went."""
        return self.call("fetch/start", url=url, **params)

    def headers(self, download: dict) -> dict:
        """`status`, `headers` and `bodyBytes`; waits until the response has begun, and answers challenges meanwhile."""
        name = download["fetchId"]
        while name not in self._begun:
            if name in self._completed:
                return self.finish(download)
            self._receive()
        return self._begun[name]

    def attach(self, download: dict) -> BinaryIO:
        """The body of a fetch that was begun with `start`, as a file. Its end is not yet success: that says `finish`."""
        self.headers(download)
        with socket.socket(socket.AF_UNIX) as second:
            second.connect(self._path)
            params = {"token": download["attachToken"], "side": "response"}
            second.sendall(_line({"jsonrpc": "2.0", "id": 1, "method": "fetch/attach", "params": params}))
            body = second.makefile("rb")
        reply = json.loads(body.readline())
        if "error" in reply:
            body.close()
            raise BrokerError(reply["error"])
        return body

    def read(self, fetch: dict, max_bytes: int = 1 << 20) -> Iterator[bytes]:
        """The body in parts: of a fetch that was begun with `start`, or of a `body` that came as a handle."""
        is_at_end = False
        while not is_at_end:
            part = self.call("fetch/read", fetchId=fetch["fetchId"], maxBytes=max_bytes)
            value, is_at_end = part["data"]["value"], part["eof"]
            yield base64.b64decode(value) if part["data"]["type"] == "base64" else value.encode()

    def finish(self, download: dict) -> dict:
        """What `fetch` returns, less `body`; waits until the body has been taken. Raises when it is not whole."""
        name = download["fetchId"]
        while name not in self._completed:
            self._receive()
        self._begun.pop(name, None)
        result = self._completed.pop(name)
        if "error" in result:
            raise BrokerError(result["error"])
        return result

    def call(self, method: str, **params: Any) -> dict:
        request = next(self._ids)
        self._send({"jsonrpc": "2.0", "id": request, "method": method, "params": params})
        message = self._receive()
        while "method" in message or message.get("id") != request:
            message = self._receive()
        if "error" in message:
            raise BrokerError(message["error"])
        return message["result"]

    def close(self) -> None:
        self._socket.close()

    def _receive(self) -> dict:
        """The next message. What comes unasked is dealt with here."""
        line = self._lines.readline()
        if not line:
            raise ConnectionError("the broker has closed the connection")
        message = json.loads(line)
        if message.get("method") == "auth/challenge":
            self._send({"jsonrpc": "2.0", "id": message["id"], "result": self._reply(message["params"])})
        elif message.get("method") == "fetch/headers":
            self._begun[message["params"]["fetchId"]] = message["params"]
        elif message.get("method") == "fetch/completed":
            self._completed[message["params"]["fetchId"]] = message["params"]
        return message

    def _reply(self, challenge: Challenge) -> dict:
        credential = self._answer(challenge) if self._answer else None
        if credential is None:
            return {"action": "continue"}
        user, password = credential
        return {"action": "credential", "credential": {"type": "password", "user": user, "password": password}}

    def _send(self, message: dict) -> None:
        self._socket.sendall(_line(message))


def _line(message: dict) -> bytes:
    return json.dumps(message).encode() + b"\n"
