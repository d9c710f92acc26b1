"""Takes the text out of a password field without creating a Python string, which could not be overwritten."""
import ctypes

from gi.repository import Gtk

from ..secret import Secret


def _library() -> ctypes.CDLL:
    library = ctypes.CDLL("libgtk-4.so.1")
    library.gtk_entry_buffer_get_text.restype = ctypes.c_void_p
    library.gtk_entry_buffer_get_text.argtypes = [ctypes.c_void_p]
    library.gtk_entry_buffer_get_bytes.restype = ctypes.c_size_t
    library.gtk_entry_buffer_get_bytes.argtypes = [ctypes.c_void_p]
    return library


def _pointer(buffer: Gtk.EntryBuffer) -> int:
    address = ctypes.pythonapi.PyCapsule_GetPointer
    address.restype, address.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return address(buffer.__gpointer__, None)


def take(entry: Gtk.PasswordEntry) -> Secret:
    """Returns the text of the field, and clears the field. GTK stores the text in locked memory, which it overwrites."""
    buffer = entry.get_delegate().get_buffer()
    assert isinstance(buffer, Gtk.PasswordEntryBuffer), "the password field has no locked memory"
    library, pointer = _library(), _pointer(buffer)
    content = bytearray(library.gtk_entry_buffer_get_bytes(pointer))
    if content:
        target = (ctypes.c_char * len(content)).from_buffer(content)
        ctypes.memmove(target, library.gtk_entry_buffer_get_text(pointer), len(content))
        del target
    entry.set_text("")
    return Secret(content)
