"""A small Secret Service (https://specifications.freedesktop.org/secret-service/), which can misbehave.

    DBUS_SESSION_BUS_ADDRESS=... /usr/bin/python3 secret_service.py [--misbehave HOW] [--item JSON]... [--log FILE]

Prints "ready" when it has its name. For private buses only. One collection, which is the default one. Needs
python3-dbus, python3-gi and python3-cryptography.
"""
import argparse
import json
import os

import dbus
import dbus.lowlevel
import dbus.mainloop.glib
import dbus.service
from gi.repository import GLib
from secret_objects import ALIAS, COLLECTION, ROOT, Collection, Item, Prompt, Service, Session
from secret_session import Encryption, Plain

NAME = "org.freedesktop.secrets"
MISBEHAVIOURS = {
    "empty": "a default collection without items",
    "locked": "items exist but are locked, and the window to unlock them stays open until it is dismissed",
    "dismiss": "locked; the window to unlock is dismissed at once",
    "ask": "locked; the window to unlock is answered at once",
    "stall": "never answers anything after OpenSession",
    "mute": "never answers anything",
    "die": "exits in the middle of SearchItems",
    "plain": "cannot encrypt",
    "forget": "forgets a session after one secret",
    "bare": "there is no default collection",
}
SOME_ITEM = {
    "label": "Rig", "secret": "open sesame",
    "attributes": {"xdg:schema": "org.gnome.keyring.NetworkPassword", "server": "example.org", "user": "alice"},
}


class Error(dbus.DBusException):
    def __init__(self, name, text=""):
        super().__init__(text, name=name)


class Rig:
    def __init__(self, bus, how, items, log):
        self.bus, self.how, self.log = bus, how, log
        self.locked = how in ("locked", "dismiss", "ask")
        self.sessions, self.session_count, self.prompts, self.item_count = {}, 0, 0, 0
        self.objects = [Service(self), Collection(self, COLLECTION)]
        if how != "bare":
            self.objects.append(Collection(self, ALIAS))
        self.items = [Item(self, item["label"], item["attributes"], item["secret"].encode()) for item in items]
        bus.add_message_filter(self.look_at)

    def look_at(self, _, message):
        """Records each call and misbehaves, before dbus-python dispatches the call."""
        handled, pending = dbus.lowlevel.HANDLER_RESULT_HANDLED, dbus.lowlevel.HANDLER_RESULT_NOT_YET_HANDLED
        if not isinstance(message, dbus.lowlevel.MethodCallMessage):
            return pending
        method = message.get_member()
        if self.log:
            self.log.write(f"{message.get_interface()}.{method} {message.get_path()}\n")
            self.log.flush()
        if self.how == "mute" or (self.how == "stall" and self.sessions):
            return handled
        if self.how == "die" and method == "SearchItems":
            os._exit(1)
        return pending

    def open_session(self, algorithm, argument):
        self.session_count += 1
        path = f"{ROOT}/session/s{self.session_count}"
        if algorithm == "plain":
            encryption, answer = Plain(), dbus.String("")
        elif algorithm == "dh-ietf1024-sha256-aes128-cbc-pkcs7" and self.how != "plain":
            encryption = Encryption(bytes(argument))
            answer = dbus.ByteArray(encryption.public)
        else:
            raise Error("org.freedesktop.DBus.Error.NotSupported", "no such algorithm")
        self.sessions[path] = encryption, Session(self.bus, path)
        return answer, path

    def session(self, path):
        if path not in self.sessions:
            raise Error("org.freedesktop.Secret.Error.NoSession", "no such session")
        return self.sessions[path][0]

    def pack(self, session, clear):
        vector, hidden = self.session(session).encrypt(clear)
        if self.how == "forget":
            del self.sessions[session]
        return dbus.ObjectPath(session), dbus.ByteArray(vector), dbus.ByteArray(hidden), "text/plain"

    def unpack(self, secret):
        return self.session(secret[0]).decrypt(bytes(secret[1]), bytes(secret[2]))

    def find(self, attributes):
        return [item.path for item in self.items if attributes.items() <= item.attributes.items()]

    def require_unlocked(self):
        if self.locked:
            raise Error("org.freedesktop.Secret.Error.IsLocked", "locked")

    def unlock_prompt(self):
        def unlock():
            self.locked = False
            return dbus.Array([COLLECTION], "o")
        return Prompt(self, {"dismiss": False, "ask": True}.get(self.how), unlock).path


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--misbehave", choices=MISBEHAVIOURS, help="; ".join(f"{how}: {what}" for how, what in MISBEHAVIOURS.items()))
    parser.add_argument(
        "--item", action="append", type=json.loads,
        help='{"label": "...", "attributes": {...}, "secret": "..."}; without any there is one for example.org')
    parser.add_argument("--log", type=argparse.FileType("a"), help="where to write each call down")
    options = parser.parse_args()
    dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
    bus = dbus.SessionBus()
    rig = Rig(bus, options.misbehave, [] if options.misbehave == "empty" else options.item or [SOME_ITEM], options.log)
    name = dbus.service.BusName(NAME, bus, do_not_queue=True)
    print("ready", flush=True)
    GLib.MainLoop().run()
    return rig, name


if __name__ == "__main__":
    main()
