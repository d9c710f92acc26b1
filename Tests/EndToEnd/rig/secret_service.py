"""A small Secret Service (https://specifications.freedesktop.org/secret-service/), which can misbehave.

    DBUS_SESSION_BUS_ADDRESS=... /usr/bin/python3 secret_service.py [--misbehave HOW] [--item JSON]... [--log FILE]

Prints "ready" when it has its name. For private buses only. One collection, which is the default one. Needs python3-secretstorage.
"""
import argparse
import json
import os
import time

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from jeepney import DBusAddress, HeaderFields, MessageType, new_error, new_method_return, new_signal
from jeepney.bus_messages import message_bus
from jeepney.io.blocking import open_dbus_connection
from secretstorage.dhcrypto import Session
from secretstorage.util import format_secret

NAME, ROOT = "org.freedesktop.secrets", "/org/freedesktop/secrets"
COLLECTION = ROOT + "/collection/rig"
# The path under which libsecret stores.
ALIAS = ROOT + "/aliases/default"
ITEM, SECRET = "org.freedesktop.Secret.Item", "(oayays)"
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


class Refused(Exception):
    """The name of a D-Bus error."""


class SecretService:
    """A method with the name of a D-Bus method gets the path and the arguments; it returns the signature and the values of the reply."""

    def __init__(self, bus, how, items, log):
        self.bus, self.how, self.log, self.signals = bus, how, log, []
        self.locked = how in ("locked", "dismiss", "ask")
        self.sessions, self.items, self.count = {}, {}, 0
        for item in items:
            self.add(item["label"], item["attributes"], item["secret"].encode())

    def add(self, label, attributes, secret):
        path, now = f"{COLLECTION}/{self.number()}", int(time.time())
        self.items[path] = {"Label": label, "Attributes": dict(attributes), "secret": secret, "time": now}
        return path

    def number(self):
        self.count += 1
        return self.count

    def run(self):
        while True:
            message = self.bus.receive()
            if message.header.message_type is MessageType.method_call:
                self.called(message, *map(message.header.fields.get, (HeaderFields.path, HeaderFields.interface, HeaderFields.member)))

    def called(self, message, path, interface, method):
        if self.log:
            print(f"{interface}.{method} {path}", file=self.log, flush=True)
        if self.how == "mute" or (self.how == "stall" and self.sessions):
            return
        if self.how == "die" and method == "SearchItems":
            os._exit(1)
        try:
            reply = new_method_return(message, *getattr(self, method)(path, *message.body))
        except Refused as problem:
            reply = new_error(message, str(problem))
        except (AttributeError, KeyError):
            reply = new_error(message, "org.freedesktop.DBus.Error.UnknownObject")
        for one in [reply, *self.signals]:
            self.bus.send(one)
        self.signals.clear()

    def require_unlocked(self):
        if self.locked:
            raise Refused("org.freedesktop.Secret.Error.IsLocked")

    def find(self, attributes):
        return [path for path, item in self.items.items() if attributes.items() <= item["Attributes"].items()]

    # Sessions and secrets

    def OpenSession(self, path, algorithm, argument):
        session = Session()
        session.encrypted = algorithm != "plain"
        if session.encrypted and (algorithm != "dh-ietf1024-sha256-aes128-cbc-pkcs7" or self.how == "plain"):
            raise Refused("org.freedesktop.DBus.Error.NotSupported")
        if session.encrypted:
            session.set_server_public_key(int.from_bytes(argument[1], "big"))
        session.object_path = f"{ROOT}/session/s{self.number()}"
        self.sessions[session.object_path] = session
        answer = ("ay", session.my_public_key.to_bytes(128, "big")) if session.encrypted else ("s", "")
        return "vo", (answer, session.object_path)

    def Close(self, path):
        return "", ()

    def session(self, path):
        if path not in self.sessions:
            raise Refused("org.freedesktop.Secret.Error.NoSession")
        return self.sessions[path]

    def pack(self, path, clear):
        packed = format_secret(self.session(path), clear, "text/plain")
        if self.how == "forget":
            del self.sessions[path]
        return packed

    def unpack(self, secret):
        session, (_, vector, hidden, _) = self.session(secret[0]), secret
        if not session.encrypted:
            return hidden
        cipher = Cipher(algorithms.AES(session.aes_key), modes.CBC(vector)).decryptor()
        padded = cipher.update(hidden) + cipher.finalize()
        return padded[:-padded[-1]]

    def GetSecret(self, path, session):
        self.require_unlocked()
        return SECRET, (self.pack(session, self.items[path]["secret"]),)

    def GetSecrets(self, path, paths, session):
        self.require_unlocked()
        return f"a{{o{SECRET}}}", ({one: self.pack(session, self.items[one]["secret"]) for one in paths if one in self.items},)

    def SetSecret(self, path, secret):
        self.require_unlocked()
        self.items[path]["secret"] = self.unpack(secret)
        return "", ()

    # Items

    def SearchItems(self, path, attributes):
        found = self.find(attributes)
        return ("ao", (found,)) if path != ROOT else ("aoao", ([], found) if self.locked else (found, []))

    def CreateItem(self, path, properties, secret, replace):
        self.require_unlocked()
        label, attributes, clear = properties[ITEM + ".Label"][1], properties[ITEM + ".Attributes"][1], self.unpack(secret)
        for one, item in self.items.items() if replace else ():
            if item["Attributes"] == attributes:
                item.update(Label=label, secret=clear)
                return "oo", (one, "/")
        return "oo", (self.add(label, attributes, clear), "/")

    def Delete(self, path):
        if self.locked:
            return "o", (self.prompt(),)
        del self.items[path]
        return "o", ("/",)

    def ReadAlias(self, path, name):
        return "o", (COLLECTION if name == "default" and self.how != "bare" else "/",)

    # Properties

    def properties(self, path):
        if path == ROOT:
            return {"Collections": ("ao", [COLLECTION])}
        if path == COLLECTION or path == ALIAS and self.how != "bare":
            return {"Items": ("ao", [*self.items]), "Label": ("s", "Rig"), "Locked": ("b", self.locked), "Created": ("t", 0), "Modified": ("t", 0)}
        item = self.items[path]
        return {"Locked": ("b", self.locked), "Label": ("s", item["Label"]), "Type": ("s", item["Attributes"].get("xdg:schema", "")),
                "Attributes": ("a{ss}", item["Attributes"]), "Created": ("t", item["time"]), "Modified": ("t", item["time"])}

    def Get(self, path, interface, name):
        return "v", (self.properties(path)[name],)

    def GetAll(self, path, interface):
        return "a{sv}", (self.properties(path),)

    def Set(self, path, interface, name, value):
        self.require_unlocked()
        self.items[path][name] = value[1]
        return "", ()

    # Locks and prompts

    def Unlock(self, path, paths):
        return "aoo", ([], self.prompt()) if self.locked else (paths, "/")

    def Lock(self, path, paths):
        self.locked = True
        return "aoo", (paths, "/")

    def prompt(self):
        return f"{ROOT}/prompt/p{self.number()}"

    def Prompt(self, path, window):
        if self.how in ("dismiss", "ask"):
            self.complete(path, self.how == "dismiss")
        return "", ()

    def Dismiss(self, path):
        self.complete(path, True)
        return "", ()

    def complete(self, path, dismissed):
        self.locked = self.locked and dismissed
        signal = DBusAddress(path, interface="org.freedesktop.Secret.Prompt")
        self.signals.append(new_signal(signal, "Completed", "bv", (dismissed, ("ao", [] if dismissed else [COLLECTION]))))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--misbehave", choices=MISBEHAVIOURS, help="; ".join(f"{how}: {what}" for how, what in MISBEHAVIOURS.items()))
    parser.add_argument("--item", action="append", type=json.loads,
                        help='{"label": "...", "attributes": {...}, "secret": "..."}; without any there is one for example.org')
    parser.add_argument("--log", type=argparse.FileType("a"), help="where to write each call down")
    options = parser.parse_args()
    bus = open_dbus_connection("SESSION")
    service = SecretService(bus, options.misbehave, [] if options.misbehave == "empty" else options.item or [SOME_ITEM], options.log)
    # 4: the name is not waited for; 1: it is owned.
    assert bus.send_and_get_reply(message_bus.RequestName(NAME, 4)).body == (1,), "another service has the name"
    print("ready", flush=True)
    service.run()


if __name__ == "__main__":
    main()
