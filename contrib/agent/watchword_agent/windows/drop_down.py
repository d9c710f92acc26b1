"""A drop-down list whose parts all have accessible names; GTK 4.8 gives its items none."""
from typing import Callable, Iterator, Optional, Sequence

from gi.repository import Gtk

from ..messages import _
from . import parts


class DropDown:
    """A drop-down list of `words`; `widget` is the control. `chosen` is called with the index when a person has selected another
    entry."""

    def __init__(self, title: str, words: Sequence[str], selected: Optional[int], chosen: Callable[[int], None]) -> None:
        factory = Gtk.SignalListItemFactory()
        factory.connect("setup", lambda _factory, item: item.set_child(_entry()))
        factory.connect("bind", self._bind)
        self.widget = control = Gtk.DropDown(model=Gtk.StringList.new(list(words)), valign=Gtk.Align.CENTER, list_factory=factory)
        control.set_selected(Gtk.INVALID_LIST_POSITION if selected is None else selected)
        parts.name(control, title)
        for part in _below(control):
            if isinstance(part, Gtk.ToggleButton):
                parts.name(part, _("{title}: choose").format(title=title))
            elif isinstance(part, Gtk.ListView):
                parts.name(part, title)
        control.connect("notify::selected", lambda *_: chosen(control.get_selected()))

    def _bind(self, _factory: Gtk.SignalListItemFactory, item: Gtk.ListItem) -> None:
        text, box = item.get_item().get_string(), item.get_child()
        box.get_first_child().set_label(text)
        box.get_last_child().set_opacity(item.get_position() == self.widget.get_selected())
        parts.name(box.get_parent(), text)


def _entry() -> Gtk.Box:
    box = Gtk.Box(spacing=6)
    box.append(Gtk.Label(xalign=0, hexpand=True))
    box.append(Gtk.Image(icon_name="object-select-symbolic", accessible_role=Gtk.AccessibleRole.PRESENTATION))
    return box


def _below(widget: Gtk.Widget) -> Iterator[Gtk.Widget]:
    child = widget.get_first_child()
    while child:
        yield child
        yield from _below(child)
        child = child.get_next_sibling()
