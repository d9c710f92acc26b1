"""The window of saved logins and their recent use."""
from typing import Any, Callable

from gi.repository import Adw, GLib, Gtk

from .. import VERSION, places, recent, texts
from ..connection import BrokerConnection, Message
from ..escaping import quoted, shown
from ..messages import _
from . import parts


class SavedWindow(Adw.Window):
    """Lists saved logins, with a button to forget each, and recent audit records."""

    def __init__(self, path: str, closed: Callable[[], None]) -> None:
        super().__init__(title=_("Saved Logins"), default_width=640, default_height=620, accessible_role=Gtk.AccessibleRole.WINDOW)
        self._path = path
        self._switcher_title = Adw.ViewSwitcherTitle(title=_("Saved Logins"))
        self._stack = Adw.ViewStack(vexpand=True)
        self._switcher_title.set_stack(self._stack)
        self._toasts = Adw.ToastOverlay(child=self._stack)
        header = Adw.HeaderBar(title_widget=self._switcher_title, centering_policy=Adw.CenteringPolicy.STRICT)
        whole = Gtk.Box(orientation=Gtk.Orientation.VERTICAL)
        whole.append(header)
        whole.append(self._toasts)
        self.set_content(whole)
        self._saved = self._page("saved", _("Saved"), "dialog-password-symbolic")
        self._recent = self._page("recent", _("Recent Use"), "document-open-recent-symbolic")
        parts.name_inside(header, _("Saved Logins"))
        self._events: list[recent.Event] = []
        self.connect("close-request", lambda *_args: closed())
        self._shortcuts(closed)
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

    def _lost(self, reason: str) -> None:
        self._fill(self._saved, [], ("network-offline-symbolic", _("No Broker"), _("{reason}. Trying again.").format(
            reason=shown(reason[:1].upper() + reason[1:], 200))))
        self._fill(self._recent, [], ("network-offline-symbolic", _("No Broker"), _("Recent use is shown while the broker runs.")))

    def _take(self, message: Message) -> None:
        if message.get("method") == "credential/changed":
            self._ask_saved()
        elif message.get("method") == "event" and recent.is_of_interest(message.get("params") or {}):
            # An event after the subscription can also be in the file that was read.
            if message["params"] not in self._events:
                self._events = [message["params"], *self._events][:recent.EVENT_LIMIT]
                self._show_recent()
                self._ask_saved()
        elif isinstance(message.get("id"), int):
            self._broker.refuse(message["id"], -32601, "This program does not support that method.")

    def _ask_saved(self) -> None:
        self._broker.call("credential/list", {}, self._show_saved)

    # Saved

    def _show_saved(self, reply: Message) -> None:
        if "error" in reply:
            return self._fill(self._saved, [], (
                "system-lock-screen-symbolic", _("No Access"), shown(reply["error"].get("message"), 200)))
        result = reply["result"]
        credentials = sorted(result["credentials"], key=lambda one: (recent.site(one), str(one.get("user"))))
        keyring = result.get("keyring") or {}
        note = ""
        if keyring.get("state") in ("locked", "unavailable"):
            note = _("The keyring cannot be used: {reason}").format(reason=shown(keyring.get("reason"), 200))
        self._fill(self._saved, [self._saved_row(one) for one in credentials], (
            "dialog-password-symbolic", _("No Saved Logins"), _("Logins that servers have accepted are shown here.")), note)

    def _saved_row(self, one: Message) -> Adw.ActionRow:
        place, space = recent.site(one), one["protectionSpace"]
        user = texts.saved_entry(one)
        what = texts.saved(user, texts.entry_place(one))
        if space.get("realm"):
            what = _("{login} · the server says {text}").format(login=what, text=quoted(space["realm"], 40))
        row = _row(place, what)
        button = Gtk.Button(icon_name="user-trash-symbolic", valign=Gtk.Align.CENTER, tooltip_text=_("Forget"))
        button.add_css_class("flat")
        parts.name(button, _("Forget {login} at {place}").format(login=user, place=place))
        heading = _("Forget This Certificate?") if one.get("type") in ("trust", "certificate") else _("Forget This Login?")
        button.connect("clicked", lambda *_args: self._confirm(one["id"], heading, place, user))
        row.add_suffix(button)
        return row

    def _confirm(self, identifier: str, heading: str, place: str, user: str) -> None:
        """Asks for confirmation: removal from the keyring cannot be undone."""
        dialog = Adw.MessageDialog(
            transient_for=self, modal=True, heading=heading,
            body=_("{login} at {place}. If nothing else is saved for it, you will be asked again.").format(login=user, place=place))
        dialog.add_response("cancel", _("_Cancel"))
        dialog.add_response("forget", _("_Forget"))
        dialog.set_response_appearance("forget", Adw.ResponseAppearance.DESTRUCTIVE)
        dialog.set_default_response("cancel")
        dialog.set_close_response("cancel")

        def responded(_dialog: Adw.MessageDialog, response: str) -> None:
            if response == "forget":
                self._broker.call("credential/forget", {"id": identifier}, self._forgotten)

        parts.break_plainly(dialog)
        parts.name_inside(dialog, heading)
        dialog.connect("response", responded)
        dialog.present()

    def _forgotten(self, reply: Message) -> None:
        error = reply.get("error")
        self._toast(_("Cannot forget: {reason}").format(reason=shown(error.get("message"), 200)) if error else _("Forgotten"))
        self._ask_saved()

    # Recent use

    def _show_recent(self) -> None:
        rows = [_row(recent.what(event), recent.who(event)) for event in self._events]
        self._fill(self._recent, rows, (
            "document-open-recent-symbolic", _("No Recent Use"), _("Uses of your logins by programs are shown here.")))

    # Parts

    def _page(self, identifier: str, title: str, icon: str) -> Adw.Bin:
        page = Adw.Bin()
        added = self._stack.add_titled(page, identifier, title)
        added.set_icon_name(icon)
        return page

    def _fill(self, page: Adw.Bin, rows: list[Gtk.Widget], empty: tuple[str, str, str], note: str = "") -> None:
        box = Gtk.Box(
            orientation=Gtk.Orientation.VERTICAL, spacing=12, margin_top=18, margin_bottom=18, margin_start=12, margin_end=12)
        if note:
            box.append(parts.notice(note, "dim-label", "dialog-information-symbolic"))
        title_of_page = _("Saved Logins") if page is self._saved else _("Recent Use")
        if rows:
            frame = parts.boxed(*rows)
            parts.name(frame, title_of_page)
            box.append(frame)
        else:
            icon, title, description = empty
            # A status page parses its description as markup.
            box.append(Adw.StatusPage(
                icon_name=icon, title=title, description=GLib.markup_escape_text(description), vexpand=True))
        page.set_child(Gtk.ScrolledWindow(
            hscrollbar_policy=Gtk.PolicyType.NEVER, child=Adw.Clamp(maximum_size=640, child=box)))
        parts.name_inside(page, title_of_page)

    def _toast(self, text: str) -> None:
        self._toasts.add_toast(Adw.Toast(title=GLib.markup_escape_text(text)))

    def _shortcuts(self, closed: Callable[[], None]) -> None:
        keys = Gtk.ShortcutController(scope=Gtk.ShortcutScope.MANAGED)

        def shown_page(name: str) -> bool:
            self._stack.set_visible_child_name(name)
            return True

        actions: dict[str, Callable[[], Any]] = {
            "<Control>w|Escape": closed, "<Alt>s": lambda: shown_page("saved"), "<Alt>r": lambda: shown_page("recent")}
        for trigger, act in actions.items():
            keys.add_shortcut(Gtk.Shortcut(
                trigger=Gtk.ShortcutTrigger.parse_string(trigger),
                action=Gtk.CallbackAction.new(lambda *_, act=act: bool(act()) or True)))
        self.add_controller(keys)


def _row(title: str, subtitle: str) -> Adw.ActionRow:
    # guard: agent-saved-host
    row = Adw.ActionRow(use_markup=False, title=title, subtitle=subtitle, title_lines=0, subtitle_lines=0, activatable=False)
    parts.break_plainly(row)
    parts.name(row, _("{title}: {text}").format(title=title, text=subtitle))
    return row
