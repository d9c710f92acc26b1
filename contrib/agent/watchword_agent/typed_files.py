"""The certificate files of previous answers, which are proposed again when an answer failed."""
from typing import Any, Optional

from .question import Kind, Question

_LIMIT = 16
# Attributes of a `pkcs11:` URI that contain a secret or lead to one (RFC 7512 section 2.4).
_SECRET_ATTRIBUTES = ("pin-value", "pin-source")


class TypedFiles:
    """Remembers paths and `pkcs11:` URIs, by server and program."""

    def __init__(self) -> None:
        self._files: dict[tuple[Any, ...], tuple[str, str]] = {}

    def record(self, question: Question, answer: dict[str, Any]) -> None:
        """Remembers the files of an answer, without URIs that contain a PIN."""
        files = files_of(answer)
        if files is None:
            return
        file, key = ("" if any(one in text for one in _SECRET_ATTRIBUTES) else text for text in files)  # guard: agent-typed-pins
        self._files.pop(_place(question), None)
        self._files[_place(question)] = (file, key)
        while len(self._files) > _LIMIT:
            del self._files[next(iter(self._files))]

    def of(self, question: Question) -> tuple[str, str]:
        """Returns the files of the previous answer if that failed, else nothing."""
        is_next = question.kind is Kind.CERTIFICATE and (question.failures > 0 or question.problem is not None)
        return self._files.get(_place(question), ("", "")) if is_next else ("", "")


def files_of(answer: dict[str, Any]) -> Optional[tuple[str, str]]:
    """Returns the paths or URIs of certificate and key of an answer, or `None` if it is about something else."""
    credential = answer.get("credential") or {}
    return (credential["certificate"], credential.get("privateKey", "")) if credential.get("type") == "certificate" else None


def _place(question: Question) -> tuple[Any, ...]:
    space = question.space
    return (space.protocol, space.host, space.port, space.is_proxy, question.requester.subject)
