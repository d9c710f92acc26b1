"""The dialogues that lock and unlock the broker."""
from typing import Callable

from gi.repository import Adw

from ..connection import Message
from ..escaping import shown
from ..messages import _
from . import buffers, parts
from .saved_page import Call


class Locking:
    """Locks and unlocks the broker, if needed with a passphrase. `changed` is called after each reply."""

    def __init__(self, window: Adw.Window, call: Call, changed: Callable[[], None], toast: Callable[[str], None]) -> None:
        self._window, self._call, self._changed, self._toast = window, call, changed, toast

    def lock(self) -> None:
        """Asks for confirmation, because the logins of the session are forgotten."""
        self._ask(
            _("Lock Saved Logins?"), _("No program can use them until you unlock them. The logins of this session are forgotten."),
            _("_Passphrase to unlock, if you want one"), _("_Lock"), "broker/lock", self._locked)

    def unlock(self) -> None:
        """Unlocks, and asks for the passphrase if there is one."""
        self._call("broker/unlock", {}, self._unlocked)

    def _locked(self, reply: Message) -> None:
        if "error" in reply:
            self._toast(_("Cannot lock: {reason}").format(reason=shown(reply["error"].get("message"), 200)))
        self._changed()

    def _unlocked(self, reply: Message) -> None:
        error = reply.get("error")
        if error:
            self._ask(_("Unlock Saved Logins"), _problem(error), _("_Passphrase"), _("_Unlock"), "broker/unlock", self._tried)
        self._changed()

    def _tried(self, reply: Message) -> None:
        error = reply.get("error") or {}
        if (error.get("data") or {}).get("kind") == "locked":
            reply = {"error": {"message": _("The passphrase is wrong. Wait a few seconds before you try again.")}}
        self._unlocked(reply)

    def _ask(self, heading: str, body: str, title: str, act: str, method: str, then: Callable[[Message], None]) -> None:
        dialog = Adw.MessageDialog(transient_for=self._window, modal=True, heading=heading, body=body)
        field = parts.Field(title, is_secret=True)
        dialog.set_extra_child(field)
        dialog.add_response("cancel", _("_Cancel"))
        dialog.add_response("act", act)
        is_lock = method == "broker/lock"
        dialog.set_response_appearance("act", Adw.ResponseAppearance.DESTRUCTIVE if is_lock else Adw.ResponseAppearance.SUGGESTED)
        dialog.set_default_response("act")
        dialog.set_close_response("cancel")

        def responded(_dialog: Adw.MessageDialog, response: str) -> None:
            secret = buffers.take(field.entry)
            if response == "act":
                self._call(method, {"passphrase": secret} if len(secret) else {}, then)
            secret.wipe()

        parts.finish(dialog)
        dialog.connect("response", responded)
        dialog.present()
        field.entry.grab_focus()


def _problem(error: Message) -> str:
    """Returns why the broker is still locked."""
    known = {
        "locked": _("The passphrase of the lock is needed."),
        "busy": _("That was too soon after a wrong passphrase. Wait a few seconds before you try again.")}
    return known.get((error.get("data") or {}).get("kind"), "") or shown(error.get("message"), 200)
