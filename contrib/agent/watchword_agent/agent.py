"""The agent: connects the broker, the queue of questions, and the presenters that show them."""
import dataclasses
import sys
import time
from typing import Callable, Optional, Sequence

from gi.repository import GLib

from . import VERSION, answers, places, recent_files
from .connection import BrokerConnection, Message
from .presenter import Presenter
from .question import NotUnderstood, Question, read
from .question_queue import Action, Close, PassOn, QuestionQueue, Recount, Reply, Show
from .typed_files import TypedFiles

METHODS = ["httpBasic", "httpDigest", "ntlm", "bearer", "clientCertificate", "serverTrust"]
_NOT_ANSWERED = -32601
_INVALID = -32602


class Agent:
    """Answers the broker's questions until the main loop ends."""

    def __init__(self, path: str, presenters: Sequence[Presenter], locale: Optional[str], priority: int) -> None:
        self._presenters = presenters
        self._asking: Optional[Presenter] = None
        self._queue = QuestionQueue()
        self._deadline = 0
        self._said_lost = False
        self._programs_refused: set[str] = set()  # subjects for which a question was refused
        self._typed_files = TypedFiles()
        self.on_denied: Callable[[str], None] = lambda reason: None
        register = {"name": "watchword-agent", "priority": priority, "methods": METHODS, "asksConfirm": True,
                    "asksPrompt": True, "maxPending": 1}
        greeting: list[tuple[str, Message]] = [
            ("initialize", {"client": {"name": "watchword-agent", "version": VERSION}, "protocolVersion": 1,
                            "capabilities": {"challenge": {"delivery": "none"}}}),
            ("agent/register", {**register, "locale": locale} if locale else register)]
        self._broker = BrokerConnection(path, greeting, self._take)
        self._broker.on_ready, self._broker.on_lost, self._broker.on_refused = self._ready, self._lost, self._refused
        self._broker.on_mishap = say

    def start(self) -> None:
        """Connects to the broker, and reconnects whenever the connection is lost."""
        self._broker.start()

    # The broker

    def _ready(self) -> None:
        self._said_lost = False
        say(f"registered with the broker; shows questions with: {', '.join(one.name for one in self._presenters)}")

    def _lost(self, reason: str) -> None:
        self._act(self._queue.connection_lost())
        # Reported once, not for every attempt.
        if not self._said_lost:
            say(f"{reason}; retrying; start the broker with `systemctl --user start watchword.socket` or `watchwordd`")
        self._said_lost = True

    def _refused(self, error: Message) -> None:
        if (error.get("data") or {}).get("kind") == "denied":
            self.on_denied(str(error.get("message")))

    def _take(self, message: Message) -> None:
        method = message.get("method")
        params = message.get("params") or {}
        if method in ("auth/challenge", "auth/confirm", "auth/prompt"):
            self._ask(message)
        elif method == "$/cancelRequest":
            self._act(self._queue.request_withdrawn(params.get("id")))
        elif method in ("auth/cancelled", "auth/resolved"):
            self._act(self._queue.challenge_settled(params.get("challengeId")))
        elif isinstance(message.get("id"), int):
            self._broker.refuse(message["id"], _NOT_ANSWERED, "This agent does not support that method.")

    def _ask(self, message: Message) -> None:
        try:
            question = read(message, time.monotonic())
        except NotUnderstood as problem:
            say(f"cannot show a question, left to other agents: {problem}")
            return self._broker.refuse(message["id"], _INVALID, str(problem))
        self._act(self._queue.arrived(question))

    def _marked(self, question: Question) -> Question:
        """Returns the question with the members that depend on previous answers, just before it is shown: an answer may have come
        while it waited."""
        return dataclasses.replace(
            question, is_repeated=question.requester.subject in self._programs_refused, typed_files=self._typed_files.of(question))

    # Actions of the queue

    def _act(self, actions: list[Action]) -> None:
        replied = []
        for action in actions:
            if isinstance(action, Reply):
                self._broker.reply(action.request_id, action.answer)
                replied.append(action.answer)
            elif isinstance(action, PassOn):
                self._broker.refuse(action.request_id, _NOT_ANSWERED, "No way to show a question here.")
            elif isinstance(action, Show):
                self._present(self._marked(action.question), 0)
            elif isinstance(action, Recount) and self._asking:
                self._asking.recount(action.waiting)
            elif isinstance(action, Close) and self._asking:
                self._asking.withdraw()
                self._asking = None
        for answer in replied:
            answers.wipe(answer)
        self._watch_deadline()

    def _present(self, question: Question, index: int) -> None:
        """Shows the question with the first presenter that works, starting at this index."""
        if index == len(self._presenters):
            self._asking = None
            say("no window or fallback can show the question; returned it to the broker")
            return self._act(self._queue.passed_on())
        presenter = self._asking = self._presenters[index]

        def failed(reason: str) -> None:
            if self._asking is presenter:
                say(f"{presenter.name} cannot ask: {reason}")
                self._present(question, index + 1)

        def answered(answer: answers.Answer) -> None:
            if self._asking is presenter:
                self._asking = None
                self._typed_files.record(question, answer)
                self._remember_files(answer)
                if answers.is_refusal(answer):
                    self._programs_refused.add(question.requester.subject)
                self._act(self._queue.answered(answer))

        try:
            presenter.present(question, self._queue.waiting, answered, failed)
        except Exception as problem:  # of any kind: unless the next presenter is tried, the question waits until its deadline
            failed(f"{type(problem).__name__}: {problem}")

    def _remember_files(self, answer: answers.Answer) -> None:
        try:
            recent_files.record(places.recent_certificates(), answer)
        except OSError as problem:
            say(f"cannot remember the certificate file in {problem.filename}: {problem.strerror}")

    def _watch_deadline(self) -> None:
        if self._deadline:
            GLib.source_remove(self._deadline)
            self._deadline = 0
        next_deadline = self._queue.next_deadline
        if next_deadline is not None:
            wait = max(0, int((next_deadline - time.monotonic()) * 1000)) + 1
            self._deadline = GLib.timeout_add(wait, self._deadline_passed)

    def _deadline_passed(self) -> bool:
        self._deadline = 0
        self._act(self._queue.expire(time.monotonic()))
        return GLib.SOURCE_REMOVE


def say(text: str) -> None:
    """Prints a line to standard error, which systemd writes to the journal."""
    try:
        print(f"watchword-agent: {text}", file=sys.stderr, flush=True)
    except OSError:
        pass  # standard error is closed; questions are still answered
