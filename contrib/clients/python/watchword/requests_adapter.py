"""An adapter that sends the requests of `requests` through the broker.

>>> session = requests.Session()
>>> session.mount("https://", WatchwordAdapter(answer=ask))
"""
import email.message
import http.client
import io
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple, Union

import requests
from requests import exceptions
from requests.adapters import HTTPAdapter
from requests.utils import select_proxy
from urllib3.exceptions import ProtocolError, ReadTimeoutError
from urllib3.response import HTTPResponse

from . import _adapting, _signatures, _wire
from .answers import Answerer
from .client import Stream
from .errors import BrokerError, BrokerNotRunning, ConnectionClosed, SocketNotTrusted, WatchwordError

_EXCEPTIONS = {
    "badURL": exceptions.InvalidURL, "invalidHeader": exceptions.InvalidHeader, "proxyFailed": exceptions.ProxyError,
    "tlsFailed": exceptions.SSLError, "serverNotTrusted": exceptions.SSLError, "clientCertificateRejected": exceptions.SSLError,
    "cannotConnect": exceptions.ConnectionError, "nameNotResolved": exceptions.ConnectionError,
    "tooManyRedirects": exceptions.TooManyRedirects, **{kind: exceptions.ReadTimeout for kind in _adapting.TIMEOUTS}}


class InsecureRedirect(exceptions.ConnectionError):
    """A redirect from https to another scheme after a login."""


class WatchwordAdapter(HTTPAdapter):
    """Sends the requests of a session through the broker. `answer` is as for `Watchword`. Thread-safe.

    `requests` follows redirects; each hop is a fetch of its own.
    """

    @_signatures.signature(_signatures.adapter)
    def __init__(self, answer: Optional[Answerer] = None, path: Optional[str] = None, name: Optional[str] = None, **params: Any):
        """`params` are options of each fetch: `auth={"useStorage": False}`, `tls={"pin": Trust(…)}`."""
        super().__init__()
        self._pool, self._params = _adapting.Pool(answer, path, name or "requests"), params

    def send(
            self, request: requests.PreparedRequest, stream: bool = False,
            timeout: Union[None, float, Tuple[Optional[float], Optional[float]]] = None, verify: Union[bool, str] = True,
            cert: Any = None, proxies: Optional[Mapping[str, str]] = None) -> requests.Response:
        if verify is False:
            raise exceptions.SSLError(
                "verify=False is not supported: the broker verifies every certificate; pin the server's key with WatchwordAdapter(tls={'pin': Trust(…)})",
                request=request)
        inline: Dict[str, Any] = {"inline_bytes": 0 if stream else 1 << 20}
        try:
            params = self._params_of(request, timeout, cert, proxies)
        except ValueError as error:
            raise exceptions.InvalidHeader(str(error), request=request) from None
        try:
            broker = self._pool.take()
            opened = None
            try:
                opened = broker.open(request.url or "", request.body, _length(request), **inline, **params)
                # `requests` copies the hooks of a request to its redirects.
                _adapting.check_redirect(opened, request.hooks)
            except BaseException as error:
                if opened:
                    opened.close()
                if not isinstance(error, ConnectionClosed):
                    self._pool.give_back(broker)
                raise
        except _adapting.InsecureRedirect as error:
            raise InsecureRedirect(str(error), request=request) from None
        except WatchwordError as error:
            raise _translated(error, request) from error
        opened.on_close = lambda: self._pool.give_back(broker)
        return self._response(request, opened)

    def close(self) -> None:
        self._pool.close()
        super().close()

    def _params_of(self, request: requests.PreparedRequest, timeout: Any, cert: Any, proxies: Any) -> Dict[str, Any]:
        headers, credential = _adapting.split_headers(
            (_text(name), _text(value)) for name, value in request.headers.items())
        params = {"method": request.method, "headers": headers, "maxRedirects": 0, **_adapting.patience(_read_timeout(timeout))}
        params.update(_adapting.tls(cert), **self._params)
        if credential:
            params["credential"] = credential
        proxy = select_proxy(request.url, proxies)
        if proxy:
            params["proxy"] = {"url": proxy if "://" in proxy else f"http://{proxy}"}
        return params

    def _response(self, request: requests.PreparedRequest, opened: Stream) -> requests.Response:
        raw = _Raw(
            body=_File(_Body(opened)), headers=opened.headers, status=opened.status, preload_content=False,
            version={"1.0": 10, "2": 20}.get(opened.http_version, 11), reason=http.client.responses.get(opened.status, ""),
            decode_content=False, original_response=_Original(opened.headers), request_method=request.method)
        response: requests.Response = self.build_response(request, raw)
        #: The result of `fetch/run`, including how it was authenticated.
        response.watchword = opened.head
        return response


def _length(request: requests.PreparedRequest) -> Optional[int]:
    """Returns the size that `requests` has determined for the body."""
    return _wire.number(request.headers.get("Content-Length"))


def _read_timeout(timeout: Any) -> Optional[float]:
    seconds: Optional[float] = timeout[1] if isinstance(timeout, tuple) else timeout
    return seconds


def _text(value: Union[str, bytes]) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value


def _translated(error: WatchwordError, request: requests.PreparedRequest) -> exceptions.RequestException:
    kind = error.kind if isinstance(error, BrokerError) else None
    if isinstance(error, (BrokerNotRunning, ConnectionClosed, SocketNotTrusted)):
        kind = "cannotConnect"
    made: exceptions.RequestException = _EXCEPTIONS.get(kind or "", exceptions.ConnectionError)(str(error), request=request)
    return made


class _Body(io.RawIOBase):
    """The body of a response as a file, which raises the urllib3 errors that `requests` expects."""

    def __init__(self, opened: Stream):
        self._opened, self._rest = opened, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            try:
                part = next(iter(self._opened), None)
            except BrokerError as error:
                if error.kind in _adapting.TIMEOUTS:
                    raise ReadTimeoutError(None, self._opened.url, str(error)) from error
                raise ProtocolError(str(error), error) from error
            except ConnectionClosed as error:
                raise ProtocolError(str(error), error) from error
            if part is None:
                return 0
            self._rest = memoryview(part)
        count = min(len(buffer), len(self._rest))
        buffer[:count], self._rest = self._rest[:count], self._rest[count:]
        return count

    def close(self) -> None:
        if not self.closed:
            self._opened.close()
        super().close()


class _File(io.BufferedReader):
    """A file whose `read` waits for all bytes requested or, if `is_piecewise` is set, returns parts as they arrive."""

    is_piecewise = False

    def read(self, size: Optional[int] = -1) -> bytes:
        return self.read1(size) if self.is_piecewise and size else super().read(size)


class _Raw(HTTPResponse):
    def stream(self, amt: Optional[int] = 1 << 16, decode_content: Optional[bool] = None) -> Iterator[bytes]:
        self._fp.is_piecewise = True
        yield from super().stream(amt or 1 << 20, decode_content)


class _Original:
    """The object from which `requests` reads cookies: a substitute for `http.client.HTTPResponse`."""

    def __init__(self, headers: List[Tuple[str, str]]):
        self.msg = email.message.Message()
        for name, value in headers:
            self.msg[name] = value

    def isclosed(self) -> bool:
        return False

    def close(self) -> None:
        pass
