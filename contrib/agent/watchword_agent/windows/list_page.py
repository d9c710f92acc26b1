"""A page with a list, or with a text if the list is empty."""
from typing import Callable, Optional

from gi.repository import Adw, GLib, Gtk

from ..messages import _
from . import parts

#: Icon, title and description of an empty page.
Empty = tuple[str, str, str]


class ListPage(Adw.Bin):
    """Shows rows in a frame with the accessible name `title`."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title

    def fill(self, rows: list[Gtk.Widget], empty: Empty, note: Optional[Gtk.Widget] = None, button: Optional[Gtk.Button] = None) -> None:
        """Replaces the contents. `note` is shown above the rows, `button` below the text of an empty page."""
        box = Gtk.Box(
            orientation=Gtk.Orientation.VERTICAL, spacing=12, margin_top=18, margin_bottom=18, margin_start=12, margin_end=12)
        if note:
            box.append(note)
        if rows:
            frame = parts.boxed(*rows)
            parts.name(frame, self._title)
            box.append(frame)
        else:
            icon, title, description = empty
            # A status page parses its description as markup.
            page = Adw.StatusPage(icon_name=icon, title=title, description=GLib.markup_escape_text(description), vexpand=True)
            if button:
                button.set_halign(Gtk.Align.CENTER)
                button.add_css_class("pill")
                page.set_child(button)
            box.append(page)
        self.set_child(Gtk.ScrolledWindow(hscrollbar_policy=Gtk.PolicyType.NEVER, child=Adw.Clamp(maximum_size=640, child=box)))
        parts.name_inside(self, self._title)


def row(title: str, subtitle: str) -> Adw.ActionRow:
    """Returns a row that shows both texts whole."""
    made = Adw.ActionRow(use_markup=False, title=title, subtitle=subtitle, title_lines=0, subtitle_lines=0, activatable=False)
    parts.break_plainly(made)
    parts.name(made, _("{title}: {text}").format(title=title, text=subtitle))
    return made


def icon_button(icon: str, tooltip: str, name: str, pressed: Callable[[], None]) -> Gtk.Button:
    """Returns a button for the end of a row."""
    button = Gtk.Button(icon_name=icon, valign=Gtk.Align.CENTER, tooltip_text=tooltip)
    button.add_css_class("flat")
    parts.name(button, name)
    button.connect("clicked", lambda _: pressed())
    return button
