"""The answers of scripted OAuth servers: correct ones, and those of broken and hostile servers.

An answer is what a handler of rig.scripted returns, or a function that returns it for a request."""
import email.utils
import json
import time
import urllib.parse

from .scripted import CLOSE, response

#: Never answers, and keeps the connection open.
SILENT = None


def dated(status, body=b"", *headers, offset=0):
    """A response with `Date`, `offset` seconds from now."""
    return response(status, body, "Date: " + email.utils.formatdate(time.time() + offset, usegmt=True), *headers)


def json_answer(status, value, *headers):
    return dated(status, json.dumps(value).encode(), "Content-Type: application/json", "Cache-Control: no-store", *headers)


def page(status, title, *headers):
    return dated(status, f"<!doctype html><title>{title}</title>\n".encode(), "Content-Type: text/html", *headers)


def redirect(status, url):
    return dated(status, b"", f"Location: {url}")


def error(code, description=None, *headers):
    """The error response of RFC 6749 section 5.2."""
    value = {"error": code, **({"error_description": description} if description else {})}
    if code == "invalid_client":
        return json_answer(401, value, 'WWW-Authenticate: Basic realm="clients"', *headers)
    return json_answer(400, value, *headers)


def endless(request):
    """A JSON object that never ends; the connection is closed after 1 GiB, which no client may read."""
    yield b"HTTP/1.1 200 X\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"
    yield from [b"10000\r\n" + b" " * 0x10000 + b"\r\n"] * (1 << 14)
    yield CLOSE


def huge(value, size):
    """A correct JSON document of `size` bytes: `value`, and spaces."""
    return response(200, json.dumps(value).encode().ljust(size), "Content-Type: application/json")


def slowly(answer, pause):
    """Sends `answer` byte by byte, with `pause` seconds before each."""
    return lambda request: (time.sleep(pause) or bytes([byte]) for byte in answer)


def with_query(url, parameters):
    """Returns `url` with the parameters that are not None added to its query."""
    text = urllib.parse.urlencode({name: value for name, value in parameters.items() if value is not None})
    return url + ("&" if "?" in url else "?") + text


def altered(value, changes):
    """Returns a copy of the dictionary with changes: None removes an entry, and a function computes it from the old value."""
    computed = {name: change(value.get(name)) if callable(change) else change for name, change in changes.items()}
    return {name: one for name, one in {**value, **computed}.items() if name not in changes or changes[name] is not None}
