"""The queue of questions as a state machine without I/O or clock: each method takes an event and returns actions."""
import dataclasses
from typing import Any, Optional, Union

from .question import Kind, Question

Answer = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Show:
    """Show this question; `waiting` others are behind it."""

    question: Question
    waiting: int


@dataclasses.dataclass(frozen=True)
class Close:
    """Close this question: its answer is no longer needed."""

    question: Question


@dataclasses.dataclass(frozen=True)
class Recount:
    """Update the number of questions behind the question that is shown."""

    waiting: int


@dataclasses.dataclass(frozen=True)
class Reply:
    """Send this answer to the broker."""

    request_id: int
    answer: Answer


@dataclasses.dataclass(frozen=True)
class PassOn:
    """Tell the broker that the question cannot be shown here. The broker asks another agent, or continues without an answer."""

    request_id: int


Action = Union[Show, Close, Recount, Reply, PassOn]


class QuestionQueue:
    """Shows one question at a time, in order of arrival. Equal questions of one program are shown once."""

    def __init__(self) -> None:
        # Groups of equal questions. The first question of the first group is shown.
        self._groups: list[list[Question]] = []

    @property
    def shown(self) -> Optional[Question]:
        """The question that is shown."""
        return self._groups[0][0] if self._groups else None

    @property
    def waiting(self) -> int:
        """The number of questions behind the question that is shown, counting equal ones once."""
        return max(0, len(self._groups) - 1)

    @property
    def next_deadline(self) -> Optional[float]:
        """The earliest deadline, or `None`."""
        return min((question.deadline for group in self._groups for question in group), default=None)

    def arrived(self, question: Question) -> list[Action]:
        """The broker has sent a question."""
        for group in self._groups:
            if group[0].key == question.key:
                group.append(question)
                return []
        self._groups.append([question])
        return [Show(question, 0)] if len(self._groups) == 1 else [Recount(self.waiting)]

    def answered(self, answer: Answer) -> list[Action]:
        """The shown question was answered; the answer counts for all equal questions."""
        if not self._groups:
            return []
        group = self._groups.pop(0)
        count = 1 if self._is_for_one(group[0], answer) else len(group)
        actions: list[Action] = [Reply(question.request_id, answer) for question in group[:count]]
        if group[count:]:
            self._groups.insert(0, group[count:])
        return actions + self._show_next()

    def passed_on(self) -> list[Action]:
        """No presenter could show the question."""
        group = self._groups.pop(0) if self._groups else []
        return [*(PassOn(question.request_id) for question in group), *self._show_next()]

    def request_withdrawn(self, request_id: object) -> list[Action]:
        """The broker has cancelled a request."""
        return self._remove(lambda question: type(request_id) is int and question.request_id == request_id)

    def challenge_settled(self, identifier: object) -> list[Action]:
        """The challenge was answered elsewhere, or its fetch has ended."""
        return self._remove(lambda question: question.identifier == identifier)

    def expire(self, now: float) -> list[Action]:
        """Removes questions whose deadline has passed; the broker has continued without an answer."""
        return self._remove(lambda question: question.deadline <= now)

    def connection_lost(self) -> list[Action]:
        """The connection is lost: no question can be answered."""
        return self._remove(lambda question: True)

    @staticmethod
    def _is_for_one(question: Question, answer: Answer) -> bool:
        # "Once" applies to one fetch; it must not answer the equal questions of other fetches.
        return question.kind is Kind.CONSENT and answer.get("allow") == "once"

    def _remove(self, is_gone: Any) -> list[Action]:
        before, waiting = self.shown, self.waiting
        remaining = [[question for question in group if not is_gone(question)] for group in self._groups]
        shown_group_remains = bool(remaining and remaining[0])
        self._groups = [group for group in remaining if group]
        if before is None:
            return []
        if not shown_group_remains:
            return [Close(before), *self._show_next()]
        # The window stays open for an equal question, so that typed text is not lost.
        return [Recount(self.waiting)] if self.waiting != waiting else []

    def _show_next(self) -> list[Action]:
        return [Show(self._groups[0][0], self.waiting)] if self._groups else []
