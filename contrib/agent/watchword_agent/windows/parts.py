"""The widgets of the windows. No text is parsed as markup, and every control has an accessible name."""
import re
from typing import Callable, Iterable, Optional, Sequence

from gi.repository import Adw, Gdk, GObject, Gtk, Pango

from ..messages import _

_WIDTH = 460
# The space between a window and the edges of the screen.
_SCREEN_MARGIN = 24
# The number of rows up to which a list does not scroll, and the height of a longer one: three and a half rows show that it scrolls.
_PICKS_UNSCROLLED, _PICKS_HEIGHT = 4, 120


def screen_size() -> tuple[int, int]:
    """Returns the width and height of the smallest monitor, because a window's own monitor is unknown before it is mapped."""
    monitors = Gdk.Display.get_default().get_monitors()
    sizes = [monitors.get_item(index).get_geometry() for index in range(monitors.get_n_items())]
    return min((one.width for one in sizes), default=1024), min((one.height for one in sizes), default=600)


def width(usual: int = _WIDTH) -> int:
    """Returns the width of a window, by default of a question, for the desktop's text size."""
    dpi = Gtk.Settings.get_default().get_property("gtk-xft-dpi")
    scaled = usual * max(1.0, dpi / 1024 / 96) if dpi > 0 else usual
    return min(int(scaled), screen_size()[0] - 2 * _SCREEN_MARGIN)


def label(text: str, *classes: str, align: Gtk.Align = Gtk.Align.START, selectable: bool = False) -> Gtk.Label:
    """Returns a wrapping label."""
    made = Gtk.Label(
        label=text, wrap=True, wrap_mode=Pango.WrapMode.WORD_CHAR, halign=align, xalign=.5 if align is Gtk.Align.CENTER else 0,
        justify=Gtk.Justification.CENTER if align is Gtk.Align.CENTER else Gtk.Justification.LEFT, selectable=selectable,
        natural_wrap_mode=Gtk.NaturalWrapMode.NONE, max_width_chars=50, use_markup=False, use_underline=False)
    made.set_attributes(_no_hyphens())
    for one in classes:
        made.add_css_class(one)
    return made


def _no_hyphens() -> Pango.AttrList:
    """Returns attributes that suppress hyphens at line breaks: in a host they would look like part of the name."""
    attributes = Pango.AttrList()
    attributes.insert(Pango.attr_insert_hyphens_new(False))
    return attributes


def break_plainly(widget: Gtk.Widget) -> None:
    """Suppresses hyphens in all labels of a widget made by another library."""
    if isinstance(widget, Gtk.Label):
        widget.set_attributes(_no_hyphens())
    child = widget.get_first_child()
    while child:
        break_plainly(child)
        child = child.get_next_sibling()


def finish(dialog: Adw.MessageDialog) -> None:
    """Suppresses hyphens in a dialogue, and names its parts, whose own names contain the underscores of the mnemonics."""
    break_plainly(dialog)
    name_inside(dialog, dialog.get_heading())


def name(widget: Gtk.Widget, text: str) -> None:
    """Sets the accessible name. The name that GTK derives from the label contains the underscore of the mnemonic."""
    widget.reset_relation(Gtk.AccessibleRelation.LABELLED_BY)
    widget.update_property([Gtk.AccessibleProperty.LABEL], [text])


def name_inside(widget: Gtk.Widget, text: str) -> None:
    """Names what another library has made: `text` for scrolling areas and tab lists, the plain title for buttons with a mnemonic."""
    if isinstance(widget, (Gtk.ScrolledWindow, Adw.ViewSwitcher)):
        name(widget, text)
    elif isinstance(widget, Gtk.Button) and widget.get_use_underline():
        name(widget, plain(widget.get_label()))
    child = widget.get_first_child()
    while child:
        name_inside(child, text)
        child = child.get_next_sibling()


def literal(text: str) -> str:
    """Escapes underscores, for use in a title with a mnemonic."""
    return text.replace("_", "__")


def plain(title: str) -> str:
    """Returns a title without mnemonic underscores."""
    return re.sub("_(.)", r"\1", title)


def notice(text: str, kind: str, icon: str) -> Gtk.Widget:
    """Returns a highlighted line with an icon; `kind` is `warning`, `error` or `dim-label`."""
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
    """Returns rows in one frame."""
    frame = Gtk.ListBox(selection_mode=Gtk.SelectionMode.NONE)
    frame.add_css_class("boxed-list")
    for row in rows:
        frame.append(row)
    return frame


class Field(Gtk.Box):
    """An entry below its title, in which an underscore marks the mnemonic.

    libadwaita's entry rows are not used: version 1.2 does not report their focus to screen readers.
    """

    def __init__(self, title: str, text: str = "", is_secret: bool = False) -> None:
        super().__init__(orientation=Gtk.Orientation.VERTICAL, spacing=3)
        self.entry = Gtk.PasswordEntry(hexpand=True) if is_secret else Gtk.Entry(hexpand=True)
        self.entry.set_property("activates-default", True)
        self.entry.set_text(text)
        # The label is the accessible name of the entry.
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
        """Appends a button to the entry."""
        self._line.append(button)

    def _add_reveal(self, title: str) -> None:
        # The entry's own icon cannot be reached with the keyboard.
        reveal = Gtk.ToggleButton(icon_name="view-reveal-symbolic", tooltip_text=_("Show Text"))
        name(reveal, _("Show: {field}").format(field=title))

        def toggled(_button: Gtk.ToggleButton) -> None:
            self.entry.get_delegate().set_visibility(reveal.get_active())
            reveal.set_icon_name("view-conceal-symbolic" if reveal.get_active() else "view-reveal-symbolic")

        reveal.connect("toggled", toggled)
        self.add_button(reveal)


