"""A notification of the desktop about a question whose window does not have the keyboard focus."""
import contextlib
from typing import Callable, Optional

from gi.repository import Gio, GLib

from .. import texts
from ..messages import _
from ..question import Question

_NAME, _PATH = "org.freedesktop.Notifications", "/org/freedesktop/Notifications"
_URGENCY_NORMAL = 1


class Notification:
    """One notification, shown at once. Without a session bus or a notification service nothing happens."""

    def __init__(self, question: Question, chosen: Callable[[Optional[str]], None]) -> None:
        """`chosen` is called when the person clicks on it, with the desktop's activation token if there is one."""
        self._chosen = chosen
        self._number: Optional[int] = None
        self._is_withdrawn = False
        self._token: Optional[str] = None
        self._subscriptions: list[int] = []
        self._bus: Optional[Gio.DBusConnection] = None
        Gio.bus_get(Gio.BusType.SESSION, None, self._connected, question)

    def withdraw(self) -> None:
        """Removes the notification."""
        self._is_withdrawn = True
        if self._bus is None:
            return
        for one in self._subscriptions:
            self._bus.signal_unsubscribe(one)
        self._subscriptions = []
        if self._number is not None:
            self._call("CloseNotification", GLib.Variant("(u)", (self._number,)), self._closed)
            self._number = None

    def _closed(self, bus: Gio.DBusConnection, result: Gio.AsyncResult) -> None:
        """A call without a function for its result does not hold the connection, which may end before it has sent the call."""
        with contextlib.suppress(GLib.Error):
            bus.call_finish(result)

    def _connected(self, _source: object, result: Gio.AsyncResult, question: Question) -> None:
        try:
            self._bus = Gio.bus_get_finish(result)
        except GLib.Error:
            return
        if self._is_withdrawn:
            return
        for name in ("ActionInvoked", "ActivationToken"):
            self._subscriptions.append(self._bus.signal_subscribe(
                _NAME, _NAME, name, _PATH, None, Gio.DBusSignalFlags.NONE, self._signalled))
        hints = {"desktop-entry": GLib.Variant("s", "watchword-agent"), "urgency": GLib.Variant("y", _URGENCY_NORMAL)}
        # The body is parsed as markup, the summary is not.
        body = GLib.markup_escape_text(texts.asked_by(question.requester))
        self._call("Notify", GLib.Variant("(susssasa{sv}i)", (
            "Watchword", 0, "dialog-password", texts.heading(question), body, ["default", _("Answer")], hints, -1)), self._shown)

    def _shown(self, bus: Gio.DBusConnection, result: Gio.AsyncResult) -> None:
        try:
            self._number = bus.call_finish(result).unpack()[0]
        except GLib.Error:
            return
        if self._is_withdrawn:
            self.withdraw()

    def _signalled(self, _bus: object, _sender: str, _path: str, _interface: str, name: str, values: GLib.Variant) -> None:
        number, text = values.unpack()
        if number != self._number:
            return
        if name == "ActivationToken":
            self._token = text
        else:
            self._chosen(self._token)

    def _call(self, method: str, values: GLib.Variant, then: Callable[..., None]) -> None:
        assert self._bus is not None
        self._bus.call(_NAME, _PATH, _NAME, method, values, None, Gio.DBusCallFlags.NONE, -1, None, then)
