"""Looks for certificates on PKCS#11 tokens, in another process and with a time limit, because a token can hang."""
import base64
import binascii
import contextlib
import json
import pathlib
import sys
from typing import Callable

from gi.repository import Gio, GLib

from . import certificate_choices, configuration, places

#: The time limit for all tokens together.
LIMIT_SECONDS = 5
_PROGRAM = pathlib.Path(__file__).with_name("token_program.py")
Choices = list[certificate_choices.Choice]


class TokenSearch:
    """A running search. `found` receives the certificates once, unless `cancel` is called first."""

    def __init__(self, module: str, found: Callable[[Choices], None], limit_seconds: float = LIMIT_SECONDS) -> None:
        self._found, self._timer = found, 0
        words = [sys.executable or "/usr/bin/python3", str(_PROGRAM), *([module] if module else [])]
        try:
            self._process = Gio.Subprocess.new(words, Gio.SubprocessFlags.STDOUT_PIPE | Gio.SubprocessFlags.STDERR_SILENCE)
        except GLib.Error:
            return found([])
        self._timer = GLib.timeout_add(int(limit_seconds * 1000), self._late)
        self._process.communicate_async(None, None, self._ended)

    def cancel(self) -> None:
        """Ends the search."""
        self._found = lambda choices: None
        if self._timer:
            self._process.force_exit()

    def _late(self) -> bool:
        self._timer = 0
        self._process.force_exit()
        return GLib.SOURCE_REMOVE

    def _ended(self, process: Gio.Subprocess, result: Gio.AsyncResult) -> None:
        if self._timer:
            GLib.source_remove(self._timer)
            self._timer = 0
        output = b""
        with contextlib.suppress(GLib.Error):
            _, content, _ = process.communicate_finish(result)
            output = content.get_data() if content else b""
        self._found(parsed(output or b""))


def parsed(output: bytes) -> Choices:
    """Returns the certificates in the program's output. The last line can be cut off."""
    found = []
    for line in output.splitlines():
        with contextlib.suppress(ValueError, KeyError, TypeError, binascii.Error):
            one = json.loads(line)
            found.append(certificate_choices.on_token(one["uri"], one["token"], base64.b64decode(one["der"])))
    return [one for one in found if one is not None]


def configured_module() -> str:
    """Returns the module in the configuration, or nothing for p11-kit's modules."""
    try:
        return configuration.token_module(configuration.read(places.configuration_file()))
    except configuration.Unusable:
        return ""
