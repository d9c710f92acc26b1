"""The page of saved logins: search, default, and removal."""
from typing import Callable, Optional

from gi.repository import Adw, Gtk

from .. import recent, saved_logins, texts
from ..connection import Message
from ..escaping import quoted, shown
from ..messages import _
from . import list_page, parts

Call = Callable[[str, Message, Callable[[Message], None]], None]


class SavedPage(list_page.ListPage):
    """Lists the saved logins. `call` sends a request to the broker, `toast` shows a short text, `unlock` ends the broker's lock, and
    `refresh` gets the list, for `show_reply`."""

    def __init__(self, call: Call, toast: Callable[[str], None], unlock: Callable[[], None], refresh: Callable[[], None]) -> None:
        super().__init__(_("Saved Logins"))
        self._call, self._toast, self._unlock, self._refresh = call, toast, unlock, refresh
        self._words = ""
        self._reply: Message = {}
        self._keyring: Message = {}
        self.is_locked = False

    def show_reply(self, reply: Message) -> None:
        """Shows a reply to `credential/list`."""
        self._reply, error = reply, reply.get("error")
        self.is_locked = bool(error) and (error.get("data") or {}).get("kind") == "locked"
        if self.is_locked:
            return self.fill([], (
                "system-lock-screen-symbolic", _("Locked"), _("No program can use a saved login, and none is added.")),
                button=parts.button(_("_Unlock"), self._unlock, "suggested-action"))
        if error:
            return self.fill([], ("system-lock-screen-symbolic", _("No Access"), shown(error.get("message"), 200)))
        result = reply["result"]
        credentials = saved_logins.in_order(result["credentials"])
        # Rows are made only for the found logins: GTK 4.8 does not tell screen readers that a row is hidden.
        found = [one for one in credentials if saved_logins.matches(one, self._words)]
        empty = ("edit-find-symbolic", _("No Results"), _("No saved login contains these words.")) if credentials else (
            "dialog-password-symbolic", _("No Saved Logins"), _("Logins that servers have accepted are shown here."))
        self.fill([self._row(one, credentials) for one in found], empty, self._keyring_note())

    def search(self, words: str) -> None:
        """Shows only the logins whose host, user or realm contains the words."""
        self._words = words
        if self._reply:
            self.show_reply(self._reply)

    def show_keyring(self, reply: Message) -> None:
        """Shows a reply to `keyring/status`: a list can be read although the keyring is locked."""
        self._keyring = reply.get("result") or {}
        if self._reply:
            self.show_reply(self._reply)

    def _keyring_note(self) -> Optional[Gtk.Widget]:
        listed = (self._reply.get("result") or {}).get("keyring") or {}
        keyring = listed if listed.get("state") in ("locked", "unavailable") else self._keyring
        if keyring.get("state") not in ("locked", "unavailable"):
            return None
        text = _("The keyring cannot be used: {reason}").format(reason=shown(keyring.get("reason"), 200))
        is_locked = keyring["state"] == "locked"
        note = parts.notice(text, "plain" if is_locked else "dim-label", "dialog-information-symbolic")
        if is_locked:
            # Below the text: beside it, large text would have no room.
            both = Gtk.Box(orientation=Gtk.Orientation.VERTICAL)
            both.append(note)
            button = parts.button(_("Unloc_k Keyring"), self._unlock_keyring)
            button.set_halign(Gtk.Align.END)
            both.append(button)
            return both
        return note

    def _unlock_keyring(self) -> None:
        def unlocked(reply: Message) -> None:
            if "error" in reply:
                self._toast(_("The keyring was not unlocked: {reason}").format(reason=shown(reply["error"].get("message"), 200)))
            else:
                self.show_keyring(reply)
            self._refresh()

        self._call("keyring/unlock", {}, unlocked)

    def _row(self, one: Message, credentials: list[Message]) -> Adw.ActionRow:
        place, space = recent.site(one), one["protectionSpace"]
        user = texts.saved_entry(one)
        what = texts.saved(user, texts.entry_place(one))
        if space.get("realm"):
            what = _("{login} · the server says {text}").format(login=what, text=quoted(space["realm"], 40))
        has_alternatives = saved_logins.has_alternatives(one, credentials)
        if has_alternatives and one.get("isDefault"):
            what = _("{login} · used by default").format(login=what)
        row = list_page.row(place, what)
        if has_alternatives and not one.get("isDefault"):
            row.add_suffix(list_page.icon_button(
                "starred-symbolic", _("Use by Default"), _("Use {login} at {place} by default").format(login=user, place=place),
                lambda: self._call("credential/setDefault", {"id": one["id"]}, self._made_default)))
        heading = _("Forget This Certificate?") if one.get("type") in ("trust", "certificate") else _("Forget This Login?")
        row.add_suffix(list_page.icon_button(
            "user-trash-symbolic", _("Forget"), _("Forget {login} at {place}").format(login=user, place=place),
            lambda: self._confirm(one["id"], heading, place, user)))
        return row

    def _made_default(self, reply: Message) -> None:
        if "error" in reply:
            self._toast(_("Cannot set the default: {reason}").format(reason=shown(reply["error"].get("message"), 200)))
        self._refresh()

    def _confirm(self, identifier: str, heading: str, place: str, user: str) -> None:
        """Asks for confirmation: removal from the keyring cannot be undone."""
        dialog = Adw.MessageDialog(
            transient_for=self.get_root(), modal=True, heading=heading,
            body=_("{login} at {place}. If nothing else is saved for it, you will be asked again.").format(login=user, place=place))
        dialog.add_response("cancel", _("_Cancel"))
        dialog.add_response("forget", _("_Forget"))
        dialog.set_response_appearance("forget", Adw.ResponseAppearance.DESTRUCTIVE)
        dialog.set_default_response("cancel")
        dialog.set_close_response("cancel")

        def responded(_dialog: Adw.MessageDialog, response: str) -> None:
            if response == "forget":
                self._call("credential/forget", {"id": identifier}, self._forgotten)

        parts.finish(dialog)
        dialog.connect("response", responded)
        dialog.present()

    def _forgotten(self, reply: Message) -> None:
        error = reply.get("error")
        self._toast(_("Cannot forget: {reason}").format(reason=shown(error.get("message"), 200)) if error else _("Forgotten"))
        self._refresh()
