"""What the blocking client and that for asyncio have in common: no I/O but for opening the socket."""
import base64
import io
import json
import os
import socket
import stat
import string
from typing import Any, BinaryIO, Dict, Iterable, Iterator, Optional, Tuple, Union

from . import _trust
from .errors import BrokerError, BrokerNotRunning, SocketNotTrusted
from .messages import Body, Message

#: What is inline in a message; larger bodies go through a connection of their own.
INLINE_BYTES = 1 << 20
PART_BYTES = 1 << 20
#: The longest reply holds a body of 8 MiB, escaped.
LONGEST_LINE = 64 << 20
DAY_MS = 86_400_000

Data = Union[bytes, bytearray, str, BinaryIO, Iterable[bytes]]


_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def ascii_lower(text: str) -> str:
    """For names of schemes, hosts and header fields: `str.lower` makes other letters ASCII as well (KELVIN SIGN a `k`)."""
    return text.translate(_LOWER)


def number(text: Optional[str]) -> Optional[int]:
    """What ASCII digits say, and nothing else: `int` reads those of every script, signs, blanks and underscores."""
    return int(text) if text and text.isascii() and text.isdigit() else None


def own_id(message: Message) -> Optional[int]:
    """The id of a reply, as this client makes them. In Python `True` and `1.0` are the key that 1 is."""
    found = message.get("id")
    return found if type(found) is int else None


def socket_path(explicit: Optional[str] = None) -> str:
    """`explicit`, else `$WATCHWORD_SOCKET`, else below `$XDG_RUNTIME_DIR`, else below /run/user/UID."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    runtime = runtime if runtime.startswith("/") else f"/run/user/{os.getuid()}"
    return explicit or os.environ.get("WATCHWORD_SOCKET") or f"{runtime}/watchword/broker.sock"


def trust(path: str, problem: Optional[str]) -> None:
    """Raises where there is a problem."""
    if problem:
        raise SocketNotTrusted(path, problem)


def connect(path: str) -> socket.socket:
    """A connection to a broker of this user."""
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
    return json.dumps(message).encode() + b"\n"


def request(number: int, method: str, params: Dict[str, Any]) -> Message:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def initialize_params(name: str, answers: bool) -> Dict[str, Any]:
    capabilities = {"challenge": {"delivery": "request"}} if answers else {}
    return {"client": {"name": name}, "protocolVersion": 1, "capabilities": capabilities}


def unknown_method(message: Message) -> Message:
    error = {"code": -32601, "message": "this client does not answer that"}
    return {"jsonrpc": "2.0", "id": message["id"], "error": error}


def result_of(message: Message) -> Any:
    if "error" in message:
        raise BrokerError(message["error"])
    return message["result"]


def body_bytes(body: Body) -> bytes:
    """Of a body that came inline."""
    return base64.b64decode(body["value"]) if body["type"] == "base64" else body["value"].encode()


def body_json(data: bytes) -> Body:
    try:
        return {"type": "string", "value": data.decode()}
    except UnicodeDecodeError:
        return {"type": "base64", "value": base64.b64encode(data).decode()}


def size_of(data: Any) -> Optional[int]:
    """How much a request's body is, where that is known before it is read."""
    if isinstance(data, (bytes, bytearray)):
        return len(data)
    try:
        status = os.fstat(data.fileno())
        return status.st_size - data.tell() if stat.S_ISREG(status.st_mode) else None
    except (AttributeError, OSError, io.UnsupportedOperation):
        return None


def prepare(data: Optional[Any], params: Dict[str, Any], size: Optional[int] = None) -> Tuple[Dict[str, Any], Optional[Any]]:
    """The parameters with the body, and what is to go through a connection of its own."""
    if data is None:
        return params, None
    if isinstance(data, str):
        data = data.encode()
    if isinstance(data, (bytes, bytearray)) and len(data) <= INLINE_BYTES:
        return {**params, "body": body_json(bytes(data))}, None
    known = size_of(data) if size is None else size
    return {**params, "body": {"type": "attach"} if known is None else {"type": "attach", "sizeBytes": known}}, data


def parts_of(data: Any) -> Iterator[bytes]:
    """A request's body in parts that are not empty."""
    if isinstance(data, (bytes, bytearray)):
        data = io.BytesIO(data)
    parts: Iterable[Any] = data
    if hasattr(data, "read"):
        parts = iter(lambda: data.read(PART_BYTES) or b"", b"")
    return (part.encode() if isinstance(part, str) else part for part in parts if part)
