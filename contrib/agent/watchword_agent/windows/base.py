"""The base class of the question windows: heading, requester, buttons, Escape, and the initial delay."""
from typing import Any, Callable, Optional

from gi.repository import Adw, Gdk, GLib, Gtk

from .. import answers, texts
from ..messages import _
from ..question import Kind, Question
from . import parts
from .notification import Notification

# The initial delay, during which no key or click gives a positive answer: a window can appear while the person types into another.
CALM_MS = 400
_TALLEST = 640
# The height of the desktop's own bars.
_BARS = 40
_ICONS = {
    Kind.LOGIN: "dialog-password-symbolic", Kind.TOKEN: "dialog-password-symbolic",
    Kind.CERTIFICATE: "application-certificate-symbolic", Kind.TRUST: "security-medium-symbolic",
    Kind.CONSENT: "system-lock-screen-symbolic", Kind.PROMPT: "dialog-password-symbolic"}


class QuestionWindow(Adw.Window):
    """A window for one question. `answered` is called once, unless `withdraw` is called first."""

    def __init__(self, question: Question, waiting: int, answered: Callable[[answers.Answer], None]) -> None:
        super().__init__(
            title=texts.title(question), default_width=parts.width(), resizable=False,
            accessible_role=Gtk.AccessibleRole.DIALOG)
        self.question = question
        self._answered: Optional[Callable[[answers.Answer], None]] = answered
        self._is_calm = self._is_ended = False
        self._positive: list[Gtk.Button] = []
        self._delayed: list[Gtk.Widget] = []
        self._notification: Optional[Notification] = None
        self._body = Gtk.Box(
            orientation=Gtk.Orientation.VERTICAL, spacing=12, margin_start=24, margin_end=24, margin_bottom=6)
        # The heading names the host, so it stays visible while the contents scroll.
        self._top = Gtk.Box(orientation=Gtk.Orientation.VERTICAL, spacing=12, margin_start=24, margin_end=24, margin_bottom=12)
        self._buttons = Gtk.Box(
            spacing=12, homogeneous=True, margin_start=24, margin_end=24, margin_top=12, margin_bottom=24)
        self._waiting = parts.label("", "dim-label", "caption", align=Gtk.Align.CENTER)
        self._lay_out()
        self._head()
        self.build()
        self._offer_stopping()
        self._fit()
        self.recount(waiting)
        self._escape()
        self.connect("close-request", lambda _: self._closed())
        self.connect("notify::is-active", lambda *_: self.is_active() and self._silence())
        self.connect("map", lambda _: GLib.timeout_add(CALM_MS, self._calm))

    # Overridden for each kind of question

    def build(self) -> None:
        """Fills the window."""
        raise NotImplementedError

    def is_complete(self) -> bool:
        """Whether the input suffices for a positive answer."""
        return True

    def forget(self) -> None:
        """Overwrites typed secrets that are no longer needed."""

    # For the presenter

    def recount(self, waiting: int) -> None:
        """Shows the number of questions behind this one."""
        self._waiting.set_label(texts.waiting(waiting))
        self._waiting.set_visible(waiting > 0)

    def withdraw(self) -> None:
        """Closes without an answer."""
        self._answered = None
        self._end()

    # For the subclasses

    def add(self, widget: Optional[Gtk.Widget]) -> None:
        """Appends a widget below the others."""
        if widget is not None:
            self._body.append(widget)

    def add_notice(self, text: Optional[str], kind: str = "warning", icon: str = "dialog-warning-symbolic") -> None:
        """Appends a highlighted line, if there is a text."""
        if text:
            self.add(parts.notice(text, kind, icon))

    def add_details(self, *rows: tuple[str, str], without: str = "", without_hint: str = "") -> None:
        """Appends the row that expands to the given rows, the requesting program, its fetch, and the button `without`, which
        continues without a credential."""
        requester = self.question.requester
        asked_by = f"{texts.caller_alone(requester)}\n{texts.program_place(requester)}"
        details = parts.Details(_("_Details"), texts.asked_by(requester))
        fetch = [] if self.question.prompt else [(_("For"), texts.fetch(self.question))]
        details.append(parts.facts(*rows, (_("Asked by"), asked_by), *fetch))
        if without:
            button = parts.button(without, lambda: self.answer(answers.continue_without()))
            button.set_tooltip_text(without_hint or None)
            details.append(button)
        details.expander.connect("notify::expanded", lambda *_: self._fit())
        self.add(details)

    def add_refusing(self, text: str, answer: answers.Answer) -> Gtk.Button:
        """Adds the button that releases no credential."""
        button = parts.button(text, lambda: self.answer(answer))
        self._buttons.append(button)
        return button

    def add_positive(
        self, text: str, make: Callable[[], Optional[answers.Answer]], style: str = "suggested-action"
    ) -> Gtk.Button:
        """Adds a button for a positive answer, enabled after the initial delay while the input is complete. `make` returns
        None if it has found and displayed a problem."""
        def pressed() -> None:
            answer = make() if self._is_calm and self.is_complete() else None
            if answer is not None:
                self.answer(answer)

        button = parts.button(text, pressed, style)
        button.set_sensitive(False)
        self._buttons.append(button)
        self._positive.append(button)
        return button

    def add_delayed(self, widget: Gtk.Widget) -> None:
        """Adds a widget that answers the question when it is pressed, enabled after the initial delay."""
        widget.set_sensitive(False)
        self._delayed.append(widget)
        self.add(widget)

    def changed(self, *_args: Any) -> None:
        """Enables or disables the positive buttons after a change of the input."""
        for button in self._positive:
            button.set_sensitive(self._is_calm and self.is_complete())

    def answer(self, answer: answers.Answer) -> None:
        """Reports the answer, once, and closes the window."""
        answered, self._answered = self._answered, None
        if answered is not None:
            self._end()
            answered(answer)

    # Private

    def _end(self) -> None:
        self._is_ended = True
        self._silence()
        self.forget()
        self.destroy()

    def _silence(self) -> None:
        """Withdraws the notification."""
        if self._notification is not None:
            self._notification.withdraw()
            self._notification = None

    def _raise(self, token: Optional[str]) -> None:
        """Comes to the front after a click on the notification."""
        if token:
            self.set_startup_id(token)
        self.present()

    def _offer_stopping(self) -> None:
        """Adds the button that stops all prompts, if a question of this program was refused before."""
        if self.question.is_repeated:
            stop = parts.button(texts.stop_asking(self.question), self._stop_asking, "flat")
            stop.set_tooltip_text(texts.stop_asking_hint(self.question.requester))
            self.add_delayed(stop)

    def _stop_asking(self) -> None:
        if self._is_calm:
            self.answer(answers.stop_asking(self.question))

    def _lay_out(self) -> None:
        header = Adw.HeaderBar(title_widget=self._waiting, decoration_layout=":close")
        header.add_css_class("flat")
        self._scrolled = Gtk.ScrolledWindow(hscrollbar_policy=Gtk.PolicyType.NEVER, child=self._body, vexpand=True)
        self._scrolled.add_css_class("question")
        parts.name(self._scrolled, texts.heading(self.question))
        self._whole = Gtk.Box(orientation=Gtk.Orientation.VERTICAL)
        for part in (header, self._top, self._scrolled, self._buttons):
            self._whole.append(part)
        self._fixed: list[Gtk.Widget] = [header, self._top, self._buttons]
        self.set_content(self._whole)

    def _head(self) -> None:
        question = self.question
        self._icon = icon = Gtk.Image(
            icon_name=_ICONS[question.kind], pixel_size=32, halign=Gtk.Align.CENTER,
            accessible_role=Gtk.AccessibleRole.PRESENTATION)
        icon.add_css_class("question-icon")
        alarm = question.kind is Kind.TRUST and texts.is_grave(question)
        icon.add_css_class("alarm" if alarm else "unsure" if question.kind is Kind.TRUST else "calm")
        self._top.append(icon)
        self._top.append(parts.label(texts.heading(question), "title-2", align=Gtk.Align.CENTER))
        end = texts.long_host(texts.login_host(question))
        if end and question.kind is not Kind.CONSENT:
            self._top.append(parts.label(end, "heading", align=Gtk.Align.CENTER))
        self.update_property([Gtk.AccessibleProperty.DESCRIPTION], [texts.heading(question)])

    def _fit(self) -> None:
        """Makes the contents scroll if the screen is too low for them; heading and buttons stay visible."""
        if self._needed() > self._room() and not self.get_mapped():
            self._shrink()
        self._scrolled.set_min_content_height(min(self._needed(), self._room()))
        # An overlay scroll bar hides itself and would not show that there is more below.
        self._scrolled.set_overlay_scrolling(self._needed() <= self._room())

    def _needed(self) -> int:
        return _height(self._body) + 8

    def _room(self) -> int:
        """Returns the height that is left for the contents."""
        fixed = sum(map(_height, self._fixed))
        return min(_TALLEST - _height(self._top), max(120, parts.screen_size()[1] - _BARS - fixed))

    def _shrink(self) -> None:
        self._icon.set_visible(False)
        self._body.set_spacing(6)
        self._top.set_margin_bottom(6)
        self._buttons.set_margin_top(6)
        self._buttons.set_margin_bottom(12)
        if _height(self._top) > parts.screen_size()[1] // 4:
            # A long host would leave no room for the rest.
            self._fixed.remove(self._top)
            self._whole.remove(self._top)
            self._top.set_margin_start(0)
            self._top.set_margin_end(0)
            self._body.prepend(self._top)

    def _escape(self) -> None:
        keys = Gtk.ShortcutController()
        keys.add_shortcut(Gtk.Shortcut(
            trigger=Gtk.KeyvalTrigger(keyval=Gdk.KEY_Escape),
            action=Gtk.CallbackAction.new(lambda *_: self._closed())))
        self.add_controller(keys)

    def _closed(self) -> bool:
        self.answer(answers.refusal(self.question))
        return True

    def _show_focus(self) -> None:
        """Scrolls to the widget with the focus, which it got before the window had a size."""
        focus = self.get_focus()
        place = focus.compute_bounds(self._body) if focus and focus.is_ancestor(self._body) else (False, None)
        if place[0]:
            top = place[1].get_y()
            self._scrolled.get_vadjustment().clamp_page(top, top + place[1].get_height() + 6)

    def _calm(self) -> bool:
        self._is_calm = True
        for widget in self._delayed:
            widget.set_sensitive(True)
        # Shows, before any key is pressed, which widget Enter would activate.
        self.set_focus_visible(True)
        self._show_focus()
        self.changed()
        # Another program has the focus, or the desktop opened the window behind others.
        if not self.is_active() and not self._is_ended:
            self._notification = Notification(self.question, self._raise)
        return GLib.SOURCE_REMOVE


def _height(part: Gtk.Widget) -> int:
    """Returns the natural height in a window; that of GTK assumes the narrowest possible labels."""
    return part.measure(Gtk.Orientation.VERTICAL, parts.width() - 48)[1]


def keep_choice(question: Question, title: str) -> parts.Choice:
    """Returns a choice of how long to store the answer, limited to what the broker allows."""
    words = {
        answers.KEEP_NOT: _("This Ti_me") if question.kind is Kind.TRUST else _("Do N_ot Save"),
        answers.KEEP_SESSION: _("For Th_is Session"),
        answers.KEEP_KEYRING: _("_Always") if question.kind is Kind.TRUST else _("In the _Keyring")}
    allowed = answers.allowed_persistence(question)
    hint = texts.session_hint(question) if answers.KEEP_SESSION in allowed else ""
    return parts.Choice(title, [(one, words[one]) for one in allowed], answers.usual_keep(question), hint)
