"""Shows windows of the agent one after the other. As a program, it reads a line with a message for each, prints what `description` returns,
and keeps the window until the next line.

A message is a question, with `expand` to show its details, or `{"row":[…]}` for a row of the saved logins, or
`{"saved":…,"events":[…],"page":…}` for a page of the saved logins, with this result or reply of `credential/list` and these audit records;
also with `grants`, the list of `grant/list`, and `configuration`, the path of the settings. With `dialogue` that shows `add`, `lock`,
`unlock`, or `forget` for the first login, and with `lost` there is no broker. In a question, `changes` replaces fields that the agent adds,
and `certificates` those in the usual folders. A login in the browser ends `expires_in` seconds from now; with `opened` its window is as
after its button was pressed. `{"wait":true}` describes the current window again, after its initial delay.
The arguments `rtl` and `text=2` set the direction of the layout and the size of text; `po=FILE` sets the catalogue. With
`behind` the windows do not have the focus until they are brought to the front, which no window manager of the tests can do."""
import dataclasses
import datetime
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "contrib" / "agent"))

from gi.repository import GLib  # noqa: E402
from catalogues import compiled  # noqa: E402
from watchword_agent import certificate_choices, messages, places, x509  # noqa: E402
from watchword_agent.question import read  # noqa: E402
from watchword_agent.windows import toolkit  # noqa: E402

toolkit.start()

from gi.repository import Adw, Gdk, Gtk, Pango  # noqa: E402
from watchword_agent.windows import base, parts, saved  # noqa: E402
from watchword_agent.windows.presenter import WindowPresenter  # noqa: E402

# How often, and how many times, it is checked whether a window is laid out.
LAYOUT_LOOK_MS, LAYOUT_LOOKS = 20, 300
ON_FILES, CONFIGURATION_FILE = certificate_choices.on_files, places.configuration_file


def present(window):
    if window.get_mapped():
        window.is_in_front = True
        window.notify("is-active")
    Gtk.Window.present(window)


def toolkit_settings():
    if "rtl" in sys.argv:
        Gtk.Widget.set_default_direction(Gtk.TextDirection.RTL)
    for word in sys.argv:
        if word.startswith("po="):
            messages.use(compiled(word[3:]))
            toolkit.follow_language()
    if "behind" in sys.argv:
        base.QuestionWindow.is_active = lambda window: getattr(window, "is_in_front", False)
        base.QuestionWindow.present = present
    if "text=2" in sys.argv:
        Gtk.Settings.get_default().set_property("gtk-xft-dpi", 2 * 96 * 1024)


def children(widget):
    child = widget.get_first_child()
    while child:
        yield child
        child = child.get_next_sibling()


def below(widget):
    yield widget
    for child in children(widget):
        yield from below(child)


def keys(window):
    """Returns the Alt key and the title of each visible widget."""
    return [(Gdk.keyval_name(Gdk.keyval_to_lower(label.get_mnemonic_keyval())), label.get_text()) for label in below(window)
            if isinstance(label, Gtk.Label) and label.get_mnemonic_keyval() != Gdk.KEY_VoidSymbol and label.get_child_visible()]


def labels(window):
    return [label for label in below(window) if isinstance(label, Gtk.Label) and label.get_mapped()]


def cut(window):
    return [label.get_text() for label in labels(window) if label.get_layout().is_ellipsized()]


def hyphenated(window):
    """Returns the labels that wrap and may get hyphens at line breaks."""
    def plain(label):
        attributes = label.get_attributes()
        return attributes is not None and any(one.klass.type == Pango.AttrType.INSERT_HYPHENS for one in attributes.get_attributes())

    return [label.get_text() for label in labels(window) if label.get_layout().get_line_count() > 1 and not plain(label)]


def is_laid_out(window, expand):
    """Whether the window has its size. The window manager grants it a moment after the window has asked for it."""
    kinds = lambda kind: [widget for widget in below(window) if isinstance(widget, kind)]  # noqa: E731
    if not window.get_height() or expand and any(not one.inside.get_height() for one in kinds(parts.Details)):
        return False
    # The switcher of the pages moves to the bottom a moment after the window is too narrow for it.
    if any(bar.get_reveal() != title.get_title_visible() for bar, title in zip(kinds(Adw.ViewSwitcherBar), kinds(Adw.ViewSwitcherTitle))):
        return False
    whole = content(window)
    return whole.get_height() >= whole.measure(Gtk.Orientation.VERTICAL, whole.get_width()).minimum


def content(window):
    return window.get_content() if isinstance(window, Adw.Window) else window.get_child()


def outside(window):
    """Returns the controls and labels that are not inside the window, or beside what scrolls."""
    found = []
    whole = content(window)
    for widget in below(whole):
        if not isinstance(widget, (Gtk.Label, Gtk.Button, Gtk.Entry, Gtk.PasswordEntry)) or not widget.get_mapped():
            continue
        scrolled = widget.get_ancestor(Gtk.ScrolledWindow)
        frame = scrolled or whole
        _, inner = widget.compute_bounds(frame)
        is_beside = inner.get_x() < -1 or inner.get_x() + inner.get_width() > frame.get_width() + 1
        is_below = inner.get_y() < -1 or inner.get_y() + inner.get_height() > frame.get_height() + 1
        if is_beside or is_below and not scrolled:
            found.append(f"{type(widget).__name__} {texts_of(widget)}")
    return found


