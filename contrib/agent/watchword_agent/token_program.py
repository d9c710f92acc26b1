"""Prints the certificates on PKCS#11 tokens, one JSON object a line. A program of its own, because a token's module can hang or crash.

Uses p11-kit's library, which GTK needs anyway. The argument is the path of a module; without one, all modules of p11-kit are used
except those that only contain the system's certificate authorities."""
import base64
import ctypes
import json
import sys
from typing import Any, Iterator
from urllib.parse import quote

_OK, _CERTIFICATE, _AUTHORITY = 0, 1, 2
_CLASS, _LABEL, _VALUE, _CATEGORY, _ID = 0x0, 0x3, 0x11, 0x87, 0x102
#: The number of certificates that are printed, and the size limit of one.
LIMIT, SIZE_LIMIT_BYTES = 32, 1 << 16


class _TokenInfo(ctypes.Structure):
    """The beginning of CK_TOKEN_INFO: texts padded with blanks."""

    _fields_ = [("label", ctypes.c_char * 32), ("manufacturer", ctypes.c_char * 32), ("model", ctypes.c_char * 16),
                ("serial", ctypes.c_char * 16)]


class _Attribute(ctypes.Structure):
    """CK_ATTRIBUTE."""

    _fields_ = [("type", ctypes.c_ulong), ("value", ctypes.c_void_p), ("length", ctypes.c_ulong)]


def _library() -> ctypes.CDLL:
    library = ctypes.CDLL("libp11-kit.so.0")
    pointer, number = ctypes.c_void_p, ctypes.c_ulong
    for name, result, arguments in (
            ("p11_kit_modules_load", ctypes.POINTER(pointer), [ctypes.c_char_p, ctypes.c_int]),
            ("p11_kit_modules_initialize", number, [pointer, pointer]),
            ("p11_kit_module_load", pointer, [ctypes.c_char_p, ctypes.c_int]),
            ("p11_kit_config_option", ctypes.c_char_p, [pointer, ctypes.c_char_p]),
            ("p11_kit_iter_new", pointer, [pointer, ctypes.c_int]),
            ("p11_kit_iter_add_filter", None, [pointer, pointer, number]),
            ("p11_kit_iter_begin", None, [pointer, pointer]),
            ("p11_kit_iter_next", number, [pointer]),
            ("p11_kit_iter_get_token", ctypes.POINTER(_TokenInfo), [pointer]),
            ("p11_kit_iter_load_attributes", number, [pointer, ctypes.POINTER(_Attribute), number])):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def _modules(library: ctypes.CDLL, path: str) -> Any:
    """Returns initialized modules, as an array that ends with a null pointer."""
    if path:
        found = [library.p11_kit_module_load(path.encode(), 0)]
    else:
        loaded, found = library.p11_kit_modules_load(None, 0), []
        while loaded and loaded[len(found)]:
            found.append(loaded[len(found)])
        found = [one for one in found if library.p11_kit_config_option(one, b"trust-policy") != b"yes"]
    array = (ctypes.c_void_p * (len(found) + 1))(*found, None)
    # Removes modules that fail.
    library.p11_kit_modules_initialize(array, None)
    return array


def certificates(path: str) -> Iterator[dict[str, str]]:
    """Returns the certificates that can be read without a PIN."""
    library = _library()
    modules = _modules(library, path)
    wanted = ctypes.c_ulong(_CERTIFICATE)
    filter_ = _Attribute(_CLASS, ctypes.addressof(wanted), ctypes.sizeof(wanted))
    each = library.p11_kit_iter_new(None, 0)
    library.p11_kit_iter_add_filter(each, ctypes.byref(filter_), 1)
    library.p11_kit_iter_begin(each, modules)
    while library.p11_kit_iter_next(each) == _OK:
        attributes = (_Attribute * 4)(*(_Attribute(kind, None, 0) for kind in (_LABEL, _ID, _VALUE, _CATEGORY)))
        library.p11_kit_iter_load_attributes(each, attributes, 4)
        label, identifier, value, category = map(_bytes, attributes)
        if not value or int.from_bytes(category, sys.byteorder) == _AUTHORITY:
            continue
        token = library.p11_kit_iter_get_token(each).contents
        yield {
            "token": _padded(token.label).decode("utf-8", "replace"), "der": base64.b64encode(value).decode(),
            "uri": uri(_padded(token.label), _padded(token.serial), identifier, label)}


def uri(token: bytes, serial: bytes, identifier: bytes, label: bytes) -> str:
    """Returns a URI (RFC 7512) without a type, for both the certificate and its key. A token is named by its label if it has one,
    as a person would: the broker takes two names of one token for two tokens."""
    names = [("token", token)] if token else [("serial", serial)]
    names += [("id", identifier)] if identifier else [("object", label)]
    return "pkcs11:" + ";".join(
        f"{name}={''.join(f'%{byte:02X}' for byte in value) if name == 'id' else quote(value, safe='')}" for name, value in names)


def _bytes(attribute: _Attribute) -> bytes:
    return ctypes.string_at(attribute.value, attribute.length) if attribute.value and attribute.length <= SIZE_LIMIT_BYTES else b""


def _padded(text: bytes) -> bytes:
    return text.rstrip(b" ")


def main() -> None:
    """Prints the certificates."""
    for count, one in enumerate(certificates(sys.argv[1] if len(sys.argv) > 1 else "")):
        if count == LIMIT:
            break
        print(json.dumps(one), flush=True)


if __name__ == "__main__":
    main()
