"""The interface of presenters, which show questions: windows or a fallback."""
from typing import Any, Callable, Protocol

from .question import Question

Answer = dict[str, Any]
Answered = Callable[[Answer], None]
Failed = Callable[[str], None]


class Presenter(Protocol):
    """Shows one question at a time."""

    name: str

    def present(self, question: Question, waiting: int, answered: Answered, failed: Failed) -> None:
        """Shows the question. Then `answered` or `failed` is called once on the main loop, unless `withdraw` is called first."""

    def recount(self, waiting: int) -> None:
        """Updates the number of questions behind the question that is shown."""

    def withdraw(self) -> None:
        """Closes the question: its answer is no longer needed."""
