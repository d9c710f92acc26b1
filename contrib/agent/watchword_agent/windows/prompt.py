"""The window for the prompt of a program that logs in by itself, such as ssh or sudo."""
from typing import Optional

from gi.repository import Gtk

from .. import answers, texts
from ..messages import _
from ..question import ProgramPrompt, PromptKind
from ..secret import Secret
from . import base, buffers, parts

_ICONS = {PromptKind.CONFIRMATION: "dialog-question-symbolic", PromptKind.INFORMATION: "dialog-information-symbolic"}


class PromptWindow(base.QuestionWindow):
    """Shows the text of the program as a quotation, with a field, with two buttons, or with nothing to answer."""

    _field: Optional[parts.Field] = None

    def build(self) -> None:
        """Fills the window for the kind of the prompt."""
        prompt = self._prompt
        if prompt.kind in _ICONS:
            self._icon.set_from_icon_name(_ICONS[prompt.kind])
        self.add(parts.label(texts.prompt_text(prompt), "quotation"))
        if prompt.kind in (PromptKind.SECRET, PromptKind.TEXT):
            self._add_field(prompt.kind is PromptKind.SECRET)
        self.add(parts.label(texts.prompt_origin(prompt), "dim-label", "caption"))
        self.add_details()
        if prompt.kind is PromptKind.INFORMATION:
            self.add_refusing(_("_Close"), answers.cancel()).grab_focus()
        elif prompt.kind is PromptKind.CONFIRMATION:
            refusing = self.add_refusing(_("_No"), answers.cancel())
            self.add_positive(_("_Yes"), answers.confirm)
            refusing.grab_focus()
        else:
            self.add_refusing(_("_Cancel"), answers.cancel())
            self._send = self.add_positive(_("_OK"), self._make)

    def forget(self) -> None:
        """Clears the field, which GTK overwrites if it is for a secret."""
        if self._field:
            self._field.entry.set_text("")

    @property
    def _prompt(self) -> ProgramPrompt:
        assert self.question.prompt is not None
        return self.question.prompt

    def _add_field(self, is_secret: bool) -> None:
        self._field = parts.Field(_("_Answer"), is_secret=is_secret)
        self._field.entry.set_property("activates-default", False)
        self._field.entry.connect("activate", self._entered)
        self.add(self._field)
        self._field.entry.grab_focus()

    def _entered(self, _entry: Gtk.Widget) -> None:
        """Sends the answer. Enter never sends an empty one; only the button does."""
        if self._field and self._field.entry.get_delegate().get_text_length():
            self._send.emit("clicked")

    def _make(self) -> answers.Answer:
        assert self._field is not None
        if self._prompt.kind is PromptKind.SECRET:
            return answers.typed(buffers.take(self._field.entry))
        return answers.typed(Secret(bytearray(self._field.entry.get_text().encode())))
