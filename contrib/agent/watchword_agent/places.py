"""Where the socket, the lock and the account of what happened are."""
import os
import pathlib


def runtime_folder() -> pathlib.Path:
    """`$XDG_RUNTIME_DIR/watchword`, made if it is not there, for this user alone."""
    runtime = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    folder = pathlib.Path(runtime) / "watchword"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def socket_path() -> str:
    """As the specification has it."""
    given = os.environ.get("WATCHWORD_SOCKET")
    runtime = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    return given or f"{runtime}/watchword/broker.sock"


def audit_file() -> pathlib.Path:
    """What the broker has written down of who used what."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return pathlib.Path(state) / "watchword" / "audit.jsonl"
