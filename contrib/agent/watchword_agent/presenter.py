"""Where a person is asked: in windows, or where there are none by a fallback."""
from typing import Any, Callable, Protocol

from .question import Question

Answer = dict[str, Any]
Answered = Callable[[Answer], None]
Failed = Callable[[str], None]


class Presenter(Protocol):
    """Asks one question at a time."""

    name: str

    def present(self, question: Question, waiting: int, answered: Answered, failed: Failed) -> None:
        """Asks; then either `answered` or `failed` is called once on the main loop, or `withdraw` comes first."""

    def recount(self, waiting: int) -> None:
        """So many other questions wait behind the one that is shown."""

    def withdraw(self) -> None:
        """The answer is not wanted any more."""
