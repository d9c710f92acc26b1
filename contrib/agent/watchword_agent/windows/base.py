"""What all questions have in common: heading, who asks, the row of buttons, Escape, and the moment of calm at the start."""
from typing import Any, Callable, Optional

from gi.repository import Adw, Gdk, GLib, Gtk

from .. import answers, texts
from ..question import Kind, Question
from . import parts

# A window appears while somebody types elsewhere: what was meant for another window must not say yes here.
CALM_MS = 400
_TALLEST = 640
# What stands above and below the contents: the title, the buttons, and the desktop's own bars.
_AROUND = 220
_ICONS = {
    Kind.LOGIN: "dialog-password-symbolic", Kind.TOKEN: "dialog-password-symbolic",
    Kind.CERTIFICATE: "application-certificate-symbolic", Kind.TRUST: "security-medium-symbolic",
    Kind.CONSENT: "system-lock-screen-symbolic"}


class QuestionWindow(Adw.Window):
    """One question. `answered` is called once, unless `withdraw` comes first."""

    def __init__(self, question: Question, waiting: int, answered: Callable[[answers.Answer], None]) -> None:
        super().__init__(
            title=texts.title(question), default_width=parts.WIDTH, resizable=False,
            accessible_role=Gtk.AccessibleRole.DIALOG)
        self.question = question
        self._answered: Optional[Callable[[answers.Answer], None]] = answered
        self._is_calm = False
        self._positive: list[Gtk.Button] = []
        self._stop: Optional[Gtk.Button] = None
        self._body = Gtk.Box(
            orientation=Gtk.Orientation.VERTICAL, spacing=12, margin_start=24, margin_end=24, margin_bottom=6)
        self._buttons = Gtk.Box(spacing=9, margin_start=24, margin_end=24, margin_top=12, margin_bottom=24)
        self._waiting = parts.label("", "dim-label", "caption", align=Gtk.Align.CENTER)
        self._lay_out()
        self._head()
        self.build()
        self._offer_stopping()
        self._fit()
        self.recount(waiting)
        self._escape()
        self.connect("close-request", lambda _: self._closed())
        self.connect("map", lambda _: GLib.timeout_add(CALM_MS, self._calm))

    # For each kind of question

    def build(self) -> None:
        """Fills the window."""
        raise NotImplementedError

    def is_complete(self) -> bool:
        """Whether there is enough to say yes."""
        return True

    def forget(self) -> None:
        """Overwrites what was typed and is not wanted any more."""

    # For whoever shows it

    def recount(self, waiting: int) -> None:
        """So many questions wait behind this one."""
        self._waiting.set_label(texts.waiting(waiting))
        self._waiting.set_visible(waiting > 0)

    def withdraw(self) -> None:
        """Closes without an answer."""
        self._answered = None
        self.forget()
        self.destroy()

    # For the subclasses

    def add(self, widget: Optional[Gtk.Widget]) -> None:
        """The next thing below."""
        if widget is not None:
            self._body.append(widget)

    def add_notice(self, text: Optional[str], kind: str = "warning", icon: str = "dialog-warning-symbolic") -> None:
        """A line that has to be seen, if there is anything to say."""
        if text:
            self.add(parts.notice(text, kind, icon))

    def add_facts(self, *rows: tuple[str, str]) -> None:
        """Who asks and what for, and what else is so."""
        requester = self.question.requester
        asked_by = f"{texts.program(requester)}\n{texts.program_place(requester)}"
        self.add(parts.facts(("Asked by", asked_by), ("For", texts.fetch(self.question)), *rows))

    def add_refusing(self, text: str, answer: answers.Answer) -> Gtk.Button:
        """A button that gives nothing away."""
        button = parts.button(text, lambda: self.answer(answer), "pill")
        self._buttons.append(button)
        return button

    def add_positive(
        self, text: str, make: Callable[[], Optional[answers.Answer]], style: str = "suggested-action"
    ) -> Gtk.Button:
        """A button that says yes: it works after the moment of calm, and when the window is complete. `make` returns None when
        it has found something wrong, and has said so."""
        def pressed() -> None:
            answer = make() if self._is_calm and self.is_complete() else None
            if answer is not None:
                self.answer(answer)

        button = parts.button(text, pressed, "pill", style)
        button.set_hexpand(True)
        button.set_halign(Gtk.Align.END)
        button.set_sensitive(False)
        self._buttons.append(button)
        self._positive.append(button)
        return button

    def changed(self, *_: Any) -> None:
        """What was typed has changed."""
        for button in self._positive:
            button.set_sensitive(self._is_calm and self.is_complete())

    def answer(self, answer: answers.Answer) -> None:
        """Says it, once, and closes."""
        answered, self._answered = self._answered, None
        if answered is not None:
            self.forget()
            self.destroy()
            answered(answer)

    # Inside

    def _offer_stopping(self) -> None:
        """For a program whose questions were refused before."""
        if self.question.is_repeated:
            self._stop = parts.button(texts.STOP_ASKING, self._stop_asking, "flat")
            self._stop.set_tooltip_text(texts.STOP_ASKING_HINT)
            self._stop.set_sensitive(False)
            self.add(self._stop)

    def _stop_asking(self) -> None:
        if self._is_calm:
            self.answer(answers.stop_asking(self.question))

    def _lay_out(self) -> None:
        header = Adw.HeaderBar(title_widget=self._waiting, decoration_layout=":close")
        header.add_css_class("flat")
        self._scrolled = Gtk.ScrolledWindow(hscrollbar_policy=Gtk.PolicyType.NEVER, child=self._body, vexpand=True)
        whole = Gtk.Box(orientation=Gtk.Orientation.VERTICAL)
        for part in (header, self._scrolled, self._buttons):
            whole.append(part)
        self.set_content(whole)

    def _head(self) -> None:
        question = self.question
        self._icon = icon = Gtk.Image(
            icon_name=_ICONS[question.kind], pixel_size=32, halign=Gtk.Align.CENTER,
            accessible_role=Gtk.AccessibleRole.PRESENTATION)
        icon.add_css_class("question-icon")
        alarm = question.kind is Kind.TRUST and texts.is_grave(question)
        icon.add_css_class("alarm" if alarm else "unsure" if question.kind is Kind.TRUST else "calm")
        self.add(icon)
        heading = parts.label(texts.heading(question), "title-2", align=Gtk.Align.CENTER)
        self.add(heading)
        end = texts.long_host(question.space)
        if end and question.kind is not Kind.CONSENT:
            self.add(parts.label(end, "heading", align=Gtk.Align.CENTER))
        self.update_property([Gtk.AccessibleProperty.DESCRIPTION], [texts.heading(question)])

    def _fit(self) -> None:
        """The contents scroll where the screen is too low for them, and the buttons stay."""
        # By itself it would take the height that its texts had if they were as narrow as can be.
        room = min(_TALLEST, max(120, _screen_height() - _AROUND))
        needed = lambda: self._body.measure(Gtk.Orientation.VERTICAL, parts.WIDTH - 48)[1] + 8  # noqa: E731
        if needed() > room:
            self._icon.set_visible(False)
        self._scrolled.set_min_content_height(min(needed(), room))
        # Bars that come and go would not show that there is more below.
        self._scrolled.set_overlay_scrolling(needed() <= room)

    def _escape(self) -> None:
        keys = Gtk.ShortcutController()
        keys.add_shortcut(Gtk.Shortcut(
            trigger=Gtk.KeyvalTrigger(keyval=Gdk.KEY_Escape),
            action=Gtk.CallbackAction.new(lambda *_: self._closed())))
        self.add_controller(keys)

    def _closed(self) -> bool:
        self.answer(answers.refusal(self.question))
        return True

    def _calm(self) -> bool:
        self._is_calm = True
        if self._stop is not None:
            self._stop.set_sensitive(True)
        # So that it can be seen what Enter would do, before any key was pressed.
        self.set_focus_visible(True)
        self.changed()
        return GLib.SOURCE_REMOVE


def _screen_height() -> int:
    """Of the lowest: where the window will be is not known before it is there."""
    monitors = Gdk.Display.get_default().get_monitors()
    return min((monitors.get_item(index).get_geometry().height for index in range(monitors.get_n_items())), default=_TALLEST)


def keep_choice(question: Question, title: str) -> parts.Choice:
    """For how long; only what the broker allows."""
    words = {
        answers.KEEP_NOT: "This Ti_me" if question.kind is Kind.TRUST else "N_ot at All",
        answers.KEEP_SESSION: "Until _I Log Out",
        answers.KEEP_KEYRING: "_Always" if question.kind is Kind.TRUST else "In the _Keyring"}
    return parts.Choice(title, [(one, words[one]) for one in answers.kept_for(question)], answers.usual_keep(question))
