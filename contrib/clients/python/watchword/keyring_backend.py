"""A backend for Python's `keyring`.

Every fetch can use the logins that it stores. The broker releases their passwords only to programs that the configuration names.

Select it with `PYTHON_KEYRING_BACKEND=watchword.keyring_backend.WatchwordKeyring`, or `default-keyring` in keyringrc.cfg.
"""
from typing import Any, Dict, List, Optional
from urllib.parse import urlsplit

from keyring import backend, credentials, errors

from . import _wire
from .client import Watchword
from .errors import BrokerError, WatchwordError

_PORTS = {"http": 80, "https": 443}


class PasswordNotHandedOut(errors.KeyringError):
    """The password is stored, but the broker's configuration does not release it to this program."""


class WatchwordKeyring(backend.KeyringBackend):
    """A keyring whose `service` is a URL, as used by pip and twine, or an https host."""

    #: Lower than that of all real backends and of "fail": this backend is used only if selected explicitly, and never chained.
    priority = -1

    def __init__(self, path: Optional[str] = None, persistence: str = "permanent") -> None:
        """`persistence` is `permanent` (the desktop's keyring) or `forSession` (the broker's memory)."""
        super().__init__()
        self._path, self._persistence = path, persistence

    def get_password(self, service: str, username: str) -> Optional[str]:
        """Returns the password, or `None` if none is stored. Raises `PasswordNotHandedOut` if it is not released to this program."""
        found = self._handed_out(service, username)
        return None if found is None else str(found["password"])

    def get_credential(self, service: str, username: Optional[str]) -> Optional[credentials.Credential]:
        """Like `get_password`, for any user."""
        found = self._handed_out(service, username)
        return None if found is None else credentials.SimpleCredential(found["user"], found["password"])

    def _handed_out(self, service: str, username: Optional[str]) -> Optional[Dict[str, Any]]:
        # Listing needs no permission, so that without a stored login the result is `None`, not an error about the configuration.
        if not self._stored(service, username):
            return None
        user = {} if username is None else {"user": username}
        try:
            return dict(self._call("credential/get", protectionSpace=_space(service), **user)["credential"])
        except BrokerError as error:
            if error.kind == "unknownCredential":
                return None
            if error.kind == "denied":
                raise PasswordNotHandedOut(
                    f"{error.message}; or send the request through the broker: watchword.requests_adapter,"
                    " watchword.httpx_transport, `watchword fetch`.") from error
            raise errors.KeyringLocked(str(error)) from error
        except WatchwordError as error:
            raise errors.KeyringError(str(error)) from error

    def set_password(self, service: str, username: str, password: str) -> None:
        try:
            credential = {"type": "password", "user": username, "password": password, "persistence": self._persistence}
            self._call("credential/store", protectionSpace=_space(service), credential=credential)
        except WatchwordError as error:
            raise errors.PasswordSetError(str(error)) from error

    def delete_password(self, service: str, username: str) -> None:
        try:
            found = self._stored(service, username)
            if not found:
                raise errors.PasswordDeleteError(f"no password of {username!r} is stored for {service!r}")
            for credential in found:
                self._call("credential/forget", id=credential["id"])
        except WatchwordError as error:
            raise errors.PasswordDeleteError(str(error)) from error

    def _stored(self, service: str, username: Optional[str]) -> List[Dict[str, Any]]:
        """Returns the descriptions of the matching stored logins, without secrets."""
        try:
            listed = self._call("credential/list", protectionSpace=_space(service))["credentials"]
        except BrokerError as error:
            raise errors.KeyringLocked(str(error)) from error
        except WatchwordError as error:
            raise errors.KeyringError(str(error)) from error
        return [
            credential for credential in listed
            if credential.get("type", "password") == "password" and username in (None, credential["user"])]

    def _call(self, method: str, **params: Any) -> Any:
        with Watchword(path=self._path, name="keyring") as broker:
            return broker.call(method, **params)


def _space(service: str) -> Dict[str, Any]:
    parts = urlsplit(service if "://" in service else f"https://{service}")
    try:
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        port = None
    # `parts.hostname` maps some non-ASCII letters to ASCII.
    authority = parts.netloc.rpartition("@")[2]
    host = authority[1:].partition("]")[0] if authority.startswith("[") else authority.partition(":")[0]
    if parts.scheme not in _PORTS or not host or not port:
        raise errors.KeyringError(f"{service!r} is neither an http(s) URL nor a host")
    return {"protocol": parts.scheme, "host": _wire.ascii_lower(host), "port": port}
