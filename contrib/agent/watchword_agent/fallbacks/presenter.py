"""A presenter that runs a blocking dialogue on a thread and reports its answer on the main loop."""
import contextlib
import threading
from typing import Callable, Optional

from gi.repository import GLib

from .. import presenter
from ..question import Question
from .askpass import Askpass
from .conversation import converse
from .dialogue import Dialogue, Stopper, Unavailable, Withdrawn
from .pinentry import Pinentry
from .terminal import Terminal
from .zenity import Zenity

#: The dialogues, in the order in which they are tried.
FALLBACKS: dict[str, Callable[[Stopper], Dialogue]] = {
    "zenity": Zenity, "pinentry": Pinentry, "askpass": Askpass, "terminal": Terminal}


class FallbackPresenter:
    """Shows one question at a time with one of `FALLBACKS`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._stopper: Optional[Stopper] = None

    def check(self) -> None:
        """Raises `Unavailable` if the dialogue cannot be used now."""
        with contextlib.closing(Stopper()) as stopper, _closing(FALLBACKS[self.name](stopper)):
            pass

    def present(self, question: Question, waiting: int, answered: presenter.Answered, failed: presenter.Failed) -> None:
        """Starts the dialogue."""
        stopper = self._stopper = Stopper()

        def ask() -> None:
            then: Callable[[], None]
            try:
                with _closing(FALLBACKS[self.name](stopper)) as dialogue:
                    answer = converse(question, dialogue)
                then = lambda: answered(answer)  # noqa: E731
            except Withdrawn:
                then = lambda: None  # noqa: E731
            except Unavailable as problem:
                reason = str(problem)
                then = lambda: failed(reason)  # noqa: E731
            except Exception as problem:  # of any kind: unless the next presenter is tried, the question waits until its deadline
                reason = f"{type(problem).__name__}: {problem}"
                then = lambda: failed(reason)  # noqa: E731
            GLib.idle_add(finish, then)

        def finish(then: Callable[[], None]) -> bool:
            stopper.close()
            if self._stopper is stopper:
                self._stopper = None
                then()
            return GLib.SOURCE_REMOVE

        threading.Thread(target=ask, name=self.name, daemon=True).start()

    def recount(self, waiting: int) -> None:
        """Does nothing: an open dialogue cannot be changed."""

    def withdraw(self) -> None:
        """Stops the dialogue and its helper program."""
        if self._stopper:
            self._stopper.stop()
            self._stopper = None


@contextlib.contextmanager
def _closing(dialogue):  # type: ignore[no-untyped-def]
    try:
        yield dialogue
    finally:
        if hasattr(dialogue, "close"):
            dialogue.close()
