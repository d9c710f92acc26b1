"""Transports that send the requests of `httpx` through the broker.

>>> client = httpx.Client(transport=WatchwordTransport(answer=ask))
>>> client = httpx.AsyncClient(transport=AsyncWatchwordTransport(answer=ask))
"""
import asyncio
import contextlib
from typing import Any, AsyncIterator, Callable, Dict, Iterator, List, Optional, Tuple, Type

import httpx

from . import _adapting, _signatures, _wire
from ._signatures import AsyncAnswerer
from .aio import AsyncStream, AsyncWatchword
from .answers import Answerer
from .client import Stream
from .errors import BrokerError, BrokerNotRunning, ConnectionClosed, SocketNotTrusted, WatchwordError

_EXCEPTIONS: Dict[str, Type[httpx.TransportError]] = {
    "badURL": httpx.UnsupportedProtocol, "invalidHeader": httpx.LocalProtocolError, "proxyFailed": httpx.ProxyError,
    "tlsFailed": httpx.ConnectError, "serverNotTrusted": httpx.ConnectError, "clientCertificateRejected": httpx.ConnectError,
    "cannotConnect": httpx.ConnectError, "nameNotResolved": httpx.ConnectError, "malformedResponse": httpx.RemoteProtocolError,
    "bodyIncomplete": httpx.WriteError, **{kind: httpx.ReadTimeout for kind in _adapting.TIMEOUTS}}
#: The limit of concurrent requests; the broker allows 64 unread bodies per connection.
_AT_ONCE = 60


class InsecureRedirect(httpx.RemoteProtocolError):
    """A redirect from https to another scheme after a login."""


class WatchwordTransport(httpx.BaseTransport):
    """Sends the requests of an `httpx.Client` through the broker. `answer` is as for `Watchword`. Thread-safe.

    `httpx` follows redirects if configured to; each hop is a fetch of its own.
    """

    @_signatures.signature(_signatures.adapter)
    def __init__(self, answer: Optional[Answerer] = None, path: Optional[str] = None, name: Optional[str] = None, **params: Any):
        """`params` are options of each fetch: `auth={"useStorage": False}`, `tls={"pin": Trust(…)}`."""
        self._pool, self._params = _adapting.Pool(answer, path, name or "httpx"), params

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        with _translating(request):
            params = {**_params_of(request), **self._params}
            broker = self._pool.take()
            opened = None
            try:
                opened = broker.open(str(request.url), *_data_of(request), **params)
                _adapting.check_redirect(opened, request.extensions)
            except BaseException as error:
                if opened:
                    opened.close()
                if not isinstance(error, ConnectionClosed):
                    self._pool.give_back(broker)
                raise
        opened.on_close = lambda: self._pool.give_back(broker)
        return _response(opened.status, opened.headers, _SyncBody(opened, request), opened.http_version, opened.head)

    def close(self) -> None:
        self._pool.close()


class AsyncWatchwordTransport(httpx.AsyncBaseTransport):
    """Sends the requests of an `httpx.AsyncClient` through one connection to the broker, on one event loop."""

    @_signatures.signature(_signatures.async_adapter)
    def __init__(self, answer: Optional[AsyncAnswerer] = None, path: Optional[str] = None, name: Optional[str] = None, **params: Any):
        self._make: Callable[[], AsyncWatchword] = lambda: AsyncWatchword(answer, path, name or "httpx")
        self._params = params
        self._broker: Optional[AsyncWatchword] = None
        self._room = asyncio.Semaphore(_AT_ONCE)
        self._connecting = asyncio.Lock()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await self._room.acquire()
        opened = None
        try:
            with _translating(request):
                broker = await self._connected()
                params = {**_params_of(request), **self._params}
                opened = await broker.open(str(request.url), *_data_of(request), **params)
                await _adapting.check_redirect_async(opened, request.extensions)
        except BaseException:
            self._room.release()
            if opened:
                await opened.close()
            raise
        body = _AsyncBody(opened, request, self._room.release)
        return _response(opened.status, opened.headers, body, opened.http_version, opened.head)

    async def aclose(self) -> None:
        if self._broker:
            await self._broker.close()
            self._broker = None

    async def _connected(self) -> AsyncWatchword:
        async with self._connecting:
            if self._broker is None or not self._broker.is_open:
                self._broker = await self._make().connect()
            return self._broker


def _params_of(request: httpx.Request) -> Dict[str, Any]:
    headers, credential = _adapting.split_headers(
        (name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.raw)
    timeout = request.extensions.get("timeout", {}).get("read")
    params = {"method": request.method, "headers": headers, "maxRedirects": 0, **_adapting.patience(timeout)}
    return {**params, "credential": credential} if credential else params


def _data_of(request: httpx.Request) -> Tuple[Any, Optional[int]]:
    """Returns the request body, and its size if httpx knows it."""
    length = request.headers.get("Content-Length")
    if length is None and "Transfer-Encoding" not in request.headers:
        return None, None
    try:
        return request.content, None
    except httpx.RequestNotRead:
        return request.stream, _wire.number(length)


def _response(
        status: int, headers: List[Tuple[str, str]], stream: Any, version: str, head: Any) -> httpx.Response:
    fields = [(name.encode("latin-1", "replace"), value.encode("latin-1", "replace")) for name, value in headers]
    #: `watchword` is the result of `fetch/run`, including how it was authenticated.
    extensions = {"http_version": f"HTTP/{version}".encode(), "watchword": head}
    return httpx.Response(status, headers=fields, stream=stream, extensions=extensions)


@contextlib.contextmanager
def _translating(request: httpx.Request) -> Iterator[None]:
    try:
        yield
    except _adapting.InsecureRedirect as error:
        raise InsecureRedirect(str(error), request=request) from None
    except ValueError as error:
        raise httpx.LocalProtocolError(str(error), request=request) from None
    except (BrokerNotRunning, ConnectionClosed, SocketNotTrusted) as error:
        kind = httpx.RemoteProtocolError if isinstance(error, ConnectionClosed) else httpx.ConnectError
        raise kind(str(error), request=request) from error
    except WatchwordError as error:
        kind = _EXCEPTIONS.get((error.kind if isinstance(error, BrokerError) else None) or "", httpx.ReadError)
        raise kind(str(error), request=request) from error


class _SyncBody(httpx.SyncByteStream):
    def __init__(self, opened: Stream, request: httpx.Request):
        self._opened, self._request = opened, request

    def __iter__(self) -> Iterator[bytes]:
        with _translating(self._request):
            yield from self._opened

    def close(self) -> None:
        self._opened.close()


class _AsyncBody(httpx.AsyncByteStream):
    def __init__(self, opened: AsyncStream, request: httpx.Request, then: Callable[[], None]):
        self._opened, self._request, self._then = opened, request, then

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _translating(self._request):
            async for part in self._opened:
                yield part

    async def aclose(self) -> None:
        then, self._then = self._then, lambda: None
        try:
            await self._opened.close()
        finally:
            then()
