"""The blocking client."""
import contextlib
import itertools
import json
import logging
import select
import socket
from typing import Any, BinaryIO, Callable, Dict, Generator, Iterator, List, Optional, Set, Tuple, cast

from . import _signatures, _wire
from ._handlers import Handlers
from ._signatures import Data
from .answers import Answerer, ResolvedHandler, answer_json
from .errors import BrokerError, ConnectionClosed
from .messages import Authentication, Body, BodyHandle, Challenge, Fetched, Finished, Head, Message, Named, Resolved, Started


class Watchword:
    """A connection for one thread. Calls block; `answer` answers challenges while a call waits.

    An interrupted call (Ctrl-C, or an exception in `answer`) is cancelled, and the connection stays usable.
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
        # The heads, results and uploads of fetches begun with `start`, by id.
        self._begun: Dict[str, Head] = {}
        self._completed: Dict[str, Message] = {}
        self._uploads: Dict[str, _Upload] = {}
        self.call("initialize", **_wire.initialize_params(name, answer is not None))

    def __enter__(self) -> "Watchword":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection, which cancels its running fetches."""
        for upload in self._uploads.values():
            upload.close()
        self._uploads.clear()
        self._socket.close()

    # Whole fetches

    @_signatures.signature(_signatures.fetch)
    def fetch(self, url: str, data: Optional[Data] = None, size: Optional[int] = None, inline_bytes: Optional[int] = None, **params: Any) -> Fetched:
        """Returns the response, whatever its status, as from `fetch/run`: `status`, `headers`, `body` and more.

        `data` is the request body: bytes, text, a file, or an iterable of bytes; `size` is its size in bytes, if known. A
        response body of more than `inline_bytes` is not part of the result, and read with `content`. `handler` answers the
        challenges of this fetch; if it returns `DEFAULT`, `answer` is called. The other options are those of `fetch/run`.
        """
        params, large = _wire.prepare(data, params, size)
        if large is None:
            return cast(Fetched, self.call("fetch/run", url=url, **{"maxInlineBodyBytes": inline_bytes, **params}))
        download = self.start(url, large, size, **params)
        body = b"".join(self.read(download))
        return cast(Fetched, {**self.finish(download), "body": _wire.body_json(body)})

    def content(self, fetched: Fetched) -> bytes:
        """Returns the whole body of a response from `fetch`, and reads it from the broker if needed."""
        body = fetched["body"]
        return b"".join(self.read(body)) if body["type"] == "handle" else _wire.body_bytes(body)

    @_signatures.signature(_signatures.fetch)
    @contextlib.contextmanager
    def stream(
            self, url: str, data: Optional[Data] = None, size: Optional[int] = None, inline_bytes: Optional[int] = 0,
            **params: Any) -> Iterator["Stream"]:
        """Opens a response whose body is read in parts. Leaving the context early cancels the fetch."""
        opened = self.open(url, data, size, inline_bytes, **params)
        try:
            yield opened
        finally:
            opened.close()

    @_signatures.signature(_signatures.fetch)
    def open(
            self, url: str, data: Optional[Data] = None, size: Optional[int] = None, inline_bytes: Optional[int] = 0,
            **params: Any) -> "Stream":
        """Like `stream`, but the caller closes the response. Bodies up to `inline_bytes` arrive with the head."""
        params, large = _wire.prepare(data, params, size)
        if large is None:
            fetched = cast(Fetched, self.call("fetch/run", url=url, **{"maxInlineBodyBytes": inline_bytes or 0, **params}))
            return Stream(self, fetched, fetched["body"], None)
        download = self.start(url, large, size, **params)
        try:
            return Stream(self, self.headers(download), None, download)
        except BaseException:
            self.cancel(download)
            raise

    # In steps

    @_signatures.signature(_signatures.start)
    def start(self, url: str, data: Optional[Data] = None, size: Optional[int] = None, **params: Any) -> Started:
        """Begins a fetch. Read its body with `attach` or `read`, then call `finish` for its result."""
        params, large = _wire.prepare(data, params, size)
        started = cast(Started, self.call("fetch/start", url=url, **params))
        if large is not None:
            second, _ = self._attached(started["attachToken"], "request")
            self._uploads[started["fetchId"]] = _Upload(second, _wire.parts_of(large), "sizeBytes" in params["body"])
        return started

    def headers(self, download: Started) -> Head:
        """Waits for the head of the response, and answers challenges meanwhile; returns `status`, `headers` and `bodyBytes`."""
        name = download["fetchId"]
        while name not in self._begun:
            if name in self._completed:
                return self.finish(download)
            self._receive()
        return self._begun[name]

    def attach(self, download: Started) -> BinaryIO:
        """Returns the body of a fetch begun with `start`, as a file. Only `finish` tells whether the body is complete."""
        self.headers(download)
        second, body = self._attached(download["attachToken"], "response")
        second.close()
        return body

    def read(self, fetch: Named, max_bytes: int = _wire.PART_BYTES) -> Iterator[bytes]:
        """Yields the parts of a body; `fetch` is the result of `start`, or a `body` of type `handle`."""
        is_at_end = False
        while not is_at_end:
            part = self.call("fetch/read", fetchId=fetch["fetchId"], maxBytes=max_bytes)
            is_at_end = part["eof"]
            yield _wire.body_bytes(part["data"])

    def finish(self, download: Started) -> Finished:
        """Returns the result without `body`, after the body has been read. Raises if the body is incomplete."""
        name = download["fetchId"]
        while name not in self._completed:
            self._receive()
        self._begun.pop(name, None)
        result = self._completed.pop(name)
        if "error" in result:
            raise BrokerError(result["error"])
        return cast(Finished, result)

    def cancel(self, fetch: Named) -> None:
        """Cancels a fetch begun with `start`, or one whose body is a handle. Does nothing if it has ended."""
        with contextlib.suppress(BrokerError):
            self.call("fetch/cancel", fetchId=fetch["fetchId"])
        if "attachToken" in fetch:
            with contextlib.suppress(BrokerError):
                self.finish(cast(Started, fetch))

    def call(self, method: str, /, **params: Any) -> Any:
        """Calls any method of the protocol."""
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
        """Receives and handles the next message."""
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
        """Calls the `resolved` handler; its errors are logged and do not affect the current call."""
        try:
            if self._resolved:
                self._resolved(end)
        except Exception:
            logging.getLogger(__name__).warning("the resolved handler failed", exc_info=True)

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

    # Connections for bodies

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
        """Sends parts of request bodies until a message of the broker can be received."""
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
            # The source of the body failed: the server must not take a part for the whole body.
            self._end_upload(name)
            self._send(_wire.request(next(self._ids), "fetch/cancel", {"fetchId": name}))
            raise

    def _end_upload(self, name: str) -> None:
        upload = self._uploads.pop(name, None)
        if upload:
            upload.close()


