"""A non-blocking connection to the broker on GLib's main loop. It reconnects after a loss."""
import json
import os
import socket
from typing import Any, Callable, Optional

from gi.repository import Gio, GLib

from . import hardening, secret, trust
from .messages import _

Message = dict[str, Any]
Result = Callable[[Message], None]

#: The first delay before a reconnection, doubled after each failure up to `LONGEST_WAIT_MS`.
FIRST_WAIT_MS = 100
LONGEST_WAIT_MS = 3_000
#: The time limit for the replies to the greeting.
GREETING_SECONDS = 10
#: The size limit of a message, the same as the broker's.
MESSAGE_LIMIT_BYTES = 16 << 20
_INTERNAL = -32603


class BrokerConnection:
    """Connects, sends the requests of `greeting`, reports received messages, and reconnects when the connection ends."""

    def __init__(self, path: str, greeting: list[tuple[str, Message]], on_message: Result) -> None:
        """`greeting` is a list of requests (method, parameters); `on_message` receives the broker's requests and notifications."""
        self._path, self._greeting, self._on_message = path, greeting, on_message
        self.on_ready: Callable[[], None] = lambda: None
        self.on_lost: Callable[[str], None] = lambda reason: None
        self.on_refused: Callable[[Message], None] = lambda error: None
        self.on_mishap: Callable[[str], None] = lambda reason: None
        self._socket: Optional[socket.socket] = None
        self._watch = self._writable = self._timer = self._greeting_timer = 0
        self._incoming, self._outgoing = bytearray(), bytearray()
        self._wait_ms = FIRST_WAIT_MS
        self._next_id = 0
        self._calls: dict[int, Result] = {}
        self._folder: Optional[Gio.FileMonitor] = None

    def start(self) -> None:
        """Connects, and retries until that succeeds."""
        if self._socket is not None:
            return
        if self._timer:
            GLib.source_remove(self._timer)
            self._timer = 0
        self._watch_folder()
        try:
            connection = self._connected()
        except OSError as problem:  # including EMFILE, which is temporary
            return self._lost(_("cannot connect to {path}: {reason}").format(path=self._path, reason=problem.strerror or problem))
        self._socket = connection
        self._watch = GLib.io_add_watch(
            connection.fileno(), GLib.PRIORITY_DEFAULT, GLib.IOCondition.IN | GLib.IOCondition.HUP | GLib.IOCondition.ERR,
            self._readable)
        self._greeting_timer = GLib.timeout_add_seconds(GREETING_SECONDS, self._greeting_late)
        self._greet(0)

    def _watch_folder(self) -> None:
        """Watches for the socket, so that a restarted broker is found before the next retry."""
        if self._folder is not None and not self._folder.is_cancelled():
            return
        folder, name = os.path.split(self._path)
        try:
            self._folder = Gio.File.new_for_path(folder).monitor_directory(Gio.FileMonitorFlags.WATCH_MOVES, None)
        except GLib.Error:
            return  # the timer retries anyway

        def changed(_: Gio.FileMonitor, file: Gio.File, other: Optional[Gio.File], event: Gio.FileMonitorEvent) -> None:
            # A file renamed to the name of the socket is reported as `other`.
            if self._socket is None and self._timer and name in (file.get_basename(), other and other.get_basename()) and (
                    event is not Gio.FileMonitorEvent.DELETED):
                GLib.source_remove(self._timer)
                self._wait_ms = FIRST_WAIT_MS
                self._wait()

        self._folder.connect("changed", changed)

    def _connected(self) -> socket.socket:
        _check(trust.directory_problem(self._path))
        hardening.show_for_greeting()
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
        try:
            connection.connect(self._path)
            _check(trust.peer_problem(connection))  # guard: client-peer-agent
        except OSError:
            connection.close()
            raise
        return connection

    def call(self, method: str, params: Message, then: Result) -> None:
        """Sends a request; `then` receives the whole reply, with `result` or `error`."""
        self._next_id += 1
        self._calls[self._next_id] = then
        self._send({"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": params})

    def reply(self, request_id: int, result: Message) -> None:
        """Replies to a request of the broker. The copy of the secrets in the send buffer is wiped after sending."""
        self._send({"jsonrpc": "2.0", "id": request_id, "result": result})

    def refuse(self, request_id: int, code: int, text: str) -> None:
        """Replies to a request of the broker with an error."""
        self._send({"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": text}})

    # Greeting

    def _greet(self, step: int) -> None:
        if step == len(self._greeting):
            return self._greeted()

        def then(reply: Message) -> None:
            if "error" not in reply:
                return self._greet(step + 1)
            error = reply["error"]
            self.on_refused(error)
            self._lost(_("the broker refused {method}: {reason}").format(
                method=self._greeting[step][0], reason=error.get("message")))

        self.call(*self._greeting[step], then)

    def _greeted(self) -> None:
        GLib.source_remove(self._greeting_timer)
        self._greeting_timer = 0
        hardening.hide()
        self._wait_ms = FIRST_WAIT_MS
        self.on_ready()

    def _greeting_late(self) -> bool:
        self._greeting_timer = 0
        self._lost(_("the broker at {path} did not answer within {seconds} s").format(path=self._path, seconds=GREETING_SECONDS))
        return GLib.SOURCE_REMOVE

    # Sending

    def _send(self, message: Message) -> None:
        if self._socket is None:
            return
        line = secret.line(message)
        if self._outgoing:
            old, self._outgoing = self._outgoing, bytearray(len(self._outgoing) + len(line))
            self._outgoing[:len(old)] = old
            self._outgoing[len(old):] = line
            secret.wipe(old)
            secret.wipe(line)
        else:
            self._outgoing = line
        self._flush()

    def _flush(self) -> None:
        assert self._socket is not None
        sent = 0
        with memoryview(self._outgoing) as view:
            try:
                while sent < len(view):
                    sent += self._socket.send(view[sent:])
            except BlockingIOError:
                pass
            except OSError:
                sent = len(view)  # reading reports the error
            view[:sent] = bytes(sent)
        rest = bytearray(self._outgoing[sent:])
        secret.wipe(self._outgoing)
        self._outgoing = rest
        if rest and not self._writable:
            self._writable = GLib.io_add_watch(
                self._socket.fileno(), GLib.PRIORITY_DEFAULT, GLib.IOCondition.OUT, self._may_write)

    def _may_write(self, *_args: Any) -> bool:
        self._flush()
        if self._outgoing:
            return GLib.SOURCE_CONTINUE
        self._writable = 0
        return GLib.SOURCE_REMOVE

    # Receiving

    def _readable(self, *_args: Any) -> bool:
        here = self._socket
        assert here is not None
        try:
            data = here.recv(1 << 16)
        except BlockingIOError:
            return GLib.SOURCE_CONTINUE
        except OSError as problem:
            self._lost(_("connection to the broker lost: {reason}").format(reason=problem.strerror))
            return GLib.SOURCE_CONTINUE
        if not data:
            self._lost(_("the broker closed the connection"))
            return GLib.SOURCE_CONTINUE
        self._incoming += data
        while self._socket is here and (end := self._incoming.find(b"\n")) >= 0:
            text = bytes(self._incoming[:end])
            del self._incoming[:end + 1]
            self._take(text)
        if len(self._incoming) > MESSAGE_LIMIT_BYTES:
            self._lost(_("the broker sent a message of more than 16 MiB"))
        return GLib.SOURCE_CONTINUE

    def _take(self, text: bytes) -> None:
        try:
            message = json.loads(text)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            return self._lost(_("the broker sent a malformed message"))
        # After an uncaught exception GLib would not call `_readable` again.
        try:
            self._hand_over(message)
        except Exception as problem:
            self.on_mishap(f"cannot handle a message of the broker: {type(problem).__name__}: {problem}")
            if "method" in message and isinstance(message.get("id"), int):
                self.refuse(message["id"], _INTERNAL, "The agent failed to handle this request.")

    def _hand_over(self, message: Message) -> None:
        if "method" in message:
            return self._on_message(message)
        identifier = message.get("id")
        # In Python `True` and `1.0` are equal to the key 1.
        then = self._calls.pop(identifier, None) if type(identifier) is int else None
        if then is not None:
            then(message)

    # Closing

    def _lost(self, reason: str) -> None:
        for source in (self._watch, self._writable, self._greeting_timer):
            if source:
                GLib.source_remove(source)
        self._watch = self._writable = self._greeting_timer = 0
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        secret.wipe(self._outgoing)
        self._incoming, self._outgoing = bytearray(), bytearray()
        self._calls.clear()
        hardening.hide()
        if not self._timer:
            self._wait()
        self.on_lost(reason)

    def _wait(self) -> None:
        self._timer = GLib.timeout_add(self._wait_ms, self._again)
        self._wait_ms = min(self._wait_ms * 2, LONGEST_WAIT_MS)

    def _again(self) -> bool:
        self._timer = 0
        self.start()
        return GLib.SOURCE_REMOVE


def _check(problem: Optional[str]) -> None:
    if problem:
        raise OSError(problem)