def controls(window):
    """Returns the types of each widget that a person can operate, the most specific first, in the order of the window."""
    found = []

    def look(widget):
        types, kind = [], widget.__gtype__
        while kind.name != "GtkWidget":
            types.append(kind.name)
            kind = kind.parent
        is_whole = isinstance(widget, (Gtk.Button, Gtk.Editable, Gtk.Expander))
        if is_whole or widget.get_focusable() and not isinstance(widget, Gtk.Window):
            found.append(types)
        for child in [] if is_whole else children(widget):
            if child.get_visible() and child.get_accessible_role() is not Gtk.AccessibleRole.NONE:
                look(child)

    look(window)
    return found


def texts_of(widget):
    """Returns what a widget shows or says: label, title, placeholder, tooltip."""
    found = [widget.get_tooltip_text()]
    found += [widget.get_property(name) for name in ("label", "title", "placeholder-text") if widget.find_property(name)]
    return [text for text in found if isinstance(text, str) and text]


def dialogue(window, name):
    """Opens a dialogue of the saved logins, and returns its window."""
    if name == "forget":
        next(one for one in below(window) if isinstance(one, Gtk.Button) and one.get_icon_name() == "user-trash-symbolic").emit("clicked")
    elif name == "add":
        window._add_login()
    elif name == "lock":
        window._locking.lock()
    else:
        window._locking._unlocked({"error": {"data": {"kind": "locked"}}})
    return next(one for one in Gtk.Window.list_toplevels() if isinstance(one, Gtk.Window) and one.get_transient_for() is window)


def description(window):
    """Returns the printed facts about a window."""
    return {
        "title": window.get_title(), "keys": keys(window), "cut": cut(window), "width": window.get_width(),
        "height": window.get_height(), "hyphenated": hyphenated(window), "outside": outside(window), "screen": parts.screen_size(),
        "controls": controls(window), "texts": [text for widget in below(window) for text in texts_of(widget)],
        "heading_scrolls": any(one.has_css_class("title-2") and one.get_ancestor(Gtk.ScrolledWindow) for one in labels(window)),
        "is_right_to_left": window.get_direction() is Gtk.TextDirection.RTL}


def use_files(message):
    """Replaces files of the user by those of the message."""
    found = [certificate_choices.Choice(path, "", certificate_choices.FOLDER, x509.Summary(subject, issuer, expiry), (issuer,))
             for path, subject, issuer, expiry in message.get("certificates", ())]
    certificate_choices.on_files = (lambda *_: found) if found else ON_FILES
    places.configuration_file = (lambda: message["configuration"]) if "configuration" in message else CONFIGURATION_FILE


def show_saved(message):
    """Shows the window of the saved logins; returns it and the dialogue in front of it."""
    window = saved.SavedWindow("/nowhere/socket", lambda: None)
    window._broker.on_lost = lambda reason: None
    if "lost" in message:
        window._lost(messages._(message["lost"]))
    else:
        window._events = message["events"]
        window._show_recent()
        window._show_saved(message["saved"] if "error" in message["saved"] else {"result": message["saved"]})
        window._permissions.show_reply({"result": {"grants": message.get("grants", [])}})
    window._stack.set_visible_child_name(message["page"])
    window.present()
    return [window, dialogue(window, message["dialogue"])] if message.get("dialogue") else [window]


def main():
    toolkit_settings()
    presenter, loop = WindowPresenter(), GLib.MainLoop()
    rows = []

    def mapped(window, expand):
        for widget in below(window) if expand else ():
            if isinstance(widget, Gtk.Expander):
                widget.set_expanded(True)

        def report():
            nonlocal waited
            waited += 1
            # What is cut or outside may be so only while the parts of the window move. A window that stays so is reported as it is.
            if waited < LAYOUT_LOOKS and (not is_laid_out(window, expand) or cut(window) or outside(window)):
                return GLib.SOURCE_CONTINUE
            print(json.dumps(description(window)), flush=True)
            return GLib.SOURCE_REMOVE

        waited = 0
        GLib.timeout_add(LAYOUT_LOOK_MS, report)

    def calm():
        """Reports when the initial delay is over, and the window is drawn as it stays."""
        if presenter._window and not rows and not presenter._window._is_calm:
            return GLib.SOURCE_CONTINUE
        window = rows[-1] if rows else presenter._window
        GLib.timeout_add(LAYOUT_LOOK_MS, lambda: print(json.dumps(description(window)), flush=True))
        return GLib.SOURCE_REMOVE

    def came(*_):
        line = sys.stdin.readline()
        if not line:
            loop.quit()
            return GLib.SOURCE_REMOVE
        message = json.loads(line)
        if "wait" in message:
            GLib.timeout_add(LAYOUT_LOOK_MS, calm)
            return GLib.SOURCE_CONTINUE
        presenter.withdraw()
        while rows:
            rows.pop().destroy()
        use_files(message)
        if "saved" in message:
            rows.extend(show_saved(message))
        elif "row" in message:
            rows.append(Gtk.Window(default_width=400, child=parts.boxed(saved._row(*message["row"]))))
            rows[0].present()
        else:
            if "expires_in" in message:
                end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=message["expires_in"])
                message["params"]["login"]["expiresAt"] = end.strftime("%Y-%m-%dT%H:%M:%SZ")
            question = dataclasses.replace(read(message, 0), **message.get("changes", {}))
            presenter.present(question, message.get("waiting", 0), lambda answer: None, lambda reason: None)
            if message.get("opened"):
                presenter._window.wait_for_login()
        mapped(rows[-1] if rows else presenter._window, message.get("expand"))
        return GLib.SOURCE_CONTINUE

    GLib.io_add_watch(0, GLib.PRIORITY_DEFAULT, GLib.IOCondition.IN | GLib.IOCondition.HUP, came)
    loop.run()


if __name__ == "__main__":
    main()
