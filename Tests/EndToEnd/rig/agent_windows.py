"""Shows windows of the agent one after the other. As a program: for each line that it reads, a question or `{"row":[…]}` for a row
of the saved log-ins, it prints the keys of the window that go with Alt, how large it is, and the texts that are cut or broken with
hyphens; the window stays until the next line."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "contrib" / "agent"))

from gi.repository import GLib  # noqa: E402
from watchword_agent.question import read  # noqa: E402
from watchword_agent.windows import toolkit  # noqa: E402

toolkit.start()

from gi.repository import Gdk, Gtk, Pango  # noqa: E402
from watchword_agent.windows import parts, saved  # noqa: E402
from watchword_agent.windows.presenter import WindowPresenter  # noqa: E402


def below(widget):
    yield widget
    child = widget.get_first_child()
    while child:
        yield from below(child)
        child = child.get_next_sibling()


def keys(window):
    """The letter and the title of each widget that can be seen."""
    return [(Gdk.keyval_name(Gdk.keyval_to_lower(label.get_mnemonic_keyval())), label.get_text()) for label in below(window)
            if isinstance(label, Gtk.Label) and label.get_mnemonic_keyval() != Gdk.KEY_VoidSymbol and label.get_child_visible()]


def labels(window):
    return [label for label in below(window) if isinstance(label, Gtk.Label) and label.get_child_visible()]


def cut(window):
    return [label.get_text() for label in labels(window) if label.get_layout().is_ellipsized()]


def hyphenated(window):
    """Those that have lines of their own and may get hyphens at their ends."""
    def plain(label):
        attributes = label.get_attributes()
        return attributes is not None and any(one.klass.type == Pango.AttrType.INSERT_HYPHENS for one in attributes.get_attributes())

    return [label.get_text() for label in labels(window) if label.get_layout().get_line_count() > 1 and not plain(label)]


def main():
    presenter, loop = WindowPresenter(), GLib.MainLoop()
    rows = []

    def mapped(window):
        def report():
            if not window.get_height():
                return GLib.SOURCE_CONTINUE
            print(json.dumps({"keys": keys(window), "width": window.get_width(), "height": window.get_height(), "cut": cut(window),
                              "hyphenated": hyphenated(window)}), flush=True)
            return GLib.SOURCE_REMOVE

        GLib.idle_add(report)

    def came(*_):
        line = sys.stdin.readline()
        if not line:
            loop.quit()
            return GLib.SOURCE_REMOVE
        presenter.withdraw()
        while rows:
            rows.pop().destroy()
        message = json.loads(line)
        if "row" in message:
            rows.append(Gtk.Window(default_width=400, child=parts.boxed(saved._row(*message["row"]))))
            rows[0].present()
        else:
            presenter.present(read(message, 0), 0, lambda answer: None, lambda reason: None)
        mapped(rows[0] if rows else presenter._window)
        return GLib.SOURCE_CONTINUE

    GLib.io_add_watch(0, GLib.PRIORITY_DEFAULT, GLib.IOCondition.IN | GLib.IOCondition.HUP, came)
    loop.run()


if __name__ == "__main__":
    main()
