"""What the windows are made of. No text is read as markup, and everything that can be used has a name."""
import re
from typing import Callable, Iterable, Optional, Sequence

from gi.repository import Gtk, Pango

WIDTH = 460
# A longer list scrolls, with room for three rows and a half: it can be seen that there are more.
_PICKS_UNSCROLLED, _PICKS_HEIGHT = 4, 120


def label(text: str, *classes: str, align: Gtk.Align = Gtk.Align.START, selectable: bool = False) -> Gtk.Label:
    """A text of several lines."""
    made = Gtk.Label(
        label=text, wrap=True, wrap_mode=Pango.WrapMode.WORD_CHAR, halign=align, xalign=.5 if align is Gtk.Align.CENTER else 0,
        justify=Gtk.Justification.CENTER if align is Gtk.Align.CENTER else Gtk.Justification.LEFT, selectable=selectable,
        natural_wrap_mode=Gtk.NaturalWrapMode.NONE, max_width_chars=50, use_markup=False, use_underline=False)
    made.set_attributes(_no_hyphens())
    for one in classes:
        made.add_css_class(one)
    return made


def _no_hyphens() -> Pango.AttrList:
    """Where a host is broken into lines, a hyphen would look like one of its own."""
    attributes = Pango.AttrList()
    attributes.insert(Pango.attr_insert_hyphens_new(False))
    return attributes


def break_plainly(widget: Gtk.Widget) -> None:
    """The same for the labels in a widget that another library makes."""
    if isinstance(widget, Gtk.Label):
        widget.set_attributes(_no_hyphens())
    child = widget.get_first_child()
    while child:
        break_plainly(child)
        child = child.get_next_sibling()


def name(widget: Gtk.Widget, text: str) -> None:
    """What a screen reader says, in the place of what GTK makes up from the label, with the underscore."""
    widget.reset_relation(Gtk.AccessibleRelation.LABELLED_BY)
    widget.update_property([Gtk.AccessibleProperty.LABEL], [text])


def literal(text: str) -> str:
    """For a title in which an underscore marks a key: those in `text` mark none."""
    return text.replace("_", "__")


def plain(title: str) -> str:
    """A title without the marks of its keys."""
    return re.sub("_(.)", r"\1", title)


def notice(text: str, kind: str, icon: str) -> Gtk.Widget:
    """One line that has to be seen: `warning`, `error` or `dim-label`."""
    box = Gtk.Box(spacing=9)
    box.add_css_class("notice")
    box.add_css_class(kind)
    image = Gtk.Image(icon_name=icon, valign=Gtk.Align.START, accessible_role=Gtk.AccessibleRole.PRESENTATION)
    words = label(text)
    words.set_hexpand(True)
    box.append(image)
    box.append(words)
    return box


def boxed(*rows: Gtk.Widget) -> Gtk.ListBox:
    """Rows in one frame."""
    frame = Gtk.ListBox(selection_mode=Gtk.SelectionMode.NONE)
    frame.add_css_class("boxed-list")
    for row in rows:
        frame.append(row)
    return frame


class Field(Gtk.Box):
    """A field below its title, whose underscore marks the key that goes with Alt.

    Not libadwaita's rows: a screen reader is not told when one of those has the focus (1.2).
    """

    def __init__(self, title: str, text: str = "", is_secret: bool = False) -> None:
        super().__init__(orientation=Gtk.Orientation.VERTICAL, spacing=3)
        self.entry = Gtk.PasswordEntry(hexpand=True) if is_secret else Gtk.Entry(hexpand=True)
        self.entry.set_property("activates-default", True)
        self.entry.set_text(text)
        # Its name for a screen reader is this label's.
        above = Gtk.Label(label=title, use_underline=True, xalign=0, mnemonic_widget=self.entry)
        above.add_css_class("caption")
        above.add_css_class("dim-label")
        self._line = Gtk.Box()
        self._line.add_css_class("linked")
        self._line.append(self.entry)
        self.append(above)
        self.append(self._line)
        if is_secret:
            self._add_reveal(plain(title))

    def add_button(self, button: Gtk.Button) -> None:
        """Behind the field."""
        self._line.append(button)

    def _add_reveal(self, title: str) -> None:
        # The field's own symbol cannot be reached with the keyboard.
        reveal = Gtk.ToggleButton(icon_name="view-reveal-symbolic", tooltip_text="Show what is typed")
        name(reveal, f"Show: {title}")

        def toggled(_: Gtk.ToggleButton) -> None:
            self.entry.get_delegate().set_visibility(reveal.get_active())
            reveal.set_icon_name("view-conceal-symbolic" if reveal.get_active() else "view-reveal-symbolic")

        reveal.connect("toggled", toggled)
        self.add_button(reveal)


