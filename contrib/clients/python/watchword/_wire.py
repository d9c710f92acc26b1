"""The parts shared by the blocking and the asyncio client. The only I/O is opening the socket."""
import base64
import io
import json
import os
import socket
import stat
import string
from typing import Any, Dict, Iterable, Iterator, Optional, Tuple

from . import _trust
from ._version import __version__
from .answers import credential_json
from .errors import BrokerError, BrokerNotRunning, SocketNotTrusted
from .messages import Body, InlineBody, Message

#: The size limit of an inline request body; a larger body is sent over a connection of its own.
INLINE_BYTES = 1 << 20
PART_BYTES = 1 << 20
#: The size limit of a line: the longest reply contains a body of 8 MiB, with escapes.
LONGEST_LINE = 64 << 20
DAY_MS = 86_400_000

_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def ascii_lower(text: str) -> str:
    """Lowers ASCII letters only, for schemes, hosts and header names: `str.lower` maps U+212A (KELVIN SIGN) to `k`."""
    return text.translate(_LOWER)


def number(text: Optional[str]) -> Optional[int]:
    """Parses ASCII digits; `int` also accepts other scripts' digits, signs, spaces and underscores."""
    return int(text) if text and text.isascii() and text.isdigit() else None


def own_id(message: Message) -> Optional[int]:
    """Returns the id of a reply if it is an integer. In Python `True` and `1.0` are equal to the key 1."""
    found = message.get("id")
    return found if type(found) is int else None


def socket_path(explicit: Optional[str] = None) -> str:
    """Returns `explicit`, `$WATCHWORD_SOCKET`, or the path below `$XDG_RUNTIME_DIR` or /run/user/UID."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    runtime = runtime if runtime.startswith("/") else f"/run/user/{os.getuid()}"
    return explicit or os.environ.get("WATCHWORD_SOCKET") or f"{runtime}/watchword/broker.sock"


def trust(path: str, problem: Optional[str]) -> None:
    """Raises `SocketNotTrusted` unless `problem` is `None`."""
    if problem:
        raise SocketNotTrusted(path, problem)


def connect(path: str) -> socket.socket:
    """Connects to a broker of this user."""
    trust(path, _trust.directory_problem(path))
    opened = socket.socket(socket.AF_UNIX)
    try:
        opened.connect(path)
    except OSError as error:
        opened.close()
        raise BrokerNotRunning(path, error.strerror or str(error)) from None
    try:
        trust(path, _trust.peer_problem(opened))
    except BaseException:
        opened.close()
        raise
    return opened


def line(message: Message) -> bytes:
    return json.dumps(message, default=credential_json).encode() + b"\n"


def request(number: int, method: str, params: Dict[str, Any]) -> Message:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def initialize_params(name: str, answers: bool) -> Dict[str, Any]:
    capabilities = {"challenge": {"delivery": "request"}} if answers else {}
    return {"client": {"name": name, "version": __version__}, "protocolVersion": 1, "capabilities": capabilities}


def unknown_method(message: Message) -> Message:
    error = {"code": -32601, "message": "method not supported by this client"}
    return {"jsonrpc": "2.0", "id": message["id"], "error": error}


def result_of(message: Message) -> Any:
    if "error" in message:
        raise BrokerError(message["error"])
    return message["result"]


def body_bytes(body: InlineBody) -> bytes:
    """Returns the bytes of an inline body."""
    return base64.b64decode(body["value"]) if body["type"] == "base64" else body["value"].encode()


def body_json(data: bytes) -> InlineBody:
    try:
        return {"type": "string", "value": data.decode()}
    except UnicodeDecodeError:
        return {"type": "base64", "value": base64.b64encode(data).decode()}


def size_of(data: Any) -> Optional[int]:
    """Returns the size of a request body in bytes, or `None` if it is not known before reading."""
    if isinstance(data, (bytes, bytearray)):
        return len(data)
    try:
        status = os.fstat(data.fileno())
        return status.st_size - data.tell() if stat.S_ISREG(status.st_mode) else None
    except (AttributeError, OSError, io.UnsupportedOperation):
        return None


def prepare(data: Optional[Any], params: Dict[str, Any], size: Optional[int] = None) -> Tuple[Dict[str, Any], Optional[Any]]:
    """Returns the parameters including the body, and the data to send over a connection of its own, if any."""
    if data is None:
        return params, None
    if isinstance(data, str):
        data = data.encode()
    if isinstance(data, (bytes, bytearray)) and len(data) <= INLINE_BYTES:
        return {**params, "body": body_json(bytes(data))}, None
    known = size_of(data) if size is None else size
    # `fetch/start` has no inline response bodies.
    params = {name: value for name, value in params.items() if name != "maxInlineBodyBytes"}
    return {**params, "body": {"type": "attach"} if known is None else {"type": "attach", "sizeBytes": known}}, data


def parts_of(data: Any) -> Iterator[bytes]:
    """Returns the non-empty parts of a request body."""
    if isinstance(data, (bytes, bytearray)):
        data = io.BytesIO(data)
    parts: Iterable[Any] = data
    if hasattr(data, "read"):
        parts = iter(lambda: data.read(PART_BYTES) or b"", b"")
    return (part.encode() if isinstance(part, str) else part for part in parts if part)
