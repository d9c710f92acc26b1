"""What can go wrong between this program and the broker."""
from typing import Any, Dict, Optional


class WatchwordError(Exception):
    """All errors of this package."""


class BrokerNotRunning(WatchwordError, ConnectionError):
    """Nobody listens at the socket."""

    def __init__(self, path: str, reason: str):
        super().__init__(
            f"no broker listens at {path} ({reason}): start one with `systemctl --user start watchword.socket` or `watchwordd`")
        self.path = path


class SocketNotTrusted(WatchwordError, ConnectionError):
    """Another user listens at the socket, or could: nothing was sent."""

    def __init__(self, path: str, reason: str):
        super().__init__(
            f"refusing to use the socket {path}: {reason}; it has to be in a directory that only you can write to, "
            "such as $XDG_RUNTIME_DIR/watchword")
        self.path = path


class ConnectionClosed(WatchwordError, ConnectionError):
    """The broker went away in the middle of it."""

    def __init__(self, path: str):
        super().__init__(f"the broker at {path} has closed the connection: look at its log, connect and try again")
        self.path = path


class BrokerError(WatchwordError):
    """What the broker says went wrong.

    `kind` is stable and listed in Protocol/SPECIFICATION.md, `message` is for people. `retry` is `never`, `later` (the same
    may work another time) or `differently`.
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
        """Whether the very same may work another time."""
        return self.retry == "later"