class _Upload:
    """A request body that is being sent. The broker reports its outcome in `fetch/completed`."""

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
                # Closes only the sending half: a full close would look like a crash of this program.
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
    """A response whose body is read once, by iteration or with `read`."""

    def __init__(self, broker: Watchword, head: Head, body: Optional[Body], download: Optional[Started]):
        self.status, self.url, self.http_version = head["status"], head["url"], head["httpVersion"]
        #: The fields in the order received; names can repeat.
        self.headers: List[Tuple[str, str]] = [(name, value) for name, value in head["headers"]]
        #: The result of `fetch/run`. For an upload, the head until the body has been read, then the result.
        self.head: Head = head
        self._broker, self._body, self._download = broker, body, download
        self._is_over = body is not None and body["type"] != "handle"
        self._parts = self._all_parts()
        #: Called once, after the last part or by `close`.
        self.on_close: Callable[[], None] = lambda: None

    def __iter__(self) -> Iterator[bytes]:
        return self._parts

    def read(self) -> bytes:
        """Returns the rest of the body."""
        return b"".join(self._parts)

    def buffer(self) -> None:
        """Reads the rest of the body into memory, from where it can be read once more. Then `head` is the final result."""
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
        return self._download or cast(BodyHandle, self._body)

    @property
    def auth(self) -> Optional[Authentication]:
        """The credential that was accepted, if any. `None` for an upload until its body has been read."""
        return cast(Finished, self.head).get("auth")

    def close(self) -> None:
        """Closes the response, and cancels the fetch if its body was not read to the end."""
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
