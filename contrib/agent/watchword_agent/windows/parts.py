"""What the windows are made of. No text is read as markup, and everything that can be used has a name."""
from typing import Callable, Iterable, Optional

from gi.repository import Adw, Gtk, Pango

WIDTH = 460


def label(text: str, *classes: str, align: Gtk.Align = Gtk.Align.START, selectable: bool = False) -> Gtk.Label:
    """A text of several lines."""
    made = Gtk.Label(
        label=text, wrap=True, wrap_mode=Pango.WrapMode.WORD_CHAR, halign=align, xalign=.5 if align is Gtk.Align.CENTER else 0,
        justify=Gtk.Justification.CENTER if align is Gtk.Align.CENTER else Gtk.Justification.LEFT, selectable=selectable,
        natural_wrap_mode=Gtk.NaturalWrapMode.NONE, max_width_chars=50, use_markup=False, use_underline=False)
    for one in classes:
        made.add_css_class(one)
    return made


def name(widget: Gtk.Widget, text: str) -> None:
    """What a screen reader says."""
    widget.update_property([Gtk.AccessibleProperty.LABEL], [text])


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


def entry(title: str, text: str = "", is_secret: bool = False) -> Adw.EntryRow:
    """A field with its title, whose underscore marks the key that goes with Alt."""
    row = (Adw.PasswordEntryRow if is_secret else Adw.EntryRow)(title=title, use_underline=True, activates_default=True)
    row.set_text(text)
    name(row.get_delegate(), title.replace("_", ""))
    return row


def fact(title: str, text: str, *classes: str, selectable: bool = False) -> Adw.PreferencesRow:
    """A title and below it what is so; read out as one."""
    row = Adw.PreferencesRow(activatable=False, focusable=False)
    box = Gtk.Box(orientation=Gtk.Orientation.VERTICAL, spacing=3, margin_top=9, margin_bottom=9, margin_start=12, margin_end=12)
    box.append(label(title, "caption", "dim-label"))
    box.append(label(text, *classes, selectable=selectable))
    row.set_child(box)
    name(row, f"{title}: {text}")
    return row


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
            name(button, f"{title}: {words.replace('_', '')}")
            first = first or button
            buttons.append(button)
            self._buttons[value] = button
        self.append(buttons)
        self.set_visible(len(self._buttons) > 1)

    @property
    def chosen(self) -> str:
        """The value of the button that is pressed."""
        return next(value for value, button in self._buttons.items() if button.get_active())


def button(text: str, pressed: Callable[[], None], *classes: str) -> Gtk.Button:
    """A button whose title has an underscore before the key that goes with Alt."""
    made = Gtk.Button(label=text, use_underline=True)
    made.connect("clicked", lambda _: pressed())
    for one in classes:
        made.add_css_class(one)
    return made
