"""The window for user and password, or for a token."""
from typing import Optional

from gi.repository import Gtk

from .. import answers, texts
from ..messages import _
from ..question import Kind
from . import base, buffers, parts


class LoginWindow(base.QuestionWindow):
    """Asks for a login or a token."""

    def build(self) -> None:
        """Shows the realm as a quotation, then how safe the connection is, then the fields."""
        question = self.question
        self._is_token = question.kind is Kind.TOKEN
        if says := texts.server_says(question):
            self.add(parts.label(says, "quotation"))
        self.add_notice(texts.failures(question))
        self.add_notice(texts.downgrade(question), "error")
        is_secure, words = texts.security(question)
        icon = "channel-secure-symbolic" if question.space.protocol == "https" else "dialog-information-symbolic"
        self.add_notice(words, "dim-label" if is_secure else "warning", icon if is_secure else "channel-insecure-symbolic")
        if question.known_users:
            rows = [texts.known_user(one) for one in question.known_users]
            self.add_delayed(parts.Picks(_("S_aved logins: choose one, or type another"), rows, self._use_stored))
        if question.is_proposal_apart:
            whose = parts.literal(texts.user(question))
            title = _("Us_e the Saved Token of {user}") if self._is_token else _("Us_e the Saved Login of {user}")
            if not whose:
                title = _("Us_e the Saved Token") if self._is_token else _("Us_e the Saved Login")
            self.add_delayed(parts.button(title.format(user=whose), self._use_proposed))
        self._user = parts.Field(_("_User"), question.proposed_user or "")
        self._secret = parts.Field(_("_Token") if self._is_token else _("_Password"), is_secret=True)
        self._domain = parts.Field(_("Do_main"))
        fields = [self._secret] if self._is_token else [self._user, self._secret]
        if question.space.method == "ntlm":
            fields.append(self._domain)
        for field in fields:
            self.add(field)
        self._keep = base.keep_choice(question, _("Save the token") if self._is_token else _("Save the login"))
        self.add(self._keep)
        self.add_details(
            (_("Scheme"), texts.scheme(question.space)), without=_("Co_ntinue Without Logging In"),
            without_hint=_("The program gets what the server sends without a login"))
        self.add_refusing(_("_Cancel"), answers.cancel())
        self._send = self.add_positive(_("_Send") if self._is_token else _("_Log In"), self._make)
        for field in fields:
            field.entry.connect("changed", self.changed)
            field.entry.set_property("activates-default", False)
            field.entry.connect("activate", self._entered)
        (self._secret if self._is_token or question.proposed_user else self._user).entry.grab_focus()

    def is_complete(self) -> bool:
        """Whether a token, or a user, is typed. A password may be empty, for servers that need only a user."""
        return self._has_secret() if self._is_token else bool(self._user.entry.get_text())

    def forget(self) -> None:
        """Clears the password, which GTK overwrites."""
        self._secret.entry.set_text("")

    def _use_proposed(self) -> None:
        if self._is_calm:
            self.answer(answers.use_proposed())

    def _use_stored(self, index: int) -> None:
        if self._is_calm:
            self.answer(answers.use_stored(self.question.known_users[index]))

    def _has_secret(self) -> bool:
        return self._secret.entry.get_delegate().get_text_length() > 0

    def _entered(self, _entry: Gtk.Widget) -> None:
        """Moves to the first empty field, or sends the login. Enter never sends an empty password; only the button does."""
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
