"""The blocking client."""
import contextlib
import itertools
import json
import logging
import select
import socket
from typing import Any, BinaryIO, Callable, Dict, Generator, Iterator, List, Optional, Set, Tuple, cast

from . import _wire
from ._handlers import Handlers
from .answers import Answerer, ResolvedHandler, answer_json
from .errors import BrokerError, ConnectionClosed
from .messages import Body, Fetched, Message, Named, Resolved, Started


class Watchword:
    """One connection, for one thread. Calls block; challenges are answered by `answer` while a call waits.

    A call that is interrupted (by Ctrl-C, or by an exception in `answer`) is cancelled, and the connection is good for more.
    """

    def __init__(
            self, answer: Optional[Answerer] = None, path: Optional[str] = None, name: str = "python",
            resolved: Optional[ResolvedHandler] = None):
        self.path = _wire.socket_path(path)
        self._socket = _wire.connect(self.path)
        self._buffer, self._searched = bytearray(), 0
        self._ids = itertools.count(1)
        self._handlers, self._resolved = Handlers(answer), resolved
        self._waiting: Set[int] = set()
        self._replies: Dict[int, Message] = {}
        # Of fetches that were begun with `start`, by name.
        self._begun: Dict[str, Fetched] = {}
        self._completed: Dict[str, Message] = {}
        self._uploads: Dict[str, _Upload] = {}
        self.call("initialize", **_wire.initialize_params(name, answer is not None))

    def __enter__(self) -> "Watchword":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Whatever still runs on this connection is cancelled."""
        for upload in self._uploads.values():
            upload.close()
        self._uploads.clear()
        self._socket.close()

    # One call

    def fetch(self, url: str, data: Optional[_wire.Data] = None, **params: Any) -> Fetched:
        """The response, whatever its status: `status`, `headers`, `body` and more, as `fetch/run` returns them.

        `data` is the request's body: bytes, text, a file, or an iterable of bytes. `params` are those of `fetch/run`, and
        `handler`, a function that answers the challenges of this fetch: where it returns `DEFAULT`, `answer` is asked.
        """
        params, large = _wire.prepare(data, params)
        if large is None:
            return cast(Fetched, self.call("fetch/run", url=url, **params))
        download = self.start(url, data, **params)
        body = b"".join(self.read(download))
        return cast(Fetched, {**self.finish(download), "body": _wire.body_json(body)})

    def content(self, fetched: Fetched) -> bytes:
        """The whole body of what `fetch` returned, whether it came with it or is still to be read."""
        body = fetched["body"]
        return b"".join(self.read(body)) if body["type"] == "handle" else _wire.body_bytes(body)

    @contextlib.contextmanager
    def stream(
            self, url: str, data: Optional[_wire.Data] = None, size: Optional[int] = None, inline_bytes: int = 0,
            **params: Any) -> Iterator["Stream"]:
        """A response whose body is taken in parts; leaving the context before its end cancels the fetch."""
        opened = self.open(url, data, size, inline_bytes, **params)
        try:
            yield opened
        finally:
            opened.close()

    def open(
            self, url: str, data: Optional[_wire.Data] = None, size: Optional[int] = None, inline_bytes: int = 0,
            **params: Any) -> "Stream":
        """As `stream`, but to be closed by the caller. Bodies up to `inline_bytes` come together with the head."""
        params, large = _wire.prepare(data, params, size)
        if large is None:
            fetched = cast(Fetched, self.call("fetch/run", url=url, maxInlineBodyBytes=inline_bytes, **params))
            return Stream(self, fetched, fetched["body"], None)
        download = self.start(url, large, size, **params)
        try:
            return Stream(self, self.headers(download), None, download)
        except BaseException:
            self.cancel(download)
            raise

    # In steps

    def start(self, url: str, data: Optional[_wire.Data] = None, size: Optional[int] = None, **params: Any) -> Started:
        """Begins a fetch whose body is taken by `attach` or `read`; then `finish` says how it went."""
        params, large = _wire.prepare(data, params, size)
        started = cast(Started, self.call("fetch/start", url=url, **params))
        if large is not None:
            second, _ = self._attached(started["attachToken"], "request")
            self._uploads[started["fetchId"]] = _Upload(second, _wire.parts_of(large), "sizeBytes" in params["body"])
        return started

    def headers(self, download: Named) -> Fetched:
        """`status`, `headers` and `bodyBytes`; waits until the response has begun, and answers challenges meanwhile."""
        name = download["fetchId"]
        while name not in self._begun:
            if name in self._completed:
                return self.finish(download)
            self._receive()
        return self._begun[name]

    def attach(self, download: Started) -> BinaryIO:
        """The body of a fetch that was begun with `start`, as a file. Its end is not yet success: that says `finish`."""
        self.headers(download)
        second, body = self._attached(download["attachToken"], "response")
        second.close()
        return body

    def read(self, fetch: Named, max_bytes: int = _wire.PART_BYTES) -> Iterator[bytes]:
        """The body in parts: of a fetch that was begun with `start`, or of a `body` that came as a handle."""
        is_at_end = False
        while not is_at_end:
            part = self.call("fetch/read", fetchId=fetch["fetchId"], maxBytes=max_bytes)
            is_at_end = part["eof"]
            yield _wire.body_bytes(part["data"])

    def finish(self, download: Named) -> Fetched:
        """What `fetch` returns, less `body`; waits until the body has been taken. Raises when it is not whole."""
        name = download["fetchId"]
        while name not in self._completed:
            self._receive()
        self._begun.pop(name, None)
        result = self._completed.pop(name)
        if "error" in result:
            raise BrokerError(result["error"])
        return cast(Fetched, result)

    def cancel(self, fetch: Named) -> None:
        """Ends a fetch that was begun with `start`, or whose body came as a handle. One that has ended is none to end."""
        with contextlib.suppress(BrokerError):
            self.call("fetch/cancel", fetchId=fetch["fetchId"])
        if "attachToken" in fetch:
            with contextlib.suppress(BrokerError):
                self.finish(fetch)

    def call(self, method: str, /, **params: Any) -> Any:
        """Any method of the protocol."""
        number = next(self._ids)
        self._waiting.add(number)
        try:
            self._send(_wire.request(number, method, self._handlers.take(number, params)))
            while number not in self._replies:
                self._receive()
        except ConnectionClosed:
            raise
        except BaseException:
            self._handlers.end(number)
            self._send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": number}})
            raise
        finally:
            self._waiting.discard(number)
        return _wire.result_of(self._replies.pop(number))

    # Messages

    def _receive(self) -> None:
        """Deals with the next message."""
        message = json.loads(self._next_line())
        method, params = message.get("method"), message.get("params")
        if method == "auth/challenge":
            self._reply(message)
        elif method == "auth/resolved":
            self._tell(params)
        elif method == "fetch/headers":
            self._begun[params["fetchId"]] = params
        elif method == "fetch/completed":
            self._end_upload(params["fetchId"])
            self._handlers.complete(params["fetchId"])
            self._completed[params["fetchId"]] = params
        elif method is not None and "id" in message:
            self._send(_wire.unknown_method(message))
        elif method is None and (number := _wire.own_id(message)) in self._waiting:
            self._handlers.end(number, message.get("result"))
            self._replies[number] = message

    def _tell(self, end: Resolved) -> None:
        """What goes wrong in the handler does not end the call that runs."""
        try:
            if self._resolved:
                self._resolved(end)
        except Exception:
            logging.getLogger(__name__).warning("the handler of an answer's end failed", exc_info=True)

    def _reply(self, message: Message) -> None:
        reply = {"action": "cancel"}
        try:
            reply = self._answer(message["params"])
        finally:
            self._send({"jsonrpc": "2.0", "id": message["id"], "result": reply})

    def _answer(self, challenge: Any) -> Dict[str, Any]:
        try:
            handler = self._handlers.of(challenge)
        except LookupError:
            return {"action": "cancel"}
        return answer_json(handler(challenge)) if handler else {"action": "default"}

    def _next_line(self) -> bytes:
        while (end := self._buffer.find(b"\n", self._searched)) < 0:
            self._searched = len(self._buffer)
            self._upload_meanwhile()
            try:
                data = self._socket.recv(1 << 18)
            except OSError:
                data = b""
            if not data:
                self.close()
                raise ConnectionClosed(self.path)
            self._buffer += data
        found = bytes(self._buffer[:end])
        del self._buffer[:end + 1]
        self._searched = 0
        return found

    def _send(self, message: Message) -> None:
        try:
            self._socket.sendall(_wire.line(message))
        except OSError:
            self.close()
            raise ConnectionClosed(self.path) from None

    # The other connections

    def _attached(self, token: str, side: str) -> Tuple[socket.socket, BinaryIO]:
        second = _wire.connect(self.path)
        second.sendall(_wire.line(_wire.request(1, "fetch/attach", {"token": token, "side": side})))
        body = second.makefile("rb")
        line = body.readline()
        try:
            _wire.result_of(json.loads(line) if line else self._lost())
        except BaseException:
            body.close()
            second.close()
            raise
        return second, body

    def _lost(self) -> Message:
        raise ConnectionClosed(self.path)

    def _upload_meanwhile(self) -> None:
        """Returns when the broker has said something; until then bodies go out as fast as they are taken."""
        while going := {name: upload for name, upload in self._uploads.items() if not upload.is_sent}:
            poll = select.poll()
            poll.register(self._socket, select.POLLIN)
            for upload in going.values():
                poll.register(upload.socket, select.POLLOUT)
            ready = {descriptor for descriptor, _ in poll.poll()}
            for name, upload in going.items():
                if upload.socket.fileno() in ready:
                    self._send_some(name, upload)
            if self._socket.fileno() in ready:
                return

    def _send_some(self, name: str, upload: "_Upload") -> None:
        try:
            upload.send_some()
        except BaseException:
            # The program's own mistake in making the body: nothing half is to be taken for the whole.
            self._end_upload(name)
            self._send(_wire.request(next(self._ids), "fetch/cancel", {"fetchId": name}))
            raise

    def _end_upload(self, name: str) -> None:
        upload = self._uploads.pop(name, None)
        if upload:
            upload.close()


class _Upload:
    """A request's body on its way. What the broker thinks of it comes with `fetch/completed`."""

    def __init__(self, second: socket.socket, parts: Iterator[bytes], is_counted: bool):
        self.socket, self.is_sent = second, False
        self._parts, self._is_counted, self._rest = parts, is_counted, memoryview(b"")
        second.setblocking(False)

    def send_some(self) -> None:
        if not self._rest:
            part = next(self._parts, None)
            if part is None:
                self.is_sent = True
            self._rest = memoryview(part or b"")
        try:
            if self.is_sent:
                # The connection stays open: one that is closed at once may be that of a program that has died.
                self.socket.shutdown(socket.SHUT_WR)
            else:
                self._rest = self._rest[self.socket.send(self._rest):]
        except BlockingIOError:
            pass
        except OSError:
            self.is_sent = True

    def close(self) -> None:
        self.is_sent = True
        self.socket.close()


