"""The client for asyncio: any number of concurrent fetches on one connection.

>>> async with AsyncWatchword(answer=ask) as broker:
...     pages = await asyncio.gather(*(broker.fetch(url) for url in urls))
"""
import asyncio
import contextlib
import inspect
import itertools
import json
from typing import Any, AsyncIterator, Awaitable, Dict, List, Optional, Tuple, cast

from . import _signatures, _trust, _wire
from ._handlers import Handlers
from ._signatures import AsyncAnswerer, AsyncData
from .answers import ResolvedHandler, answer_json
from .errors import BrokerError, BrokerNotRunning, ConnectionClosed
from .messages import Authentication, Body, BodyHandle, Fetched, Finished, Head, Message, Named, Resolved, Started


class AsyncWatchword:
    """A connection for one event loop. Cancelling a task that waits for a fetch cancels the fetch."""

    def __init__(
            self, answer: Optional[AsyncAnswerer] = None, path: Optional[str] = None, name: str = "python",
            resolved: Optional[ResolvedHandler] = None):
        self.path = _wire.socket_path(path)
        self._handlers, self._name, self._resolved = Handlers(answer), name, resolved
        self._ids = itertools.count(1)
        self._replies: Dict[int, "asyncio.Future[Message]"] = {}
        # The heads and results of fetches begun with `start`, by id.
        self._begun: Dict[str, "asyncio.Future[Message]"] = {}
        self._completed: Dict[str, "asyncio.Future[Message]"] = {}
        self._uploads: Dict[str, "asyncio.Task[None]"] = {}
        self._questions: Dict[Any, "asyncio.Task[None]"] = {}
        self._writer: Optional[asyncio.StreamWriter] = None
        self._receiver: Optional["asyncio.Task[None]"] = None

    async def connect(self) -> "AsyncWatchword":
        """Connects to the broker; `async with` does this too."""
        reader, self._writer = await self._open()
        self._receiver = asyncio.ensure_future(self._receive_all(reader))
        try:
            await self.call("initialize", **_wire.initialize_params(self._name, self._handlers.of_all is not None))
        except BaseException:
            await self.close()
            raise
        return self

    async def __aenter__(self) -> "AsyncWatchword":
        return self if self._writer else await self.connect()

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    @property
    def is_open(self) -> bool:
        return self._writer is not None and not self._writer.is_closing()

    async def close(self) -> None:
        """Closes the connection, which cancels its running fetches."""
        tasks = [task for task in (self._receiver, *self._questions.values(), *self._uploads.values()) if task]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._writer:
            self._writer.close()
        self._fail_all()

    # Whole fetches

    @_signatures.signature(_signatures.async_fetch)
    async def fetch(self, url: str, data: Optional[AsyncData] = None, size: Optional[int] = None, inline_bytes: Optional[int] = None, **params: Any) -> Fetched:
        """Returns the response, whatever its status, as from `fetch/run`. `data` may also be an asynchronous iterable."""
        params, large = _wire.prepare(data, params, size)
        if large is None:
            return cast(Fetched, await self.call("fetch/run", url=url, **{"maxInlineBodyBytes": inline_bytes, **params}))
        async with self.stream(url, large, **params) as response:
            body = await response.read()
        return cast(Fetched, {**response.head, "body": _wire.body_json(body), "bodyBytes": len(body)})

    async def content(self, fetched: Fetched) -> bytes:
        """Returns the whole body of a response from `fetch`, and reads it from the broker if needed."""
        body = fetched["body"]
        if body["type"] != "handle":
            return _wire.body_bytes(body)
        return b"".join([part async for part in self.read(body)])

    @_signatures.signature(_signatures.async_fetch)
    @contextlib.asynccontextmanager
    async def stream(
            self, url: str, data: Optional[AsyncData] = None, size: Optional[int] = None, inline_bytes: Optional[int] = 0,
            **params: Any) -> AsyncIterator["AsyncStream"]:
        """Opens a response whose body is read in parts. Leaving the context early cancels the fetch."""
        opened = await self.open(url, data, size, inline_bytes, **params)
        try:
            yield opened
        finally:
            await opened.close()

    @_signatures.signature(_signatures.async_fetch)
    async def open(
            self, url: str, data: Optional[AsyncData] = None, size: Optional[int] = None, inline_bytes: Optional[int] = 0,
            **params: Any) -> "AsyncStream":
        """Like `stream`, but the caller closes the response. Bodies up to `inline_bytes` arrive with the head."""
        params, large = _wire.prepare(data, params, size)
        if large is None:
            fetched = cast(Fetched, await self.call("fetch/run", url=url, **{"maxInlineBodyBytes": inline_bytes or 0, **params}))
            return AsyncStream(self, fetched, fetched["body"], None)
        download = await self.start(url, large, size, **params)
        try:
            return AsyncStream(self, await self.headers(download), None, download)
        except BaseException:
            await asyncio.shield(self.cancel(download))
            raise

    # In steps

    @_signatures.signature(_signatures.async_start)
    async def start(self, url: str, data: Optional[AsyncData] = None, size: Optional[int] = None, **params: Any) -> Started:
        """Begins a fetch. Read its body with `attach` or `read`, then call `finish` for its result."""
        params, large = _wire.prepare(data, params, size)
        started = cast(Started, await self.call("fetch/start", url=url, **params))
        if large is not None:
            _, writer = await self._attached(started["attachToken"], "request")
            self._uploads[started["fetchId"]] = asyncio.ensure_future(self._upload(started, writer, large))
        return started

    async def headers(self, download: Started) -> Head:
        """Waits for the head of the response; returns `status`, `headers` and `bodyBytes`."""
        name = download["fetchId"]
        await asyncio.wait({self._begun[name], self._completed[name]}, return_when=asyncio.FIRST_COMPLETED)
        return cast(Head, self._begun[name].result()) if self._begun[name].done() else await self.finish(download)

    async def attach(self, download: Started) -> Tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Returns streams for the body of a fetch begun with `start`; the caller closes the writer.

        Only `finish` tells whether the body is complete.
        """
        await self.headers(download)
        return await self._attached(download["attachToken"], "response")

    async def read(self, fetch: Named, max_bytes: int = _wire.PART_BYTES) -> AsyncIterator[bytes]:
        """Yields the parts of a body; `fetch` is the result of `start`, or a `body` of type `handle`."""
        is_at_end = False
        while not is_at_end:
            part = await self.call("fetch/read", fetchId=fetch["fetchId"], maxBytes=max_bytes)
            is_at_end = part["eof"]
            yield _wire.body_bytes(part["data"])

    async def finish(self, download: Started) -> Finished:
        """Returns the result without `body`, after the body has been read. Raises if the body is incomplete."""
        name = download["fetchId"]
        completed = self._completed[name]
        try:
            result = await asyncio.shield(completed)
        finally:
            if completed.done():
                self._completed.pop(name, None)
                self._begun.pop(name).cancel()
        return cast(Finished, result if "error" not in result else _wire.result_of(result))

    async def cancel(self, fetch: Named) -> None:
        """Cancels a fetch begun with `start`, or one whose body is a handle. Does nothing if it has ended."""
        with contextlib.suppress(BrokerError, ConnectionClosed):
            await self.call("fetch/cancel", fetchId=fetch["fetchId"])
            if fetch["fetchId"] in self._completed:
                await self.finish(cast(Started, fetch))

    async def call(self, method: str, /, **params: Any) -> Any:
        """Calls any method of the protocol."""
        number = next(self._ids)
        self._replies[number] = asyncio.get_running_loop().create_future()
        try:
            self._send(_wire.request(number, method, self._handlers.take(number, params)))
            return _wire.result_of(await self._replies[number])
        except BaseException as error:
            self._handlers.end(number)
            if isinstance(error, asyncio.CancelledError):
                with contextlib.suppress(ConnectionClosed):
                    self._send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": number}})
            raise
        finally:
            self._replies.pop(number)

    # Messages

    async def _receive_all(self, reader: asyncio.StreamReader) -> None:
        try:
            while line := await reader.readline():
                self._take(json.loads(line))
        except (OSError, ValueError):
            pass
        finally:
            if self._writer:
                self._writer.close()
            self._fail_all()

    def _take(self, message: Message) -> None:
        method, params = message.get("method"), message.get("params") or {}
        if method == "auth/challenge":
            self._questions[message["id"]] = asyncio.ensure_future(self._reply(message))
        elif method == "$/cancelRequest":
            if question := self._questions.pop(params["id"], None):
                question.cancel()
        elif method == "auth/resolved":
            self._tell(cast(Resolved, params))
        elif method == "fetch/headers":
            self._settle(self._begun, params)
        elif method == "fetch/completed":
            self._handlers.complete(params["fetchId"])
            self._settle(self._completed, params)
        elif method is not None and "id" in message:
            self._send(_wire.unknown_method(message))
        elif method is None:
            self._take_reply(message)

    def _tell(self, end: Resolved) -> None:
        try:
            if self._resolved:
                self._resolved(end)
        except Exception as error:
            context = {"message": "the resolved handler failed", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)

    def _take_reply(self, message: Message) -> None:
        number = _wire.own_id(message) or 0
        waiting, result = self._replies.get(number), message.get("result") or {}
        self._handlers.end(number, result)
        is_wanted = waiting is not None and not waiting.done()
        if "attachToken" in result and is_wanted:
            # Notifications of this fetch can be in the same data, before the caller runs again.
            loop, name = asyncio.get_running_loop(), result["fetchId"]
            self._begun[name], self._completed[name] = loop.create_future(), loop.create_future()
        elif "attachToken" in result:
            # The caller was cancelled meanwhile, and does not know the id with which to cancel the fetch.
            self._send(_wire.request(next(self._ids), "fetch/cancel", {"fetchId": result["fetchId"]}))
        if waiting is not None and is_wanted:
            waiting.set_result(message)

    @staticmethod
    def _settle(futures: Dict[str, "asyncio.Future[Message]"], params: Message) -> None:
        future = futures.get(params["fetchId"])
        if future and not future.done():
            future.set_result(params)

    async def _reply(self, message: Message) -> None:
        reply: Dict[str, Any] = {"action": "cancel"}
        try:
            handler = self._handlers.of(message["params"])
            if handler is None:
                reply = {"action": "default"}
            elif inspect.iscoroutinefunction(handler):
                reply = answer_json(await handler(message["params"]))
            else:
                answer = await asyncio.to_thread(handler, message["params"])
                reply = answer_json(await answer if isinstance(answer, Awaitable) else answer)
        except Exception as error:
            context = {"message": "the answer function failed; the fetch is cancelled", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
        self._questions.pop(message["id"], None)
        with contextlib.suppress(ConnectionClosed):
            self._send({"jsonrpc": "2.0", "id": message["id"], "result": reply})

    def _send(self, message: Message) -> None:
        if self._writer is None or self._writer.is_closing():
            raise ConnectionClosed(self.path)
        self._writer.write(_wire.line(message))

    def _fail_all(self) -> None:
        for future in [*self._replies.values(), *self._begun.values(), *self._completed.values()]:
            if not future.done():
                future.set_exception(ConnectionClosed(self.path))
                future.exception()
        for question in self._questions.values():
            question.cancel()

    # Connections for bodies

    async def _open(self) -> Tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        _wire.trust(self.path, _trust.directory_problem(self.path))
        try:
            reader, writer = await asyncio.open_unix_connection(self.path, limit=_wire.LONGEST_LINE)
        except OSError as error:
            raise BrokerNotRunning(self.path, error.strerror or str(error)) from None
        try:
            _wire.trust(self.path, _trust.peer_problem(writer.get_extra_info("socket")))
        except BaseException:
            writer.close()
            raise
        return reader, writer

    async def _attached(self, token: str, side: str) -> Tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await self._open()
        try:
            writer.write(_wire.line(_wire.request(1, "fetch/attach", {"token": token, "side": side})))
            line = await reader.readline()
            if not line:
                raise ConnectionClosed(self.path)
            _wire.result_of(json.loads(line))
        except BaseException:
            writer.close()
            raise
        return reader, writer

    async def _upload(self, started: Started, writer: asyncio.StreamWriter, data: Any) -> None:
        """Sends a request body. Reports only errors of its source; the broker reports others in `fetch/completed`."""
        try:
            if hasattr(data, "__aiter__"):
                async for part in data:
                    writer.write(part)
                    await writer.drain()
            else:
                for part in _wire.parts_of(data):
                    writer.write(part)
                    await writer.drain()
            writer.write_eof()
            # The connection stays open until the fetch ends: closing it now would look like a crash of this program.
            await asyncio.wait({self._completed[started["fetchId"]]})
        except (ConnectionError, KeyError):
            pass
        except Exception as error:
            completed = self._completed.get(started["fetchId"])
            if completed and not completed.done():
                completed.set_exception(error)
                completed.exception()
            await self.cancel(started)
        finally:
            self._uploads.pop(started["fetchId"], None)
            writer.close()


class AsyncStream:
    """A response whose body is read once, by iteration or with `read`."""

    def __init__(self, broker: AsyncWatchword, head: Head, body: Optional[Body], download: Optional[Started]):
        self.status, self.url, self.http_version = head["status"], head["url"], head["httpVersion"]
        #: The fields in the order received; names can repeat.
        self.headers: List[Tuple[str, str]] = [(name, value) for name, value in head["headers"]]
        #: The result of `fetch/run`. For an upload, the head until the body has been read, then the result.
        self.head: Head = head
        self._broker, self._body, self._download = broker, body, download
        self._is_over = body is not None and body["type"] != "handle"

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._body is not None and self._body["type"] != "handle":
            yield _wire.body_bytes(self._body)
            return
        try:
            async for part in self._broker.read(self._source):
                yield part
        except BrokerError:
            await self.close()
            raise
        self._is_over = True
        if self._download:
            self.head = await self._broker.finish(self._download)

    async def read(self) -> bytes:
        """Returns the rest of the body."""
        return b"".join([part async for part in self])

    async def buffer(self) -> None:
        """Reads the rest of the body into memory, from where it can be read once more. Then `head` is the final result."""
        self._body, self._download = _wire.body_json(await self.read()), None

    @property
    def _source(self) -> Named:
        return self._download or cast(BodyHandle, self._body)

    @property
    def auth(self) -> Optional[Authentication]:
        """The credential that was accepted, if any. `None` for an upload until its body has been read."""
        return cast(Finished, self.head).get("auth")

    async def close(self) -> None:
        """Closes the response, and cancels the fetch if its body was not read to the end."""
        if not self._is_over:
            self._is_over = True
            await asyncio.shield(self._broker.cancel(self._source))
