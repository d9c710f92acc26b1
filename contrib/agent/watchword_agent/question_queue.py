"""Which question is shown, and which wait: no windows, no sockets, no clock. Events in, actions out."""
import dataclasses
from typing import Any, Optional, Union

from .question import Kind, Question

Answer = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Show:
    """Ask this now; so many others wait behind it."""

    question: Question
    waiting: int


@dataclasses.dataclass(frozen=True)
class Close:
    """Stop asking this: nobody wants the answer any more."""

    question: Question


@dataclasses.dataclass(frozen=True)
class Recount:
    """Another number of questions waits behind the one that is shown."""

    waiting: int


@dataclasses.dataclass(frozen=True)
class Reply:
    """Send this to the broker."""

    request_id: int
    answer: Answer


@dataclasses.dataclass(frozen=True)
class PassOn:
    """Tell the broker that nobody could be asked here: it asks elsewhere, or goes on without."""

    request_id: int


Action = Union[Show, Close, Recount, Reply, PassOn]


class QuestionQueue:
    """One question is shown, the others wait in the order in which they came. Equal ones of one program are asked once."""

    def __init__(self) -> None:
        # The first group is the one that is shown, by its first question.
        self._groups: list[list[Question]] = []

    @property
    def shown(self) -> Optional[Question]:
        """What is asked now."""
        return self._groups[0][0] if self._groups else None

    @property
    def waiting(self) -> int:
        """How many are still to be asked after that."""
        return max(0, len(self._groups) - 1)

    @property
    def next_deadline(self) -> Optional[float]:
        """When `expire` has something to do."""
        return min((question.deadline for group in self._groups for question in group), default=None)

    def arrived(self, question: Question) -> list[Action]:
        """A question of the broker."""
        for group in self._groups:
            if group[0].key == question.key:
                group.append(question)
                return []
        self._groups.append([question])
        return [Show(question, 0)] if len(self._groups) == 1 else [Recount(self.waiting)]

    def answered(self, answer: Answer) -> list[Action]:
        """What was said to the question that is shown: counts for all that are equal to it."""
        if not self._groups:
            return []
        group = self._groups.pop(0)
        count = 1 if self._is_for_one(group[0], answer) else len(group)
        actions: list[Action] = [Reply(question.request_id, answer) for question in group[:count]]
        if group[count:]:
            self._groups.insert(0, group[count:])
        return actions + self._show_next()

    def passed_on(self) -> list[Action]:
        """The question that is shown could not be asked."""
        group = self._groups.pop(0) if self._groups else []
        return [*(PassOn(question.request_id) for question in group), *self._show_next()]

    def request_withdrawn(self, request_id: object) -> list[Action]:
        """The broker takes a request back."""
        return self._remove(lambda question: type(request_id) is int and question.request_id == request_id)

    def challenge_settled(self, identifier: object) -> list[Action]:
        """Answered elsewhere, or its fetch has ended."""
        return self._remove(lambda question: question.identifier == identifier)

    def expire(self, now: float) -> list[Action]:
        """Questions whose time is over; the broker has gone on without an answer."""
        return self._remove(lambda question: question.deadline <= now)

    def connection_lost(self) -> list[Action]:
        """Nobody is there to be answered."""
        return self._remove(lambda question: True)

    @staticmethod
    def _is_for_one(question: Question, answer: Answer) -> bool:
        # "Once" is for one fetch: said once, it must not let several through.
        return question.kind is Kind.CONSENT and answer.get("allow") == "once"

    def _remove(self, is_gone: Any) -> list[Action]:
        before, waiting = self.shown, self.waiting
        kept = [[question for question in group if not is_gone(question)] for group in self._groups]
        shown_group_goes_on = bool(kept and kept[0])
        self._groups = [group for group in kept if group]
        if before is None:
            return []
        if not shown_group_goes_on:
            return [Close(before), *self._show_next()]
        # The window stays open for an equal question: the person sees no difference, and what was typed is not lost.
        return [Recount(self.waiting)] if self.waiting != waiting else []

    def _show_next(self) -> list[Action]:
        return [Show(self._groups[0][0], self.waiting)] if self._groups else []
