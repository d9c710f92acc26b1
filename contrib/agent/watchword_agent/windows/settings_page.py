"""The page of settings, which writes the broker's configuration."""
import os
from typing import Any, Optional, Sequence

from gi.repository import Adw, Gtk

from .. import broker_process, configuration, durations, places
from ..certificate_files import BLANKS
from ..escaping import PATH_LIMIT, shown
from ..messages import N_, _
from . import drop_down, parts

_IDLE, _LIFETIME = ("limits", "session-idle-s"), ("limits", "session-lifetime-s")
_SHARING, _KEYRING, _AUDIT = ("sharing", "session"), ("keyring", "enabled"), ("audit", "enabled")
_SHARED = {"user": N_("All my programs"), "ask": N_("Programs that I allow"), "client": N_("Only the connection that logged in")}


class SettingsPage(Adw.Bin):
    """Shows some options of the configuration. A change is written at once, and the broker reads it."""

    def __init__(self) -> None:
        super().__init__()
        self._pid: Any = None
        self._text = ""
        self._problem = parts.label("", "error")
        self._problem.set_visible(False)
        self._place = parts.label("", "caption", "dim-label")
        self._page = Gtk.Box(
            orientation=Gtk.Orientation.VERTICAL, spacing=18, margin_top=18, margin_bottom=18, margin_start=12, margin_end=12)
        self.set_child(Gtk.ScrolledWindow(
            hscrollbar_policy=Gtk.PolicyType.NEVER, child=Adw.Clamp(maximum_size=640, child=self._page)))
        parts.name_inside(self, _("Settings"))
        self._groups: list[Gtk.Widget] = []
        for widget in (self._problem, self._place):
            self._page.append(widget)
        self.refresh()

    def set_broker(self, pid: Any) -> None:
        """Sets the process of the running broker, or `None`."""
        self._pid = pid
        self.refresh()

    def refresh(self) -> None:
        """Reads the configuration and shows it."""
        path = self._path
        self._place.set_label(_("These settings are in {path}").format(path=shown(path, PATH_LIMIT)))
        for group in self._groups:
            self._page.remove(group)
        self._groups = []
        try:
            if not os.path.isabs(path):
                raise configuration.Unusable(_("The broker was started with a relative path to its configuration, so the file is unknown"))
            self._text = configuration.read(path)
            values = configuration.values(self._text)
        except configuration.Unusable as problem:
            return self._show(str(problem))
        session = _group(_("Logins of the Session"))
        for option, title, usual in (
                (_IDLE, _("Forget unused logins after"), durations.IDLE_SECONDS),
                (_LIFETIME, _("Forget all logins after"), durations.LIFETIME_SECONDS)):
            offered = durations.offered(usual, int(values[option]))
            session.add(self._choice(title, "", option, offered, [durations.spelt(one) for one in offered], values[option]))
        session.add(self._choice(
            _("Available to"), _("A change forgets the logins of the session"), _SHARING, list(_SHARED),
            [_(one) for one in _SHARED.values()], values[_SHARING]))
        storage = _group(_("Storage"))
        storage.add(self._switch(_("Use the keyring"), _("Otherwise logins are saved for the session only"), _KEYRING, values[_KEYRING]))
        storage.add(self._switch(
            _("Record recent use"), _("Which program used which login, without passwords"), _AUDIT, values[_AUDIT]))
        self._groups = [session, storage]
        for group in reversed(self._groups):
            self._page.insert_child_after(group, self._problem)

    @property
    def _path(self) -> str:
        return broker_process.configuration_file(self._pid) if self._pid else places.configuration_file()

    def _set(self, option: tuple[str, str], value: configuration.Value) -> None:
        """Writes one option. After an error, the page shows the file's values again."""
        problem: Optional[str] = None
        try:
            configuration.write(self._path, self._text, configuration.changed(self._text, *option, value), broker_process.check)
            if self._pid:
                problem = broker_process.reload(self._pid)
        except configuration.Unusable as reason:
            problem = str(reason)
        if problem:
            self.refresh()
            return self._show(problem)
        self._problem.set_visible(False)
        self._text = configuration.read(self._path)

    def _show(self, problem: str) -> None:
        self._problem.set_label(problem.strip(BLANKS))
        self._problem.set_visible(True)

    def _choice(self, title: str, subtitle: str, option: tuple[str, str], offered: Sequence[configuration.Value], words: list[str],
                value: configuration.Value) -> Adw.ActionRow:
        selected = list(offered).index(value) if value in offered else None
        choice = drop_down.DropDown(title, words, selected, lambda index: self._set(option, offered[index]))
        return _row(title, subtitle, choice.widget)

    def _switch(self, title: str, subtitle: str, option: tuple[str, str], value: configuration.Value) -> Adw.ActionRow:
        switch = Gtk.Switch(valign=Gtk.Align.CENTER, active=value)
        switch.connect("notify::active", lambda *_: self._set(option, switch.get_active()))
        return _row(title, subtitle, switch)


def _row(title: str, subtitle: str, control: Gtk.Widget) -> Adw.ActionRow:
    row = Adw.ActionRow(use_markup=False, title=title, subtitle=subtitle, title_lines=0, subtitle_lines=0, focusable=False)
    row.add_suffix(control)
    row.set_activatable_widget(control)
    parts.break_plainly(row)
    for widget in (row, control):
        parts.name(widget, title)
        widget.update_property([Gtk.AccessibleProperty.DESCRIPTION], [subtitle])
    return row


def _group(title: str) -> Adw.PreferencesGroup:
    # The group parses its title as markup; the titles are ours.
    return Adw.PreferencesGroup(title=title)
