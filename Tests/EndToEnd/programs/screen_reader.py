"""Reads and operates the desktop as a screen reader does (AT-SPI). As a program, for each empty line that it reads it prints the
content of the desktop, as JSON. A line `{"place":…}` clicks on the widget with this place, and with `text` types into it; the
program prints whether the widget has done it."""
import contextlib
import json
import sys
import time

import gi
gi.require_version("Atspi", "2.0")
from gi.repository import Atspi, Gio, GLib  # noqa: E402

CONTAINERS = ("panel", "filler")
LEAVES = ("label", "push button", "text", "password text", "page tab")
SILENT = ("scroll bar", "image")
REGISTRY, ROOT = "org.a11y.atspi.Registry", "/org/a11y/atspi/accessible/root"
STATES = {"sensitive": Atspi.StateType.SENSITIVE, "focused": Atspi.StateType.FOCUSED, "focusable": Atspi.StateType.FOCUSABLE,
          "pressed": Atspi.StateType.PRESSED}


def connect():
    """Connects to the accessibility bus, which starts a moment after the desktop."""
    session, end = Gio.bus_get_sync(Gio.BusType.SESSION), time.monotonic() + 15
    while True:
        try:
            address = ask(session, "org.a11y.Bus", "/org/a11y/bus", "org.a11y.Bus", "GetAddress")[0]
            flags = Gio.DBusConnectionFlags.AUTHENTICATION_CLIENT | Gio.DBusConnectionFlags.MESSAGE_BUS_CONNECTION
            return Gio.DBusConnection.new_for_address_sync(address, flags, None, None)
        except GLib.Error:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


def ask(bus, name, path, interface, method, arguments=None):
    return bus.call_sync(name, path, interface, method, arguments, None, 0, 5000).unpack()


def children_of(bus, name, path):
    return ask(bus, name, path, "org.a11y.atspi.Accessible", "GetChildren")[0]


def applications(bus):
    """Returns the bus name and the name of each registered application."""
    for name, path in children_of(bus, REGISTRY, ROOT):
        with contextlib.suppress(GLib.Error):  # it has exited meanwhile
            about = GLib.Variant("(ss)", ("org.a11y.atspi.Accessible", "Name"))
            yield name, ask(bus, name, path, "org.freedesktop.DBus.Properties", "Get", about)[0]


def known(bus, name):
    """Returns the cache of a GTK 4 application, by parent, and the widgets some of whose children are not in it: one message, while a
    request for each widget takes ten times as long."""
    children, counts = {}, {}
    for (_, path), _, (_, parent), index, count, _, title, role, _, states in ask(
            bus, name, "/org/a11y/atspi/cache", "org.a11y.atspi.Cache", "GetItems")[0]:
        role = Atspi.role_get_name(Atspi.Role(role))
        children.setdefault(parent, []).append((index, path, title, role, states))
        counts[path] = 0 if role in LEAVES or role in SILENT else count
    return children, {(path, count) for path, count in counts.items() if count > len(children.get(path, []))}


def at_once(bus, name, found):
    """Returns all widgets of a GTK 4 application. A widget is in the cache only after a request for the children of its parent.
    """
    # Closed windows stay in the cache as long as the application holds references to them.
    open_windows = {path for _, path in children_of(bus, name, ROOT)}
    children, lacking = known(bus, name)
    asked = set()
    while new := below(children, open_windows, lacking) - asked:
        asked |= new
        for path, _ in new:
            children_of(bus, name, path)
        children, lacking = known(bus, name)

    def inside(parent, window):
        for _, path, title, role, states in sorted(children.get(parent, [])):
            if role in SILENT or parent == ROOT and path not in open_windows:
                continue
            top = title if window is None else window
            if role not in CONTAINERS:
                bits = states[0] | states[1] << 32
                found.append({"window": top, "role": role, "name": title, "place": [name, path],
                              **{state: bool(bits >> int(bit) & 1) for state, bit in STATES.items()}})
            if role not in LEAVES:
                inside(path, top)

    inside(ROOT, None)


def below(children, windows, lacking):
    """Returns the items of `lacking` that are in these windows."""
    paths = list(windows)
    for path in paths:
        paths += [one[1] for one in children.get(path, [])]
    return {one for one in lacking if one[0] in paths}


def operate(bus, place, text=None):
    """Clicks on a widget of a GTK 4 application, or replaces its text."""
    if text is None:
        return ask(bus, *place, "org.a11y.atspi.Action", "DoAction", GLib.Variant("(i)", (0,)))[0]
    return ask(bus, *place, "org.a11y.atspi.EditableText", "SetTextContents", GLib.Variant("(s)", (text,)))[0]


def labels(node):
    """Returns the texts of the labels that belong to a widget."""
    return [one.get_target(index).get_name() for one in node.get_relation_set() for index in range(one.get_n_targets())
            if one.get_relation_type() == Atspi.RelationType.LABELLED_BY]


def one_by_one(wanted, found):
    """Returns the widgets of a GTK 3 application, whose cache lacks the rows of lists."""
    def describe(node, window):
        role = node.get_role_name()
        if role not in CONTAINERS and role not in SILENT:
            states = node.get_state_set()
            found.append({"window": window, "role": role, "name": node.get_name() or "", "labels": labels(node),
                          **{name: states.contains(state) for name, state in STATES.items()}})
        if role not in LEAVES and role not in SILENT:
            inside(node, window)

    def inside(node, window):
        for child in filter(None, map(node.get_child_at_index, range(node.get_child_count()))):
            with contextlib.suppress(GLib.Error):  # it has disappeared meanwhile
                describe(child, child.get_name() or "" if window is None else window)

    desktop = Atspi.get_desktop(0)
    desktop.clear_cache()
    for application in filter(None, map(desktop.get_child_at_index, range(desktop.get_child_count()))):
        if application.get_name() == wanted:
            application.clear_cache()
            inside(application, None)


def main():
    bus = connect()
    Atspi.init()
    for line in sys.stdin:
        if line.strip():
            print(json.dumps(operate(bus, **json.loads(line))), flush=True)
            continue
        found = []
        for name, title in list(applications(bus)):
            with contextlib.suppress(GLib.Error):  # it has disappeared meanwhile
                if title == "watchword-agent":
                    at_once(bus, name, found)
                elif title == "zenity":
                    one_by_one(title, found)
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
