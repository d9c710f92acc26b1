"""The signatures of the functions that take the options of a fetch.

Each is written once here, for type checkers, `help` and the check of names.
"""
import functools
import inspect
from typing import TYPE_CHECKING, Any, AsyncIterable, Awaitable, BinaryIO, Callable, Iterable, Optional, Sequence, TypeVar, Union

from .answers import Answer, Answerer
from .messages import Challenge, InlineBody
from .options import AuthOptions, HeaderFields, LoginCredential, LowSpeed, Proxy, RedirectOptions, TLSOptions

if TYPE_CHECKING:
    from typing_extensions import ParamSpec
    P = ParamSpec("P")
R = TypeVar("R")

Data = Union[bytes, bytearray, str, BinaryIO, Iterable[bytes]]
AsyncData = Union[Data, AsyncIterable[bytes]]
#: A coroutine function runs on the loop. A plain function runs on a thread, because it may prompt a person and block.
AsyncAnswerer = Callable[[Challenge], Union[Answer, Awaitable[Answer]]]


def signature(template: "Callable[P, object]") -> "Callable[[Callable[..., R]], Callable[P, R]]":
    """Gives a function the signature of `template`; `TypeError` for any other option."""
    exact = inspect.signature(template)

    def decorate(function: "Callable[..., R]") -> "Callable[P, R]":
        @functools.wraps(function)
        def checked(*args: Any, **params: Any) -> R:
            unknown = params.keys() - exact.parameters.keys()
            if unknown:
                raise TypeError(f"{function.__name__}() has no option {sorted(unknown)[0]!r}; see help({function.__qualname__})")
            return function(*args, **params)
        checked.__signature__ = exact  # type: ignore[attr-defined]
        return checked
    return decorate


def fetch(
        self: Any, url: str, data: Optional[Data] = None, size: Optional[int] = None, inline_bytes: Optional[int] = None, *,
        handler: Optional[Answerer] = None, method: Optional[str] = None, headers: Optional[HeaderFields] = None,
        omitHeaders: Optional[Sequence[str]] = None, body: Optional[InlineBody] = None,
        credential: Optional[LoginCredential] = None, auth: Optional[AuthOptions] = None, proxy: Optional[Proxy] = None,
        tls: Optional[TLSOptions] = None, timeoutMs: Optional[int] = None, connectTimeoutMs: Optional[int] = None,
        lowSpeed: Optional[LowSpeed] = None, maxInlineBodyBytes: Optional[int] = None, maxBodyBytes: Optional[int] = None,
        maxBytesPerSecond: Optional[int] = None, decompress: Optional[bool] = None, cookies: Optional[str] = None,
        maxRedirects: Optional[int] = None,
        redirects: Optional[RedirectOptions] = None, notify: Optional[Sequence[str]] = None) -> None: ...


def start(
        self: Any, url: str, data: Optional[Data] = None, size: Optional[int] = None, *,
        handler: Optional[Answerer] = None, method: Optional[str] = None, headers: Optional[HeaderFields] = None,
        omitHeaders: Optional[Sequence[str]] = None, body: Optional[InlineBody] = None,
        credential: Optional[LoginCredential] = None, auth: Optional[AuthOptions] = None, proxy: Optional[Proxy] = None,
        tls: Optional[TLSOptions] = None, timeoutMs: Optional[int] = None, connectTimeoutMs: Optional[int] = None,
        lowSpeed: Optional[LowSpeed] = None, maxBodyBytes: Optional[int] = None,
        maxBytesPerSecond: Optional[int] = None, decompress: Optional[bool] = None, cookies: Optional[str] = None,
        maxRedirects: Optional[int] = None,
        redirects: Optional[RedirectOptions] = None, notify: Optional[Sequence[str]] = None) -> None: ...


def async_fetch(
        self: Any, url: str, data: Optional[AsyncData] = None, size: Optional[int] = None, inline_bytes: Optional[int] = None, *,
        handler: Optional[AsyncAnswerer] = None, method: Optional[str] = None, headers: Optional[HeaderFields] = None,
        omitHeaders: Optional[Sequence[str]] = None, body: Optional[InlineBody] = None,
        credential: Optional[LoginCredential] = None, auth: Optional[AuthOptions] = None, proxy: Optional[Proxy] = None,
        tls: Optional[TLSOptions] = None, timeoutMs: Optional[int] = None, connectTimeoutMs: Optional[int] = None,
        lowSpeed: Optional[LowSpeed] = None, maxInlineBodyBytes: Optional[int] = None, maxBodyBytes: Optional[int] = None,
        maxBytesPerSecond: Optional[int] = None, decompress: Optional[bool] = None, cookies: Optional[str] = None,
        maxRedirects: Optional[int] = None,
        redirects: Optional[RedirectOptions] = None, notify: Optional[Sequence[str]] = None) -> None: ...


def async_start(
        self: Any, url: str, data: Optional[AsyncData] = None, size: Optional[int] = None, *,
        handler: Optional[AsyncAnswerer] = None, method: Optional[str] = None, headers: Optional[HeaderFields] = None,
        omitHeaders: Optional[Sequence[str]] = None, body: Optional[InlineBody] = None,
        credential: Optional[LoginCredential] = None, auth: Optional[AuthOptions] = None, proxy: Optional[Proxy] = None,
        tls: Optional[TLSOptions] = None, timeoutMs: Optional[int] = None, connectTimeoutMs: Optional[int] = None,
        lowSpeed: Optional[LowSpeed] = None, maxBodyBytes: Optional[int] = None,
        maxBytesPerSecond: Optional[int] = None, decompress: Optional[bool] = None, cookies: Optional[str] = None,
        maxRedirects: Optional[int] = None,
        redirects: Optional[RedirectOptions] = None, notify: Optional[Sequence[str]] = None) -> None: ...


def adapter(
        self: Any, answer: Optional[Answerer] = None, path: Optional[str] = None, name: Optional[str] = None, *,
        auth: Optional[AuthOptions] = None, proxy: Optional[Proxy] = None, tls: Optional[TLSOptions] = None,
        timeoutMs: Optional[int] = None, connectTimeoutMs: Optional[int] = None, lowSpeed: Optional[LowSpeed] = None,
        maxBodyBytes: Optional[int] = None, maxBytesPerSecond: Optional[int] = None, decompress: Optional[bool] = None,
        omitHeaders: Optional[Sequence[str]] = None) -> None: ...


def async_adapter(
        self: Any, answer: Optional[AsyncAnswerer] = None, path: Optional[str] = None, name: Optional[str] = None, *,
        auth: Optional[AuthOptions] = None, proxy: Optional[Proxy] = None, tls: Optional[TLSOptions] = None,
        timeoutMs: Optional[int] = None, connectTimeoutMs: Optional[int] = None, lowSpeed: Optional[LowSpeed] = None,
        maxBodyBytes: Optional[int] = None, maxBytesPerSecond: Optional[int] = None, decompress: Optional[bool] = None,
        omitHeaders: Optional[Sequence[str]] = None) -> None: ...
