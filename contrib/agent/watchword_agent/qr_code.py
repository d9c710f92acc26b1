"""Makes QR codes with the program qrencode, if it is installed."""
import contextlib
from typing import Callable

from gi.repository import Gio, GLib

#: The pixels of one module in the picture.
MODULE_PIXELS = 8


def make(text: str, made: Callable[[GLib.Bytes], None]) -> None:
    """Calls `made` with a PNG picture of `text`; never without qrencode, or if the text is too long."""
    # The text is not an argument, which other users could read.
    words = ["qrencode", "--type=PNG", f"--size={MODULE_PIXELS}", "--level=M", "--output=-"]
    flags = Gio.SubprocessFlags.STDIN_PIPE | Gio.SubprocessFlags.STDOUT_PIPE | Gio.SubprocessFlags.STDERR_SILENCE

    def ended(process: Gio.Subprocess, result: Gio.AsyncResult) -> None:
        with contextlib.suppress(GLib.Error):
            _, picture, _ = process.communicate_finish(result)
            if process.get_successful() and picture:
                made(picture)

    with contextlib.suppress(GLib.Error):
        Gio.Subprocess.new(words, flags).communicate_async(GLib.Bytes.new(text.encode()), None, ended)