def facts(*rows: tuple[str, str], classes: tuple[str, ...] = ()) -> Gtk.Widget:
    """Returns a table of titles and texts; a screen reader reads each pair together."""
    grid = Gtk.Grid(row_spacing=6, column_spacing=12)
    grid.add_css_class("card")
    grid.add_css_class("facts")
    for line, (title, text) in enumerate(rows):
        left = label(title, "dim-label")
        left.set_valign(Gtk.Align.START)
        right = label(text, *classes)
        right.set_hexpand(True)
        name(right, _("{title}: {text}").format(title=title, text=text))
        grid.attach(left, 0, line, 1, 1)
        grid.attach(right, 1, line, 1, 1)
    return grid


class Details(Gtk.Box):
    """A row that expands, in a frame. `summary` is shown beside its title, in which an underscore marks the mnemonic."""

    def __init__(self, title: str, summary: str) -> None:
        super().__init__(orientation=Gtk.Orientation.VERTICAL)
        self.add_css_class("card")
        self.add_css_class("details")
        self.expander = Gtk.Expander()
        titles = Gtk.Box(orientation=Gtk.Orientation.VERTICAL)
        titles.append(Gtk.Label(label=title, use_underline=True, xalign=0, mnemonic_widget=self.expander))
        titles.append(label(summary, "caption", "dim-label"))
        self.expander.set_label_widget(titles)
        name(self.expander, plain(title))
        self.expander.update_property([Gtk.AccessibleProperty.DESCRIPTION], [summary])
        # Not the expander's own child: screen readers would read it as a part of a button.
        self.inside = Gtk.Box(orientation=Gtk.Orientation.VERTICAL, spacing=6, visible=False)
        self.expander.bind_property("expanded", self.inside, "visible", GObject.BindingFlags.DEFAULT)
        super().append(self.expander)
        super().append(self.inside)

    def append(self, widget: Gtk.Widget) -> None:
        """Adds a widget that is shown when the row is expanded."""
        widget.remove_css_class("card")
        self.inside.append(widget)


class Choice(Gtk.Box):
    """A row of toggle buttons, of which one is active."""

    def __init__(self, title: str, options: Iterable[tuple[str, str]], chosen: str, hint: str = "") -> None:
        """`options` are pairs of a value and its title with a mnemonic underscore; `hint` explains them."""
        super().__init__(orientation=Gtk.Orientation.VERTICAL, spacing=6, accessible_role=Gtk.AccessibleRole.GROUP)
        name(self, title)
        self.append(label(title, "caption", "dim-label"))
        buttons = Gtk.Box(homogeneous=True)
        buttons.add_css_class("linked")
        self._buttons: dict[str, Gtk.ToggleButton] = {}
        first: Optional[Gtk.ToggleButton] = None
        for value, words in options:
            button = Gtk.ToggleButton(label=words, use_underline=True, group=first, active=value == chosen)
            name(button, _("{title}: {text}").format(title=title, text=plain(words)))
            first = first or button
            buttons.append(button)
            self._buttons[value] = button
        self.append(buttons)
        if hint:
            self.append(label(hint, "caption", "dim-label"))
        self.set_visible(len(self._buttons) > 1)

    @property
    def chosen(self) -> str:
        """The value of the active button."""
        return next(value for value, button in self._buttons.items() if button.get_active())


class Picks(Gtk.Box):
    """A list; a click or Enter picks a row."""

    def __init__(self, title: str, rows: Sequence[str], picked: Callable[[int], None]) -> None:
        super().__init__(orientation=Gtk.Orientation.VERTICAL, spacing=3)
        self._frame = frame = boxed()
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
        # The mnemonic moves the focus to the first row without activating it.
        frame.connect("mnemonic-activate", lambda *_: frame.get_row_at_index(0).grab_focus())
        self.append(above)
        self.append(frame if len(rows) <= _PICKS_UNSCROLLED else Gtk.ScrolledWindow(
            child=frame, hscrollbar_policy=Gtk.PolicyType.NEVER, min_content_height=_PICKS_HEIGHT, overlay_scrolling=False))
        name_inside(self, plain(title))

    def set_sensitive(self, sensitive: bool) -> None:
        """Enables the list itself: a screen reader gets the state of a widget, not that of its parents."""
        self._frame.set_sensitive(sensitive)


def button(text: str, pressed: Callable[[], None], *classes: str) -> Gtk.Button:
    """Returns a button; an underscore in its title marks the mnemonic."""
    made = Gtk.Button(label=text, use_underline=True)
    name(made, plain(text))
    made.connect("clicked", lambda _: pressed())
    for one in classes:
        made.add_css_class(one)
    return made
