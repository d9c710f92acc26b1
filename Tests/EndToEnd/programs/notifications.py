"""A notification service. As a program, it prints each call of Notify and CloseNotification as JSON; a line that it reads is the
number of a notification that a person clicks on."""
import json
import sys

from gi.repository import Gio, GLib

NAME, PATH = "org.freedesktop.Notifications", "/org/freedesktop/Notifications"
INTERFACE = """<node><interface name="org.freedesktop.Notifications">
<method name="Notify"><arg type="s" direction="in"/><arg type="u" direction="in"/><arg type="s" direction="in"/>
<arg type="s" direction="in"/><arg type="s" direction="in"/><arg type="as" direction="in"/><arg type="a{sv}" direction="in"/>
<arg type="i" direction="in"/><arg type="u" direction="out"/></method>
<method name="CloseNotification"><arg type="u" direction="in"/></method>
<signal name="ActionInvoked"><arg type="u"/><arg type="s"/></signal>
</interface></node>"""
numbers = iter(range(1, 1000))


def called(bus, sender, path, interface, method, values, invocation):
    words = values.unpack()
    if method == "Notify":
        number = next(numbers)
        said = {"shown": number, "summary": words[3], "body": words[4], "actions": words[5]}
        invocation.return_value(GLib.Variant("(u)", (number,)))
    else:
        said = {"closed": words[0]}
        invocation.return_value(None)
    print(json.dumps(said), flush=True)


def clicked(*_):
    line = sys.stdin.readline()
    if not line:
        loop.quit()
        return GLib.SOURCE_REMOVE
    bus.emit_signal(None, PATH, NAME, "ActionInvoked", GLib.Variant("(us)", (int(line), "default")))
    return GLib.SOURCE_CONTINUE


bus, loop = Gio.bus_get_sync(Gio.BusType.SESSION), GLib.MainLoop()
bus.register_object(PATH, Gio.DBusNodeInfo.new_for_xml(INTERFACE).interfaces[0], called, None, None)
Gio.bus_own_name_on_connection(bus, NAME, Gio.BusNameOwnerFlags.NONE, lambda *_: print(json.dumps({"ready": True}), flush=True), None)
GLib.io_add_watch(0, GLib.PRIORITY_DEFAULT, GLib.IOCondition.IN | GLib.IOCondition.HUP, clicked)
loop.run()