def facts(*rows: tuple[str, str], classes: tuple[str, ...] = ()) -> Gtk.Widget:
    """Titles, and beside each what is so; read out together."""
    grid = Gtk.Grid(row_spacing=6, column_spacing=12)
    grid.add_css_class("card")
    grid.add_css_class("facts")
    for line, (title, text) in enumerate(rows):
        left = label(title, "dim-label")
        left.set_valign(Gtk.Align.START)
        right = label(text, *classes)
        right.set_hexpand(True)
        name(right, f"{title}: {text}")
        grid.attach(left, 0, line, 1, 1)
        grid.attach(right, 1, line, 1, 1)
    return grid


class Choice(Gtk.Box):
    """One of a few, side by side."""

    def __init__(self, title: str, options: Iterable[tuple[str, str]], chosen: str) -> None:
        """`options` are a value and its title with an underscore."""
        super().__init__(orientation=Gtk.Orientation.VERTICAL, spacing=6, accessible_role=Gtk.AccessibleRole.GROUP)
        name(self, title)
        self.append(label(title, "caption", "dim-label"))
        buttons = Gtk.Box(homogeneous=True)
        buttons.add_css_class("linked")
        self._buttons: dict[str, Gtk.ToggleButton] = {}
        first: Optional[Gtk.ToggleButton] = None
        for value, words in options:
            button = Gtk.ToggleButton(label=words, use_underline=True, group=first, active=value == chosen)
            name(button, f"{title}: {plain(words)}")
            first = first or button
            buttons.append(button)
            self._buttons[value] = button
        self.append(buttons)
        self.set_visible(len(self._buttons) > 1)

    @property
    def chosen(self) -> str:
        """The value of the button that is pressed."""
        return next(value for value, button in self._buttons.items() if button.get_active())


class Picks(Gtk.Box):
    """A list of which one row is picked, by a click or with Enter."""

    def __init__(self, title: str, rows: Sequence[str], picked: Callable[[int], None]) -> None:
        super().__init__(orientation=Gtk.Orientation.VERTICAL, spacing=3)
        frame = boxed()
        frame.connect("row-activated", lambda _, row: picked(row.get_index()))
        for text in rows:
            words = label(text)
            words.add_css_class("pick")
            row = Gtk.ListBoxRow(child=words)
            name(row, text)
            frame.append(row)
        above = Gtk.Label(label=title, use_underline=True, xalign=0, mnemonic_widget=frame)
        above.add_css_class("caption")
        above.add_css_class("dim-label")
        name(frame, plain(title))
        # The key goes to the first row, and must not pick it.
        frame.connect("mnemonic-activate", lambda *_: frame.get_row_at_index(0).grab_focus())
        self.append(above)
        self.append(frame if len(rows) <= _PICKS_UNSCROLLED else Gtk.ScrolledWindow(
            child=frame, hscrollbar_policy=Gtk.PolicyType.NEVER, min_content_height=_PICKS_HEIGHT, overlay_scrolling=False))


def button(text: str, pressed: Callable[[], None], *classes: str) -> Gtk.Button:
    """A button whose title has an underscore before the key that goes with Alt."""
    made = Gtk.Button(label=text, use_underline=True)
    name(made, plain(text))
    made.connect("clicked", lambda _: pressed())
    for one in classes:
        made.add_css_class(one)
    return made
