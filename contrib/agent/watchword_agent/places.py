"""The paths of the socket, the lock, the audit log, the configuration, and the list of certificate files."""
import os
import pathlib


def runtime_folder() -> pathlib.Path:
    """Returns `$XDG_RUNTIME_DIR/watchword`, created with mode 0700 if missing."""
    runtime = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    folder = pathlib.Path(runtime) / "watchword"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def socket_path() -> str:
    """Returns the path of the broker's socket (Protocol/SPECIFICATION.md, Transport)."""
    given = os.environ.get("WATCHWORD_SOCKET")
    runtime = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    return given or f"{runtime}/watchword/broker.sock"


def audit_file() -> pathlib.Path:
    """Returns the path of the broker's audit log."""
    return _state_folder() / "audit.jsonl"


def recent_certificates() -> str:
    """Returns the path of the list of certificate files that were used recently."""
    return str(_state_folder() / "agent-certificates.json")


def configuration_file() -> str:
    """Returns the path of the configuration, unless the broker was started with another one."""
    folder = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return os.path.join(folder, "watchword", "config.toml")


def _state_folder() -> pathlib.Path:
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return pathlib.Path(state) / "watchword"
