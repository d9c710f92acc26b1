"""Initialises GTK, if there is a display and the libraries are installed."""
import gi

from .. import messages

_READY = False


class NoWindows(Exception):
    """Windows are not available; the message is the reason."""


def start() -> None:
    """Initialises GTK and libadwaita once per process; raises `NoWindows`."""
    global _READY
    if _READY:
        return
    try:
        gi.require_version("Gtk", "4.0")
        gi.require_version("Adw", "1")
        from gi.repository import Adw, Gdk, GLib, Gtk
    except (ImportError, ValueError) as problem:
        raise NoWindows(f"GTK 4 or libadwaita is missing ({problem}); install gir1.2-gtk-4.0 and gir1.2-adw-1") from None
    # The name of the desktop file, from which the desktop takes the icon and the name that it shows.
    GLib.set_prgname("watchword-agent")
    GLib.set_application_name("Watchword")
    if not Gtk.init_check() or Gdk.Display.get_default() is None:
        raise NoWindows("no display found; set DISPLAY or WAYLAND_DISPLAY")
    Adw.init()
    provider = Gtk.CssProvider()
    provider.load_from_data(_STYLE.encode())
    Gtk.StyleContext.add_provider_for_display(Gdk.Display.get_default(), provider, Gtk.STYLE_PROVIDER_PRIORITY_APPLICATION)
    follow_language()
    _READY = True


def follow_language() -> None:
    """Lays the windows out in the direction of the language of their texts, which is not always that of GTK's own."""
    from gi.repository import Gtk
    Gtk.Widget.set_default_direction(Gtk.TextDirection.RTL if messages.is_right_to_left() else Gtk.TextDirection.LTR)


_STYLE = """
.question-icon { min-width: 64px; min-height: 64px; border-radius: 32px; }
.question-icon.calm { background: alpha(@accent_bg_color, .15); color: @accent_color; }
.question-icon.alarm { background: alpha(@error_bg_color, .15); color: @error_color; }
.question-icon.unsure { background: alpha(@warning_bg_color, .2); color: @warning_color; }
.quotation { font-style: italic; padding: 6px 12px; border-left: 3px solid alpha(currentColor, .3); }
.quotation:dir(rtl) { border-left: none; border-right: 3px solid alpha(currentColor, .3); }
.notice { border-radius: 12px; padding: 9px 12px; }
.notice.warning { background: alpha(@warning_bg_color, .2); }
.notice.error { background: alpha(@error_bg_color, .15); }
.pick { padding: 6px 12px; }
.facts { padding: 9px 12px; font-size: 92%; }
.question > scrollbar { background: none; border: none; }
.details expander { margin: 0 6px; }
.details expander-widget > box > title { padding: 9px 12px; }
.details .facts { padding-top: 0; }
.details button { margin: 0 12px 12px 12px; }
.fingerprint { font-family: monospace; font-size: 90%; }
.user-code { font-family: monospace; font-size: 200%; font-weight: bold; }
"""