class Stream:
    """A response whose body is still to be taken, once, by going through it or with `read`."""

    def __init__(self, broker: Watchword, head: Fetched, body: Optional[Body], download: Optional[Started]):
        self.status, self.url, self.http_version = head["status"], head["url"], head["httpVersion"]
        #: In the order in which they came; a name may come more than once.
        self.headers: List[Tuple[str, str]] = [(name, value) for name, value in head["headers"]]
        #: What `fetch/run` returned; of an upload, what is known so far: `auth` only at the end.
        self.head = head
        self._broker, self._body, self._download = broker, body, download
        self._is_over = body is not None and body["type"] != "handle"
        self._parts = self._all_parts()
        #: Called once, when nothing more comes.
        self.on_close: Callable[[], None] = lambda: None

    def __iter__(self) -> Iterator[bytes]:
        return self._parts

    def read(self) -> bytes:
        """All that is left of it."""
        return b"".join(self._parts)

    def buffer(self) -> None:
        """Reads the rest, and keeps it to be taken once more: how the fetch ended is known then."""
        whole, then = self.read(), self.on_close
        self._body, self._download, self.on_close = _wire.body_json(whole), None, then
        self._parts = self._all_parts()

    def _all_parts(self) -> Generator[bytes, None, None]:
        if self._body is not None and self._body["type"] != "handle":
            yield _wire.body_bytes(self._body)
        else:
            try:
                yield from self._broker.read(self._source)
            except BrokerError:
                self._end()
                raise
            self._is_over = True
            if self._download:
                self.head = self._broker.finish(self._download)
        self._call_back()

    @property
    def _source(self) -> Named:
        return self._download or cast(Body, self._body)

    def close(self) -> None:
        """Ends a fetch whose body is not wanted any more."""
        self._parts.close()
        if not self._is_over:
            self._end()
        self._call_back()

    def _end(self) -> None:
        self._is_over = True
        with contextlib.suppress(ConnectionClosed):
            self._broker.cancel(self._source)

    def _call_back(self) -> None:
        then, self.on_close = self.on_close, lambda: None
        then()
