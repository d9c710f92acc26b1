"""The window for a login in the browser, or on another device with a code."""
import time
from typing import Callable, Optional

from gi.repository import Gdk, GLib, Gtk

from .. import answers, browser, escaping, qr_code, texts, web_address
from ..messages import _
from ..question import BrowserLogin, Question
from . import base, parts


class BrowserLoginWindow(base.QuestionWindow):
    """Names the server, and opens its page when the button is pressed; never by itself, so that every login starts with the person.
    The broker withdraws the question when the login is complete."""

    def __init__(
        self, question: Question, waiting: int, answered: Callable[[answers.Answer], None], type_token: Callable[[], None]
    ) -> None:
        """`type_token` replaces this window by one in which a token can be typed."""
        self._type_token = type_token
        super().__init__(question, waiting, answered)

    def build(self) -> None:
        """Shows program, site and scopes, then the code if there is one."""
        question, login = self.question, self._login
        self._address = web_address.to_open(login)
        self._note = ""
        self._state = parts.label("", align=Gtk.Align.CENTER)
        self._top.append(self._state)
        self.add_notice(texts.failures(question))
        self.add_notice(texts.downgrade(question), "error")
        is_secure, words = texts.security(question)
        if not is_secure:
            self.add_notice(words, "warning", "channel-insecure-symbolic")
        rows = [(_("Program"), texts.caller_alone(question.requester)), (_("Site"), texts.place(question.space)),
                (_("Scopes"), texts.scopes(login))]
        self.add(parts.facts(*(row for row in rows if row[1])))
        if self._address is None:
            self.add_notice(texts.refused_address(login), "error")
        elif login.user_code:
            self._add_code()
        self._copy_address = parts.button(_("Copy _Address"), lambda: self._copy(self._address or ""))
        self._copy_address.set_visible(False)
        self.add(self._copy_address)
        self.add(parts.button(_("Enter a _Token by Hand"), self._type_token, "flat"))
        more = [(_("Server says"), escaping.quoted(question.space.realm))] if question.space.realm else []
        self.add_details(
            (_("Login server"), escaping.url(login.issuer)), (_("Scheme"), texts.scheme(question.space)), *more,
            without=_("Co_ntinue Without Logging In"), without_hint=_("The program gets what the server sends without a login"))
        refusing = self.add_refusing(_("Not No_w"), answers.cancel())
        self._open = self.add_positive(_("_Open Browser"), self._pressed)
        refusing.grab_focus()
        self._timer = GLib.timeout_add_seconds(1, self._tick)
        self._show_state()

    def is_complete(self) -> bool:
        """Whether the login page can be opened."""
        return self._address is not None and not self._is_over

    def forget(self) -> None:
        """Stops the clock."""
        GLib.source_remove(self._timer)

    @property
    def _login(self) -> BrowserLogin:
        assert self.question.login is not None
        return self.question.login

    @property
    def _is_over(self) -> bool:
        return self._login.expires_at <= time.time()

    def _add_code(self) -> None:
        self.add_notice(texts.device_warning())
        self.add(parts.label(texts.device_instruction(), align=Gtk.Align.CENTER))
        address = parts.label(texts.device_address(self._login), align=Gtk.Align.CENTER, selectable=True)
        code = parts.label(texts.device_code(self._login), "user-code", align=Gtk.Align.CENTER, selectable=True)
        for one in (address, code):
            # Groups of digits would be in the wrong order from right to left.
            one.set_direction(Gtk.TextDirection.LTR)
        copy = parts.button(_("Copy _Code"), lambda: self._copy(self._login.user_code))
        copy.set_valign(Gtk.Align.CENTER)
        line = Gtk.Box(spacing=12, halign=Gtk.Align.CENTER)
        line.append(code)
        line.append(copy)
        self.add(address)
        self.add(line)
        self._code = Gtk.Image(halign=Gtk.Align.CENTER, visible=False, accessible_role=Gtk.AccessibleRole.IMG)
        parts.name(self._code, _("QR code of the address"))
        self.add(self._code)
        qr_code.make(web_address.with_code(self._login) or "", self._show_code)

    def _show_code(self, picture: GLib.Bytes) -> None:
        if not self._is_ended:
            texture = Gdk.Texture.new_from_bytes(picture)
            self._code.set_from_paintable(texture)
            # Half the size, so that it is sharp on a screen with two pixels per point, too.
            self._code.set_pixel_size(texture.get_width() // 2)
            self._code.set_visible(True)
            self._fit()

    def _pressed(self) -> Optional[answers.Answer]:
        assert self._address is not None
        self.wait_for_login()
        browser.open_address(self._address, self.get_display().get_app_launch_context(), self._failed)
        return None

    def wait_for_login(self) -> None:
        """Shows that the login page was opened."""
        self._note = _("Waiting for the login in the browser…")
        self._open.set_label(_("Open A_gain"))
        parts.name(self._open, parts.plain(_("Open A_gain")))
        self._copy_address.set_visible(True)
        self._show_state()
        self._fit()

    def _failed(self) -> None:
        if not self._is_ended:
            self._note = _("No browser was found. Copy the address into one.")
            self._show_state()
            self._fit()

    def _copy(self, text: str) -> None:
        self.get_clipboard().set(text)

    def _tick(self) -> bool:
        self._show_state()
        return GLib.SOURCE_CONTINUE

    def _show_state(self) -> None:
        state = texts.time_left(self._login)
        if self._note and not self._is_over:
            state = f"{self._note}\n{state}"
        if state != self._state.get_label():
            self._state.set_label(state)
            self.changed()
