"""The D-Bus objects of the small Secret Service; `secret_service.Rig` contains their common state."""
import time

import dbus
import dbus.service
from gi.repository import GLib

ROOT = "/org/freedesktop/secrets"
COLLECTION = ROOT + "/collection/rig"
# The path under which libsecret stores.
ALIAS = ROOT + "/aliases/default"
SERVICE, ITEM = "org.freedesktop.Secret.Service", "org.freedesktop.Secret.Item"
COLLECTION_FACE, PROMPT = "org.freedesktop.Secret.Collection", "org.freedesktop.Secret.Prompt"
SESSION, PROPERTIES = "org.freedesktop.Secret.Session", dbus.PROPERTIES_IFACE


class Thing(dbus.service.Object):
    """An object with the properties of one interface, from the method `properties`."""

    @dbus.service.method(PROPERTIES, in_signature="ss", out_signature="v")
    def Get(self, interface, name):
        return self.properties()[name]

    @dbus.service.method(PROPERTIES, in_signature="s", out_signature="a{sv}")
    def GetAll(self, interface):
        return self.properties()

    @dbus.service.method(PROPERTIES, in_signature="ssv")
    def Set(self, interface, name, value):
        self.set_property(name, value)


class Session(dbus.service.Object):
    @dbus.service.method(SESSION)
    def Close(self):
        self.remove_from_connection()


class Prompt(dbus.service.Object):
    """A prompt of the service. `answer` is True, False, or None for a user who does not react; `action` returns the result."""

    def __init__(self, rig, answer, action):
        rig.prompts += 1
        self.path, self.answer, self.action = f"{ROOT}/prompt/p{rig.prompts}", answer, action
        super().__init__(rig.bus, self.path)

    @dbus.service.method(PROMPT, in_signature="s")
    def Prompt(self, window):
        if self.answer is not None:
            GLib.idle_add(self.complete, not self.answer)

    @dbus.service.method(PROMPT)
    def Dismiss(self):
        self.complete(True)

    def complete(self, dismissed):
        self.Completed(dismissed, dbus.Array([], "o") if dismissed else self.action())
        self.remove_from_connection()

    @dbus.service.signal(PROMPT, signature="bv")
    def Completed(self, dismissed, result):
        pass


class Item(Thing):
    def __init__(self, rig, label, attributes, secret):
        rig.item_count += 1
        self.rig, self.path = rig, f"{COLLECTION}/{rig.item_count}"
        self.label, self.attributes, self.secret = label, dict(attributes), secret
        self.created = self.modified = int(time.time())
        super().__init__(rig.bus, self.path)

    def properties(self):
        return dbus.Dictionary({
            "Locked": self.rig.locked, "Label": self.label, "Type": self.attributes.get("xdg:schema", ""),
            "Attributes": dbus.Dictionary(self.attributes, "ss"),
            "Created": dbus.UInt64(self.created), "Modified": dbus.UInt64(self.modified),
        }, "sv")

    def set_property(self, name, value):
        self.rig.require_unlocked()
        if name == "Attributes":
            self.attributes = {str(key): str(text) for key, text in value.items()}
        elif name == "Label":
            self.label = str(value)

    @dbus.service.method(ITEM, in_signature="o", out_signature="(oayays)")
    def GetSecret(self, session):
        self.rig.require_unlocked()
        return self.rig.pack(session, self.secret)

    @dbus.service.method(ITEM, in_signature="(oayays)")
    def SetSecret(self, secret):
        self.rig.require_unlocked()
        self.secret = self.rig.unpack(secret)

    @dbus.service.method(ITEM, out_signature="o")
    def Delete(self):
        if self.rig.locked:
            return self.rig.unlock_prompt()
        self.rig.items.remove(self)
        self.remove_from_connection()
        return "/"


class Collection(Thing):
    def __init__(self, rig, path):
        self.rig = rig
        super().__init__(rig.bus, path)

    def properties(self):
        return dbus.Dictionary({
            "Items": dbus.Array([item.path for item in self.rig.items], "o"), "Label": "Rig",
            "Locked": self.rig.locked, "Created": dbus.UInt64(0), "Modified": dbus.UInt64(0),
        }, "sv")

    @dbus.service.method(COLLECTION_FACE, in_signature="a{ss}", out_signature="ao")
    def SearchItems(self, attributes):
        return dbus.Array(self.rig.find(attributes), "o")

    @dbus.service.method(COLLECTION_FACE, in_signature="a{sv}(oayays)b", out_signature="oo")
    def CreateItem(self, properties, secret, replace):
        self.rig.require_unlocked()
        attributes = {str(key): str(text) for key, text in properties[ITEM + ".Attributes"].items()}
        label, clear = str(properties[ITEM + ".Label"]), self.rig.unpack(secret)
        for item in self.rig.items if replace else []:
            if item.attributes == attributes:
                item.label, item.secret = label, clear
                return item.path, "/"
        item = Item(self.rig, label, attributes, clear)
        self.rig.items.append(item)
        return item.path, "/"


class Service(Thing):
    def __init__(self, rig):
        self.rig = rig
        super().__init__(rig.bus, ROOT)

    def properties(self):
        return dbus.Dictionary({"Collections": dbus.Array([COLLECTION], "o")}, "sv")

    @dbus.service.method(SERVICE, in_signature="sv", out_signature="vo")
    def OpenSession(self, algorithm, argument):
        return self.rig.open_session(algorithm, argument)

    @dbus.service.method(SERVICE, in_signature="a{ss}", out_signature="aoao")
    def SearchItems(self, attributes):
        found = dbus.Array(self.rig.find(attributes), "o")
        nothing = dbus.Array([], "o")
        return (nothing, found) if self.rig.locked else (found, nothing)

    @dbus.service.method(SERVICE, in_signature="ao", out_signature="aoo")
    def Unlock(self, paths):
        if not self.rig.locked:
            return dbus.Array(paths, "o"), "/"
        return dbus.Array([], "o"), self.rig.unlock_prompt()

    @dbus.service.method(SERVICE, in_signature="ao", out_signature="aoo")
    def Lock(self, paths):
        self.rig.locked = True
        return dbus.Array(paths, "o"), "/"

    @dbus.service.method(SERVICE, in_signature="aoo", out_signature="a{o(oayays)}")
    def GetSecrets(self, paths, session):
        self.rig.require_unlocked()
        return dbus.Dictionary(
            {item.path: self.rig.pack(session, item.secret) for item in self.rig.items if item.path in paths},
            "o(oayays)")

    @dbus.service.method(SERVICE, in_signature="s", out_signature="o")
    def ReadAlias(self, name):
        return COLLECTION if name == "default" and self.rig.how != "bare" else "/"
