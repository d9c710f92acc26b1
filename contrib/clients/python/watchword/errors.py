"""The errors of this package."""
from typing import Any, Dict, Optional


class WatchwordError(Exception):
    """The base class of all errors."""


class BrokerNotRunning(WatchwordError, ConnectionError):
    """No process listens on the socket."""

    def __init__(self, path: str, reason: str):
        super().__init__(
            f"no broker listens at {path} ({reason}); start one with `systemctl --user start watchword.socket` or `watchwordd`")
        self.path = path


class SocketNotTrusted(WatchwordError, ConnectionError):
    """Another user listens on the socket, or could replace it. Nothing was sent."""

    def __init__(self, path: str, reason: str):
        super().__init__(
            f"refusing to use the socket {path}: {reason}; the socket must be in a directory that only you can write to, "
            "such as $XDG_RUNTIME_DIR/watchword")
        self.path = path


class ConnectionClosed(WatchwordError, ConnectionError):
    """The broker closed the connection during a call."""

    def __init__(self, path: str):
        super().__init__(f"the broker at {path} closed the connection; see its log, then connect again")
        self.path = path


class BrokerError(WatchwordError):
    """An error reported by the broker.

    `kind` is stable and listed in Protocol/SPECIFICATION.md; `message` is for people. `retry` is `never`, `later` (the same
    request may succeed later) or `differently`.
    """

    def __init__(self, error: Dict[str, Any]):
        data = error.get("data") or {}
        self.code: int = error["code"]
        self.kind: Optional[str] = data.get("kind")
        self.message: str = data.get("detail") or error["message"]
        self.retry: str = data.get("retry", "never")
        super().__init__(self.message)

    @property
    def retriable(self) -> bool:
        """Whether the same request may succeed later."""
        return self.retry == "later"
