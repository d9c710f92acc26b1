"""Opens an address in the browser of the desktop."""
from typing import Callable, Optional

from gi.repository import Gio, GLib

from . import hardening

_FLAGS = Gio.SubprocessFlags.STDOUT_SILENCE | Gio.SubprocessFlags.STDERR_SILENCE


def open_address(url: str, context: Optional[Gio.AppLaunchContext], failed: Callable[[], None]) -> None:
    """Opens an address that `web_address` has checked. `failed` is called if there is no browser, at once or later."""
    # A browser that is not running yet becomes a child process.
    with hardening.usual_umask():
        try:
            Gio.AppInfo.launch_default_for_uri(url, context)
        except GLib.Error:
            _run_xdg_open(url, failed)


def _run_xdg_open(url: str, failed: Callable[[], None]) -> None:
    """Runs xdg-open, which also knows $BROWSER and the desktops' own tools."""
    def ended(process: Gio.Subprocess, result: Gio.AsyncResult) -> None:
        try:
            process.wait_check_finish(result)
        except GLib.Error:
            failed()

    try:
        Gio.Subprocess.new(["xdg-open", url], _FLAGS).wait_check_async(None, ended)
    except GLib.Error:
        failed()
