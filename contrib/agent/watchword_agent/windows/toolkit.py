"""Starts GTK, if there is a display and the libraries are installed."""
import gi

_READY = False


class NoWindows(Exception):
    """There can be no windows; the text says why."""


def start() -> None:
    """Once for the process."""
    global _READY
    if _READY:
        return
    try:
        gi.require_version("Gtk", "4.0")
        gi.require_version("Adw", "1")
        from gi.repository import Adw, Gdk, GLib, Gtk
    except (ImportError, ValueError) as problem:
        raise NoWindows(f"GTK 4 and libadwaita are not installed ({problem}): gir1.2-gtk-4.0, gir1.2-adw-1") from None
    # The name that the desktop's files have: windows are shown with their icon and name.
    GLib.set_prgname("watchword-agent")
    GLib.set_application_name("Watchword")
    if not Gtk.init_check() or Gdk.Display.get_default() is None:
        raise NoWindows("there is no display (DISPLAY, WAYLAND_DISPLAY)")
    Adw.init()
    provider = Gtk.CssProvider()
    provider.load_from_data(_STYLE.encode())
    Gtk.StyleContext.add_provider_for_display(Gdk.Display.get_default(), provider, Gtk.STYLE_PROVIDER_PRIORITY_APPLICATION)
    _READY = True


_STYLE = """
.question-icon { min-width: 64px; min-height: 64px; border-radius: 32px; }
.question-icon.calm { background: alpha(@accent_bg_color, .15); color: @accent_color; }
.question-icon.alarm { background: alpha(@error_bg_color, .15); color: @error_color; }
.question-icon.unsure { background: alpha(@warning_bg_color, .2); color: @warning_color; }
.quotation { font-style: italic; padding: 6px 12px; border-left: 3px solid alpha(currentColor, .3); }
.notice { border-radius: 12px; padding: 9px 12px; }
.notice.warning { background: alpha(@warning_bg_color, .2); }
.notice.error { background: alpha(@error_bg_color, .15); }
.pick { padding: 6px 12px; }
.facts { padding: 9px 12px; font-size: 92%; }
.fingerprint { font-family: monospace; font-size: 90%; }
"""
