"""The dialogue that adds a login."""
from typing import Any, Callable

from gi.repository import Adw, Gdk, Gtk

from .. import address, answers
from ..connection import Message
from ..escaping import shown
from ..messages import _
from . import buffers, parts
from .saved_page import Call

# The height of the header bar and the margins.
_FRAME = 120


class AddLoginWindow(Adw.Window):
    """Asks for a server, a user and a password. `call` sends a request to the broker; `added` is called when the login is stored."""

    def __init__(self, parent: Gtk.Window, call: Call, has_keyring: bool, added: Callable[[], None]) -> None:
        super().__init__(
            title=_("Add Login"), transient_for=parent, modal=True, default_width=parts.width(), resizable=False,
            accessible_role=Gtk.AccessibleRole.DIALOG)
        self._call, self._added, self._is_sent = call, added, False
        self._address = parts.Field(_("Add_ress: a host or a URL"))
        self._user = parts.Field(_("_User"))
        self._secret = parts.Field(_("_Password"), is_secret=True)
        self._realm = parts.Field(_("R_ealm, if the server has several"))
        self._unsafe = parts.notice(
            _("The password would be readable on the network: {protocol} is not encrypted").format(protocol="http"), "warning",
            "channel-insecure-symbolic")
        self._problem = parts.label("", "error")
        options = [(answers.KEEP_SESSION, _("For Th_is Session")), (answers.KEEP_KEYRING, _("In the _Keyring"))]
        self._keep = parts.Choice(
            _("Save the login"), options if has_keyring else options[:1], answers.KEEP_KEYRING if has_keyring else answers.KEEP_SESSION)
        self._lay_out()
        for field in (self._address, self._user, self._secret):
            field.entry.connect("changed", self._changed)
        self.connect("close-request", lambda _: self._secret.entry.set_text(""))
        self._changed()
        self._address.entry.grab_focus()

    def fail(self, reason: str) -> None:
        """Shows why the login is not stored."""
        self._is_sent = False
        self._problem.set_label(reason)
        self._problem.set_visible(True)
        self._changed()

    def _lay_out(self) -> None:
        self._add = parts.button(_("A_dd"), self._send, "suggested-action")
        header = Adw.HeaderBar(show_start_title_buttons=False, show_end_title_buttons=False)
        header.pack_start(parts.button(_("_Cancel"), self.close))
        header.pack_end(self._add)
        body = Gtk.Box(
            orientation=Gtk.Orientation.VERTICAL, spacing=12, margin_top=12, margin_start=24, margin_end=24, margin_bottom=24)
        for widget in (self._problem, self._address, self._unsafe, self._user, self._secret, self._realm, self._keep):
            body.append(widget)
        for hidden in (self._problem, self._unsafe):
            hidden.set_visible(False)
        whole = Gtk.Box(orientation=Gtk.Orientation.VERTICAL)
        whole.append(header)
        whole.append(Gtk.ScrolledWindow(
            hscrollbar_policy=Gtk.PolicyType.NEVER, propagate_natural_height=True, child=body, vexpand=True,
            max_content_height=max(200, parts.screen_size()[1] - _FRAME)))
        self.set_content(whole)
        parts.name_inside(whole, _("Add Login"))
        self.set_default_widget(self._add)
        keys = Gtk.ShortcutController()
        keys.add_shortcut(Gtk.Shortcut(
            trigger=Gtk.KeyvalTrigger(keyval=Gdk.KEY_Escape), action=Gtk.CallbackAction.new(lambda *_: self.close() or True)))
        self.add_controller(keys)

    def _changed(self, *_args: Any) -> None:
        text = self._address.entry.get_text()
        self._unsafe.set_visible(address.is_readable_on_the_network(text))
        # An address with a mistake is explained when it is sent.
        has_password = self._secret.entry.get_delegate().get_text_length() > 0
        self._add.set_sensitive(not self._is_sent and bool(text.strip()) and bool(self._user.entry.get_text()) and has_password)

    def _send(self) -> None:
        try:
            space = address.space(self._address.entry.get_text())
        except address.Unusable as problem:
            self._address.entry.grab_focus()
            return self.fail(str(problem))
        if realm := self._realm.entry.get_text():
            space["realm"] = realm
        secret = buffers.take(self._secret.entry)
        credential = {"type": "password", "user": self._user.entry.get_text(), "password": secret, "persistence": self._keep.chosen}
        self._is_sent = True
        self._changed()
        self._call("credential/store", {"protectionSpace": space, "credential": credential}, self._stored)
        secret.wipe()

    def _stored(self, reply: Message) -> None:
        if "error" in reply:
            self._secret.entry.grab_focus()
            return self.fail(_("The login was not stored: {reason}").format(reason=shown(reply["error"].get("message"), 200)))
        self._added()
        self.close()
