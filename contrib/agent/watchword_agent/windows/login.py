"""User and password, or a token."""
from typing import Optional

from gi.repository import Gtk

from .. import answers, texts
from ..question import Kind
from . import base, buffers, parts


class LoginWindow(base.QuestionWindow):
    """Asks for a log-in, or for a token."""

    def build(self) -> None:
        """What the server says stands apart, as its words; then how safe it is; then the fields."""
        question = self.question
        self._is_token = question.kind is Kind.TOKEN
        if says := texts.server_says(question):
            self.add(parts.label(says, "quotation"))
        self.add_notice(texts.failures(question))
        self.add_notice(texts.downgrade(question), "error")
        is_secure, words = texts.security(question)
        icon = "channel-secure-symbolic" if is_secure else "channel-insecure-symbolic"
        self.add_notice(words, "dim-label" if is_secure else "warning", icon)
        if question.known_users:
            rows = [texts.known_user(one) for one in question.known_users]
            self.add(parts.Picks("S_aved logins: choose one, or type another", rows, self._use_stored))
        if question.is_proposal_apart:
            whose = f" of {parts.literal(texts.user(question))}" if question.proposed_user else ""
            self.add(parts.button(f"Us_e the Stored {'Token' if self._is_token else 'Log-In'}{whose}", self._use_proposed))
        self._user = parts.Field("_User", question.proposed_user or "")
        self._secret = parts.Field("_Token" if self._is_token else "_Password", is_secret=True)
        self._domain = parts.Field("_Domain")
        fields = [self._secret] if self._is_token else [self._user, self._secret]
        if question.space.method == "ntlm":
            fields.append(self._domain)
        for field in fields:
            self.add(field)
        self._keep = base.keep_choice(question, "Keep the token" if self._is_token else "Keep the log-in")
        self.add(self._keep)
        self.add_facts(("Scheme", texts.scheme(question.space)))
        self.add_refusing("_Cancel", answers.cancel())
        self.add_refusing("_Go On Without", answers.go_on_without()).set_tooltip_text(
            "The program gets what the server shows to those who are not logged in")
        self._send = self.add_positive("_Send" if self._is_token else "_Log In", self._make)
        for field in fields:
            field.entry.connect("changed", self.changed)
            field.entry.set_property("activates-default", False)
            field.entry.connect("activate", self._entered)
        (self._secret if self._is_token or question.proposed_user else self._user).entry.grab_focus()

    def is_complete(self) -> bool:
        """A password may be empty, for servers that want a user alone; a token may not."""
        return self._has_secret() if self._is_token else bool(self._user.entry.get_text())

    def forget(self) -> None:
        """Of what was typed nothing is left in the field."""
        self._secret.entry.set_text("")

    def _use_proposed(self) -> None:
        if self._is_calm:
            self.answer(answers.use_proposed())

    def _use_stored(self, index: int) -> None:
        if self._is_calm:
            self.answer(answers.use_stored(self.question.known_users[index]))

    def _has_secret(self) -> bool:
        return self._secret.entry.get_delegate().get_text_length() > 0

    def _entered(self, _: Gtk.Widget) -> None:
        """Enter in a field goes to the first that is empty. An empty password is sent by the button and by nothing else."""
        if not self._is_token and not self._user.entry.get_text():
            self._user.entry.grab_focus()
        elif not self._has_secret():
            self._secret.entry.grab_focus()
        else:
            self._send.emit("clicked")

    def _make(self) -> Optional[answers.Answer]:
        secret, keep = buffers.take(self._secret.entry), self._keep.chosen
        if self._is_token:
            return answers.token(secret, keep)
        return answers.password(self._user.entry.get_text(), secret, self._domain.entry.get_text(), keep)
