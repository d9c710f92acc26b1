"""The presenter that asks in windows."""
import dataclasses
from typing import Optional

from .. import presenter
from ..question import Kind, Question
from . import base, browser_login, certificate, consent, login, prompt, trust

_WINDOWS: dict[Kind, type[base.QuestionWindow]] = {
    Kind.LOGIN: login.LoginWindow, Kind.TOKEN: login.LoginWindow, Kind.CERTIFICATE: certificate.CertificateWindow,
    Kind.TRUST: trust.TrustWindow, Kind.CONSENT: consent.ConsentWindow,
    Kind.PROMPT: prompt.PromptWindow}


class WindowPresenter:
    """Shows one question window at a time."""

    name = "windows"

    def __init__(self) -> None:
        self._window: Optional[base.QuestionWindow] = None
        self._waiting = 0

    def present(self, question: Question, waiting: int, answered: presenter.Answered, failed: presenter.Failed) -> None:
        """Opens the window for `question`."""
        def type_token() -> None:
            self.withdraw()
            self.present(dataclasses.replace(question, login=None), self._waiting, answered, failed)

        self._waiting = waiting
        if question.login:
            self._window = browser_login.BrowserLoginWindow(question, waiting, answered, type_token)
        else:
            self._window = _WINDOWS[question.kind](question, waiting, answered)
        self._window.present()

    def recount(self, waiting: int) -> None:
        """Shows the number of waiting questions."""
        self._waiting = waiting
        if self._window:
            self._window.recount(waiting)

    def withdraw(self) -> None:
        """Closes the window."""
        if self._window:
            self._window.withdraw()
            self._window = None
