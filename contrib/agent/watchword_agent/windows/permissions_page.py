"""The page of permissions: which programs may use which saved login."""
from typing import Callable

from gi.repository import Adw

from .. import grants
from ..connection import Message
from ..escaping import shown
from ..messages import _
from . import list_page
from .saved_page import Call


class PermissionsPage(list_page.ListPage):
    """Lists the recorded decisions about programs, with a button to revoke each."""

    def __init__(self, call: Call, toast: Callable[[str], None]) -> None:
        super().__init__(_("Permissions"))
        self._call, self._toast = call, toast

    def refresh(self) -> None:
        """Gets the list from the broker."""
        self._call("grant/list", {}, self.show_reply)

    def show_reply(self, reply: Message) -> None:
        """Shows a reply to `grant/list`."""
        if "error" in reply:
            return self.fill([], ("system-lock-screen-symbolic", _("No Access"), shown(reply["error"].get("message"), 200)))
        listed = sorted(reply["result"]["grants"], key=lambda one: (grants.program(one), grants.login(one)))
        self.fill([self._row(one) for one in listed], (
            "security-high-symbolic", _("No Permissions"), _("Your answers whether a program may use a saved login are shown here.")))

    def _row(self, one: Message) -> Adw.ActionRow:
        program = grants.program(one)
        row = list_page.row(program, grants.facts(one))
        row.add_suffix(list_page.icon_button(
            "user-trash-symbolic", _("Revoke"),
            _("Revoke the decision about {program}: {login}").format(program=program, login=grants.login(one)),
            lambda: self._call("grant/revoke", {"id": one["id"]}, self._revoked)))
        return row

    def _revoked(self, reply: Message) -> None:
        error = reply.get("error")
        self._toast(_("Cannot revoke: {reason}").format(reason=shown(error.get("message"), 200)) if error else _(
            "Revoked. You will be asked again."))
        self.refresh()
