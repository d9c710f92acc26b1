"""The client for asyncio: any number of fetches at once on one connection.

>>> async with AsyncWatchword(answer=ask) as broker:
...     pages = await asyncio.gather(*(broker.fetch(url) for url in urls))
"""
import asyncio
import contextlib
import inspect
import itertools
import json
from typing import Any, AsyncIterable, AsyncIterator, Awaitable, Callable, Dict, List, Optional, Set, Tuple, Union, cast

from . import _trust, _wire
from ._handlers import Handlers
from .answers import Answer, ResolvedHandler, answer_json
from .errors import BrokerError, BrokerNotRunning, ConnectionClosed
from .messages import Body, Challenge, Fetched, Message, Named, Resolved, Started

#: A coroutine function runs on the loop; a plain function, which may ask a person and block, in a thread of its own.
AsyncAnswerer = Callable[[Challenge], Union[Answer, Awaitable[Answer]]]
AsyncData = Union[_wire.Data, AsyncIterable[bytes]]


class AsyncWatchword:
    """One connection. A task that is cancelled while it waits for a fetch cancels the fetch."""

    def __init__(
            self, answer: Optional[AsyncAnswerer] = None, path: Optional[str] = None, name: str = "python",
            resolved: Optional[ResolvedHandler] = None):
        self.path = _wire.socket_path(path)
        self._handlers, self._name, self._resolved = Handlers(answer), name, resolved
        self._ids = itertools.count(1)
        self._replies: Dict[int, "asyncio.Future[Message]"] = {}
        # Of fetches that were begun with `start`, by name: their heads and their ends.
        self._begun: Dict[str, "asyncio.Future[Message]"] = {}
        self._completed: Dict[str, "asyncio.Future[Message]"] = {}
        self._uploads: Dict[str, "asyncio.Task[None]"] = {}
        self._questions: Dict[Any, "asyncio.Task[None]"] = {}
        self._writer: Optional[asyncio.StreamWriter] = None
        self._receiver: Optional["asyncio.Task[None]"] = None

    async def connect(self) -> "AsyncWatchword":
        """Needed once, unless `async with` does it."""
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
        """Whatever still runs on this connection is cancelled."""
        tasks = [task for task in (self._receiver, *self._questions.values(), *self._uploads.values()) if task]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._writer:
            self._writer.close()
        self._fail_all()

    # One call

    async def fetch(self, url: str, data: Optional[AsyncData] = None, **params: Any) -> Fetched:
        """The response, whatever its status, as `fetch/run` returns it. `data` may be an asynchronous iterable as well."""
        params, large = _wire.prepare(data, params)
        if large is None:
            return cast(Fetched, await self.call("fetch/run", url=url, **params))
        async with self.stream(url, large, **params) as response:
            body = await response.read()
        return cast(Fetched, {**response.head, "body": _wire.body_json(body), "bodyBytes": len(body)})

    async def content(self, fetched: Fetched) -> bytes:
        """The whole body of what `fetch` returned, whether it came with it or is still to be read."""
        body = fetched["body"]
        if body["type"] != "handle":
            return _wire.body_bytes(body)
        return b"".join([part async for part in self.read(body)])

    @contextlib.asynccontextmanager
    async def stream(
            self, url: str, data: Optional[AsyncData] = None, size: Optional[int] = None, inline_bytes: int = 0,
            **params: Any) -> AsyncIterator["AsyncStream"]:
        """A response whose body is taken in parts; leaving the context before its end cancels the fetch."""
        opened = await self.open(url, data, size, inline_bytes, **params)
        try:
            yield opened
        finally:
            await opened.close()

    async def open(
            self, url: str, data: Optional[AsyncData] = None, size: Optional[int] = None, inline_bytes: int = 0,
            **params: Any) -> "AsyncStream":
        """As `stream`, but to be closed by the caller. Bodies up to `inline_bytes` come together with the head."""
        params, large = _wire.prepare(data, params, size)
        if large is None:
            fetched = cast(Fetched, await self.call("fetch/run", url=url, maxInlineBodyBytes=inline_bytes, **params))
            return AsyncStream(self, fetched, fetched["body"], None)
        download = await self.start(url, large, size, **params)
        try:
            return AsyncStream(self, await self.headers(download), None, download)
        except BaseException:
            await asyncio.shield(self.cancel(download))
            raise

    # In steps

    async def start(self, url: str, data: Optional[AsyncData] = None, size: Optional[int] = None, **params: Any) -> Started:
        """Begins a fetch whose body is taken by `attach` or `read`; then `finish` says how it went."""
        params, large = _wire.prepare(data, params, size)
        started = cast(Started, await self.call("fetch/start", url=url, **params))
        if large is not None:
            _, writer = await self._attached(started["attachToken"], "request")
            self._uploads[started["fetchId"]] = asyncio.ensure_future(self._upload(started, writer, large))
        return started

    async def headers(self, download: Named) -> Fetched:
        """`status`, `headers` and `bodyBytes`, when the response has begun."""
        name = download["fetchId"]
        await asyncio.wait({self._begun[name], self._completed[name]}, return_when=asyncio.FIRST_COMPLETED)
        return cast(Fetched, self._begun[name].result()) if self._begun[name].done() else await self.finish(download)

    async def attach(self, download: Started) -> Tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """The body of a fetch that was begun with `start`; close the writer. The end is not yet success: that says `finish`."""
        await self.headers(download)
        return await self._attached(download["attachToken"], "response")

    async def read(self, fetch: Named, max_bytes: int = _wire.PART_BYTES) -> AsyncIterator[bytes]:
        """The body in parts: of a fetch that was begun with `start`, or of a `body` that came as a handle."""
        is_at_end = False
        while not is_at_end:
            part = await self.call("fetch/read", fetchId=fetch["fetchId"], maxBytes=max_bytes)
            is_at_end = part["eof"]
            yield _wire.body_bytes(part["data"])

    async def finish(self, download: Named) -> Fetched:
        """What `fetch` returns, less `body`; waits until the body has been taken. Raises when it is not whole."""
        name = download["fetchId"]
        completed = self._completed[name]
        try:
            result = await asyncio.shield(completed)
        finally:
            if completed.done():
                self._completed.pop(name, None)
                self._begun.pop(name).cancel()
        return cast(Fetched, result if "error" not in result else _wire.result_of(result))

    async def cancel(self, fetch: Named) -> None:
        """Ends a fetch that was begun with `start`, or whose body came as a handle. One that has ended is none to end."""
        with contextlib.suppress(BrokerError, ConnectionClosed):
            await self.call("fetch/cancel", fetchId=fetch["fetchId"])
            if fetch["fetchId"] in self._completed:
                await self.finish(fetch)

    async def call(self, method: str, /, **params: Any) -> Any:
        """Any method of the protocol."""
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
            context = {"message": "the handler of an answer's end failed", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)

    def _take_reply(self, message: Message) -> None:
        number = _wire.own_id(message) or 0
        waiting, result = self._replies.get(number), message.get("result") or {}
        self._handlers.end(number, result)
        is_wanted = waiting is not None and not waiting.done()
        if "attachToken" in result and is_wanted:
            # What is told of it may be in the same bytes as this, and comes before the caller runs again.
            loop, name = asyncio.get_running_loop(), result["fetchId"]
            self._begun[name], self._completed[name] = loop.create_future(), loop.create_future()
        elif "attachToken" in result:
            # Whoever began it was cancelled meanwhile, and does not know its name.
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
            context = {"message": "the answer to a challenge failed, and the fetch is cancelled", "exception": error}
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

    # The other connections

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
        """Its outcome comes with `fetch/completed`; only the program's own mistake in making the body is told here."""
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
            # One that is closed at once may be that of a program that has died.
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
    """A response whose body is still to be taken, once, by going through it or with `read`."""

    def __init__(self, broker: AsyncWatchword, head: Fetched, body: Optional[Body], download: Optional[Started]):
        self.status, self.url, self.http_version = head["status"], head["url"], head["httpVersion"]
        #: In the order in which they came; a name may come more than once.
        self.headers: List[Tuple[str, str]] = [(name, value) for name, value in head["headers"]]
        #: What `fetch/run` returned; of an upload, all that is known so far.
        self.head = head
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
        """All that is left of it."""
        return b"".join([part async for part in self])

    async def buffer(self) -> None:
        """Reads the rest, and keeps it to be taken once more: how the fetch ended is known then."""
        self._body, self._download = _wire.body_json(await self.read()), None

    @property
    def _source(self) -> Named:
        return self._download or cast(Body, self._body)

    async def close(self) -> None:
        """Ends a fetch whose body is not wanted any more."""
        if not self._is_over:
            self._is_over = True
            await asyncio.shield(self._broker.cancel(self._source))
