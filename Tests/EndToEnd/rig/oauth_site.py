"""The base of scripted OAuth servers: records requests, and fails as a test wants."""
import contextlib
import dataclasses
import threading
import traceback

from .bodies import eventually
from .oauth_answers import CLOSE, response
from .scripted import ScriptedServer
from .tls import TlsServer


class _Answering:
    def _respond(self, connection, request, early):
        answer = self.handler(request)
        if answer is CLOSE:
            return True
        if answer is None or isinstance(answer, bytes):
            connection.sendall(answer or b"")
            return request.header("Connection") == "close"
        for part in answer:
            connection.sendall(part)
        return True


class _Plain(_Answering, ScriptedServer):
    pass


class _Secure(_Answering, TlsServer):
    pass


@dataclasses.dataclass
class _Fault:
    place: str
    answer: object
    times: int | None
    grant: str | None


@dataclasses.dataclass
class Refusal:
    """An OAuth error that the server answers in the form that belongs to the endpoint."""
    code: str
    description: str | None = None


class Site:
    """A server on a loopback port of its own, with http, or with https if `certificates` (of the fixture) is given.

    `requests` are all requests; `problems` are the violations that correct clients never commit, and errors of the rig itself.
    A place is a path such as "/token", without the path of the issuer, or "metadata".
    """

    #: Whether several requests are processed at once.
    PARALLEL = False

    def __init__(self, certificates=None):
        self.lock, self.problems, self._faults, self._holds = threading.RLock(), [], [], []
        self.listener = _Secure(certificates, handler=self._handle) if certificates else _Plain(self._handle)
        self.port, self.url, self.close = self.listener.port, self.listener.url, self.listener.close

    @property
    def wire(self):
        return self.listener.wire

    @wire.setter
    def wire(self, value):
        self.listener.wire = value

    @property
    def requests(self):
        return list(self.listener.requests)

    @property
    def connections(self):
        return self.listener.connections

    def config(self, **changes):
        """Changes settings, whose names are the fields of `settings`; returns the server."""
        for name, value in changes.items():
            assert name in {field.name for field in dataclasses.fields(self.settings)}, f"no setting {name}"
            setattr(self.settings, name, value)
        return self

    def requests_to(self, place):
        return [request for request in self.requests if place in (self._place(request), request.path)]

    def wait_for(self, place, times=1, seconds=30):
        """Returns the requests to `place` as soon as there are `times`."""
        return eventually(
            lambda: len(found := self.requests_to(place)) >= times and found,
            lambda: f"requests to {place}: {len(self.requests_to(place))} of {times}", seconds)

    def fail(self, place, answer, times=None, grant=None):
        """Answers the next requests to `place` (`times`, or all) with `answer` of rig.oauth_answers. With `grant`, only token
        requests with this `grant_type`."""
        with self.lock:
            self._faults.append(_Fault(place, answer, times, grant))

    def refuse(self, place, code, times=None, grant=None, description=None):
        """Like `fail`, with an OAuth error: at /authorize as a redirect, elsewhere as JSON."""
        self.fail(place, Refusal(code, description), times, grant)

    def clear_faults(self):
        with self.lock:
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
        with self.lock:
            for fault in self._faults:
                fits = fault.place in (self._place(request), request.path)
                if fits and fault.times != 0 and fault.grant in (None, request.form.get("grant_type")):
                    fault.times = fault.times and fault.times - 1
                    return fault
        return None

    def _handle(self, request):
        for place, event in list(self._holds):
            if place in (self._place(request), request.path):
                event.wait(60)
        try:
            if fault := self._fault(request):
                if isinstance(fault.answer, Refusal):
                    return self._refuse(request, fault.answer)
                return fault.answer(request) if callable(fault.answer) else fault.answer
            with contextlib.nullcontext() if self.PARALLEL else self.lock:
                return self._answer(request)
        except Exception:
            self.problems.append(traceback.format_exc())
            return response(500, b"the rig failed")
