"""The answers of scripted OAuth servers: correct ones, and those of broken and hostile servers.

An answer is what a handler of rig.scripted returns, or a function that returns it for a request."""
import contextlib
import dataclasses
import email.utils
import json
import threading
import time
import traceback
import urllib.parse

from .bodies import eventually
from .scripted import CLOSE, response
from .tls import TlsServer

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


class Refusal(Exception):
    """An OAuth error that the server answers in the form that belongs to the endpoint."""

    def __init__(self, code, description=None):
        super().__init__(code)
        self.code, self.description = code, description


@dataclasses.dataclass
class _Fault:
    place: str
    answer: object
    times: int | None
    grant: str | None


class Site(TlsServer):
    """A server on a loopback port of its own, with http, or with https if `certificates` (of the fixture) is given.

    `problems` are the violations that correct clients never commit, and errors of the rig itself. A place is a path such as "/token",
    without the path of the issuer, or "metadata".
    """

    #: Whether several requests are processed at once.
    PARALLEL = False

    def __init__(self, certificates=None):
        self.turn, self.problems, self._faults, self._holds = threading.RLock(), [], [], []
        super().__init__(certificates, handler=self._handle)

    def config(self, **changes):
        """Changes settings; returns the server."""
        assert set(changes) <= set(vars(self.settings)), f"unknown settings: {changes}"
        vars(self.settings).update(changes)
        return self

    def _place(self, request):
        return request.path

    def _refuse(self, request, refusal):
        return error(refusal.code, refusal.description)

    def _is_at(self, place, request):
        return place in (self._place(request), request.path)

    def requests_to(self, place):
        return [request for request in list(self.requests) if self._is_at(place, request)]

    def wait_for(self, place, times=1, seconds=30):
        """Returns the requests to `place` as soon as there are `times`."""
        return eventually(
            lambda: len(found := self.requests_to(place)) >= times and found,
            lambda: f"requests to {place}: {len(self.requests_to(place))} of {times}", seconds)

    def fail(self, place, answer, times=None, grant=None):
        """Answers the next requests to `place` (`times`, or all) with `answer` of rig.oauth_answers. With `grant`, only token
        requests with this `grant_type`."""
        self._faults.append(_Fault(place, answer, times, grant))

    def refuse(self, place, code, times=None, grant=None, description=None):
        """Like `fail`, with an OAuth error: at /authorize as a redirect, elsewhere as JSON."""
        self.fail(place, Refusal(code, description), times, grant)

    def clear_faults(self):
        self._faults.clear()

    @contextlib.contextmanager
    def held(self, place):
        """While the context runs, requests to `place` are recorded, but only processed when it ends, or after its `set()`."""
        event = threading.Event()
        self._holds.append((place, event))
        try:
            yield event
        finally:
            event.set()
            self._holds.remove((place, event))

    def _fault(self, request):
        with self.turn:
            for fault in self._faults:
                if self._is_at(fault.place, request) and fault.times != 0 and fault.grant in (None, request.form.get("grant_type")):
                    fault.times = fault.times and fault.times - 1
                    return fault
        return None

    def _handle(self, request):
        for place, event in list(self._holds):
            if self._is_at(place, request):
                event.wait(60)
        try:
            if fault := self._fault(request):
                if isinstance(fault.answer, Refusal):
                    raise fault.answer
                return fault.answer(request) if callable(fault.answer) else fault.answer
            with contextlib.nullcontext() if self.PARALLEL else self.turn:
                return self._answer(request)
        except Refusal as refusal:
            return self._refuse(request, refusal)
        except Exception:
            self.problems.append(traceback.format_exc())
            return response(500, b"the rig failed")
