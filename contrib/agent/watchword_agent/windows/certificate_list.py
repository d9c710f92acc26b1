"""The list of certificates to choose from, whose last row is another file or token."""
import datetime
from typing import Callable, Iterable, Optional, Sequence

from gi.repository import Gtk

from .. import certificate_choices, certificate_texts
from ..certificate_choices import Choice
from ..messages import _
from . import parts

# The number of rows up to which the list does not scroll, and the height of a longer one.
_UNSCROLLED, _HEIGHT = 3, 170


class CertificateList(Gtk.Box):
    """A list in which one row can be selected; it is hidden without a certificate. `changed` is called after a selection, and
    `activated` after a click or Enter."""

    def __init__(self, accepted: Sequence[str], changed: Callable[[], None], activated: Callable[[], None]) -> None:
        super().__init__(orientation=Gtk.Orientation.VERTICAL, spacing=3, visible=False)
        self._accepted, self._now = accepted, datetime.datetime.now(datetime.timezone.utc)
        self._frame = frame = parts.boxed()
        frame.set_selection_mode(Gtk.SelectionMode.BROWSE)
        frame.set_sort_func(lambda one, other: (self._rank(one) > self._rank(other)) - (self._rank(one) < self._rank(other)))
        above = Gtk.Label(label=_("Your cer_tificates"), use_underline=True, xalign=0, mnemonic_widget=frame)
        above.add_css_class("caption")
        above.add_css_class("dim-label")
        parts.name(frame, parts.plain(_("Your cer_tificates")))
        frame.connect("mnemonic-activate", lambda *_: self.focus())
        self._scrolled = Gtk.ScrolledWindow(child=frame, hscrollbar_policy=Gtk.PolicyType.NEVER, propagate_natural_height=True)
        self.append(above)
        self.append(self._scrolled)
        parts.name_inside(self._scrolled, parts.plain(_("Your cer_tificates")))
        self._other = _row(_("Another File or Token…"), None)
        frame.append(self._other)
        self._count = 0
        frame.connect("row-selected", lambda *_: self._selected(changed))
        frame.connect("row-activated", lambda *_: activated())

    def add(self, choices: Iterable[Choice]) -> None:
        """Adds certificates, in their order among the others."""
        for choice in choices:
            self._frame.append(_row(
                certificate_texts.title(choice), choice, certificate_texts.facts(choice, self._now), certificate_texts.place(choice)))
            self._count += 1
        self.set_visible(self._count > 0)
        if self._count > _UNSCROLLED:
            self._scrolled.set_min_content_height(_HEIGHT)
            self._scrolled.set_max_content_height(_HEIGHT)
            self._scrolled.set_overlay_scrolling(False)

    def select(self, certificate: str) -> bool:
        """Selects a certificate by its path or URI; returns whether it is in the list."""
        row = next((one for one in self._rows() if one.choice and one.choice.certificate == certificate), None)
        if row:
            self._frame.select_row(row)
        return row is not None

    def select_other(self) -> None:
        """Selects the last row."""
        self._frame.select_row(self._other)

    def select_best(self) -> None:
        """Selects the first certificate, if its issuer is accepted and it has not expired."""
        first = next(self._rows(), None)
        if first and first.choice and certificate_choices.rank(first.choice, self._accepted, self._now)[:2] == (False, False):
            self._frame.select_row(first)

    @property
    def chosen(self) -> Optional[Choice]:
        """The selected certificate."""
        row = self._frame.get_selected_row()
        return row.choice if row else None

    @property
    def is_other(self) -> bool:
        """Whether a file or token is to be named in the fields."""
        return self._count == 0 or self._frame.get_selected_row() is self._other

    def focus(self) -> bool:
        """Moves the focus to the selected row, or to the first."""
        return (self._frame.get_selected_row() or self._frame.get_row_at_index(0)).grab_focus()

    def _rows(self) -> Iterable["_Row"]:
        index = 0
        while row := self._frame.get_row_at_index(index):
            yield row
            index += 1

    def _selected(self, changed: Callable[[], None]) -> None:
        selected = self._frame.get_selected_row()
        for row in self._rows():
            row.mark.set_opacity(1 if row is selected else 0)
        changed()

    def _rank(self, row: "_Row") -> tuple[object, ...]:
        return (True,) if row.choice is None else (False, *certificate_choices.rank(row.choice, self._accepted, self._now), row.title)


class _Row(Gtk.ListBoxRow):
    choice: Optional[Choice]
    title: str
    mark: Gtk.Image


def _row(title: str, choice: Optional[Choice], *lines: str) -> _Row:
    # Enter activates the row. Without this, it would press the default button and send a certificate that was selected by itself.
    row = _Row(receives_default=True)
    row.choice, row.title = choice, title
    row.mark = Gtk.Image(icon_name="object-select-symbolic", opacity=0, accessible_role=Gtk.AccessibleRole.PRESENTATION)
    texts = Gtk.Box(orientation=Gtk.Orientation.VERTICAL, hexpand=True)
    texts.append(parts.label(title))
    for line in lines:
        texts.append(parts.label(line, "caption", "dim-label"))
    box = Gtk.Box(spacing=6)
    box.add_css_class("pick")
    box.append(texts)
    box.append(row.mark)
    row.set_child(box)
    parts.name(row, ", ".join([title, *lines]))
    return row
