"""The window of saved logins, recent use, permissions and settings."""
from typing import Any, Callable, Optional

from gi.repository import Adw, GLib, GObject, Gtk

from .. import VERSION, places, recent
from ..connection import BrokerConnection, Message
from ..escaping import shown
from ..messages import _
from . import add_login, list_page, locking, parts, permissions_page, saved_page, settings_page

_row = list_page.row
# Wide enough for the switcher of the pages in the header bar.
_WIDTH = 860


class SavedWindow(Adw.Window):
    """Manages saved logins and permissions, and shows recent audit records."""

    def __init__(self, path: str, closed: Callable[[], None]) -> None:
        super().__init__(title=_("Saved Logins"), default_width=parts.width(_WIDTH), default_height=620, accessible_role=Gtk.AccessibleRole.WINDOW)
        self._path = path
        self._stack = Adw.ViewStack(vexpand=True)
        self._toasts = Adw.ToastOverlay(child=self._stack)
        self._locking = locking.Locking(self, self._call, self._ask_saved, self._toast)
        self._saved = saved_page.SavedPage(self._call, self._toast, self._locking.unlock, self._ask_saved)
        self._recent = list_page.ListPage(_("Recent Use"))
        self._permissions = permissions_page.PermissionsPage(self._call, self._toast)
        self._settings = settings_page.SettingsPage()
        self._adding: Optional[add_login.AddLoginWindow] = None
        self._has_keyring = True
        self._events: list[recent.Event] = []
        for page, name, title, icon in (
                (self._saved, "saved", _("Saved"), "dialog-password-symbolic"),
                (self._recent, "recent", _("Recent Use"), "document-open-recent-symbolic"),
                (self._permissions, "permissions", _("Permissions"), "security-high-symbolic"),
                (self._settings, "settings", _("Settings"), "emblem-system-symbolic")):
            self._stack.add_titled(page, name, title).set_icon_name(icon)
        self._lay_out()
        self.connect("close-request", lambda *_args: closed())
        self._shortcuts(closed)
        self.connect("notify::focus-widget", lambda *_args: self.get_focus() or GLib.idle_add(self._focus_page))
        self._broker = BrokerConnection(
            path, [("initialize", {"client": {"name": "watchword-agent --list", "version": VERSION}, "protocolVersion": 1,
                                   "capabilities": {"challenge": {"delivery": "none"}}}), ("events/subscribe", {})], self._take)
        self._broker.on_ready, self._broker.on_lost = self._ready, self._lost
        self._broker.start()

    # The broker

    def _ready(self) -> None:
        try:
            self._events = recent.read(places.audit_file())
        except OSError as problem:
            self._toast(_("{path} cannot be read: {reason}").format(path=problem.filename, reason=problem.strerror))
        self._show_recent()
        self._ask_saved()
        self._call("keyring/status", {}, self._saved.show_keyring)
        self._permissions.refresh()
        self._call("server/status", {}, lambda reply: self._settings.set_broker((reply.get("result") or {}).get("pid")))

    def _lost(self, reason: str) -> None:
        said = _("{reason}. Trying again.").format(reason=shown(reason[:1].upper() + reason[1:], 200))
        self._saved.fill([], ("network-offline-symbolic", _("No Broker"), said))
        self._permissions.fill([], ("network-offline-symbolic", _("No Broker"), said))
        self._recent.fill([], ("network-offline-symbolic", _("No Broker"), _("Recent use is shown while the broker runs.")))
        self._settings.set_broker(None)
        self._allow(False)
        if self._adding:
            self._adding.fail(said)

    def _take(self, message: Message) -> None:
        if message.get("method") == "credential/changed":
            self._ask_saved()
        elif message.get("method") == "event" and recent.is_of_interest(message.get("params") or {}):
            # An event after the subscription can also be in the file that was read.
            if message["params"] not in self._events:
                self._events = [message["params"], *self._events][:recent.EVENT_LIMIT]
                self._show_recent()
                self._ask_saved()
                self._permissions.refresh()
        elif isinstance(message.get("id"), int):
            self._broker.refuse(message["id"], -32601, "This program does not support that method.")

    def _call(self, method: str, params: Message, then: Callable[[Message], None]) -> None:
        self._broker.call(method, params, then)

    def _ask_saved(self) -> None:
        self._call("credential/list", {}, self._show_saved)

    def _show_saved(self, reply: Message) -> None:
        self._has_keyring = ((reply.get("result") or {}).get("keyring") or {}).get("state") != "unavailable"
        self._saved.show_reply(reply)
        self._allow("error" not in reply)
        self._lock.set_sensitive("error" not in reply or self._saved.is_locked)
        title = _("Unlock") if self._saved.is_locked else _("Lock")
        self._lock.set_tooltip_text(title)
        parts.name(self._lock, title)

    def _show_recent(self) -> None:
        rows = [_row(recent.what(event), recent.who(event)) for event in self._events]
        self._recent.fill(rows, (
            "document-open-recent-symbolic", _("No Recent Use"), _("Uses of your logins by programs are shown here.")))

    # Actions

    def _allow(self, is_possible: bool) -> None:
        """Enables the buttons that need the broker."""
        for button in (self._add, self._find, self._lock):
            button.set_sensitive(is_possible)

    def _add_login(self) -> None:
        def closed(_window: Gtk.Window) -> None:
            self._adding = None

        if self._add.get_sensitive() and not self._adding:
            self._show_page("saved")
            self._adding = add_login.AddLoginWindow(self, self._call, self._has_keyring, lambda: self._toast(_("Added")))
            self._adding.connect("unrealize", closed)
            self._adding.present()

    def _toggle_lock(self) -> None:
        if self._lock.get_sensitive():
            (self._locking.unlock if self._saved.is_locked else self._locking.lock)()

    def _toast(self, text: str) -> None:
        self._toasts.add_toast(Adw.Toast(title=GLib.markup_escape_text(text)))

    # Parts

    def _lay_out(self) -> None:
        title = Adw.ViewSwitcherTitle(title=_("Saved Logins"), stack=self._stack)
        self._add = _header_button("list-add-symbolic", _("Add Login"), self._add_login)
        self._find = Gtk.ToggleButton(icon_name="edit-find-symbolic", tooltip_text=_("Search"))
        parts.name(self._find, _("Search"))
        self._lock = _header_button("system-lock-screen-symbolic", _("Lock"), self._toggle_lock)
        header = Adw.HeaderBar(title_widget=title, centering_policy=Adw.CenteringPolicy.STRICT)
        header.pack_start(self._add)
        header.pack_start(self._find)
        header.pack_end(self._lock)
        words = Gtk.SearchEntry(placeholder_text=_("Host, user or realm"), hexpand=True)
        parts.name(words, _("Host, user or realm"))
        words.connect("search-changed", lambda entry: self._saved.search(entry.get_text()))
        self._search = Gtk.SearchBar(child=Adw.Clamp(maximum_size=400, child=words))
        self._search.connect_entry(words)
        self._search.bind_property("search-mode-enabled", self._find, "active", GObject.BindingFlags.BIDIRECTIONAL)
        self._find.connect("toggled", lambda button: button.get_active() and self._show_page("saved"))
        self._stack.connect("notify::visible-child", lambda *_args: self._page_changed())
        bar = Adw.ViewSwitcherBar(stack=self._stack)
        # GTK loses a change of the layout that is made while it computes the layout.
        title.connect("notify::title-visible", lambda *_args: GLib.idle_add(lambda: bar.set_reveal(title.get_title_visible())))
        for part in (header, self._search, bar):
            parts.name_inside(part, _("Saved Logins"))
        whole = Gtk.Box(orientation=Gtk.Orientation.VERTICAL)
        for part in (header, self._search, self._toasts, bar):
            whole.append(part)
        self.set_content(whole)
        self._allow(False)

    def _page_changed(self) -> None:
        name = self._stack.get_visible_child_name()
        if name != "saved":
            self._search.set_search_mode(False)
        if name == "settings":
            self._settings.refresh()

    def _focus_page(self) -> bool:
        """Moves the focus into the page: a widget that had the focus was replaced or disabled."""
        if self.get_focus() is None:
            self._stack.get_visible_child().child_focus(Gtk.DirectionType.TAB_FORWARD) or self.child_focus(Gtk.DirectionType.TAB_FORWARD)
        return GLib.SOURCE_REMOVE

    def _show_page(self, name: str) -> None:
        self._stack.set_visible_child_name(name)

    def _escape(self, closed: Callable[[], None]) -> None:
        if self._search.get_search_mode():
            self._search.set_search_mode(False)
        else:
            closed()

    def _shortcuts(self, closed: Callable[[], None]) -> None:
        keys = Gtk.ShortcutController(scope=Gtk.ShortcutScope.MANAGED)
        actions: dict[str, Callable[[], Any]] = {
            "<Control>w": closed, "Escape": lambda: self._escape(closed), "<Control>n": self._add_login, "<Control>l": self._toggle_lock,
            "<Control>f": lambda: self._find.set_active(self._find.get_sensitive()),
            "<Alt>s": lambda: self._show_page("saved"), "<Alt>r": lambda: self._show_page("recent"),
            "<Alt>p": lambda: self._show_page("permissions"), "<Alt>t": lambda: self._show_page("settings")}
        for trigger, act in actions.items():
            keys.add_shortcut(Gtk.Shortcut(
                trigger=Gtk.ShortcutTrigger.parse_string(trigger),
                action=Gtk.CallbackAction.new(lambda *_, act=act: bool(act()) or True)))
        self.add_controller(keys)


def _header_button(icon: str, title: str, pressed: Callable[[], None]) -> Gtk.Button:
    button = Gtk.Button(icon_name=icon, tooltip_text=title)
    parts.name(button, title)
    button.connect("clicked", lambda _: pressed())
    return button
