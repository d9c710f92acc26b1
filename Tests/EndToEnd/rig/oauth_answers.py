"""The base of scripted OAuth servers, with DPoP (RFC 9449), and answers: correct ones, and those of broken and hostile servers.

An answer is what a handler of rig.scripted returns, or a function that returns it for a request."""
import contextlib
import email.utils
import hashlib
import json
import secrets
import threading
import time
import traceback
import types
import urllib.parse

import jwt
from jwt.utils import base64url_encode

from .bodies import eventually
from .scripted import CLOSE, response
from .tls import TlsServer

def dated(status, body=b"", *headers):
    return response(status, body, "Date: " + email.utils.formatdate(usegmt=True), *headers)


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


def with_query(url, parameters):
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


class Site(TlsServer):
    """A server on a loopback port of its own, with http, or with https if `certificates` (of the fixture) is given.

    `problems` are the violations that correct clients never commit, and errors of the rig itself. A place is a path such as "/token",
    without the path of the issuer, or "metadata".
    """

    #: Whether several requests are processed at once.
    PARALLEL = False

    def __init__(self, certificates=None):
        self.turn, self.problems, self.proofs, self.faults, self.holds = threading.RLock(), [], Proofs(), [], []
        super().__init__(certificates, handler=self._handle)

    def config(self, **changes):
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
        return eventually(
            lambda: len(found := self.requests_to(place)) >= times and found,
            lambda: f"requests to {place}: {len(self.requests_to(place))} of {times}", seconds)

    def fail(self, place, answer, times=None, grant=None):
        """Answers the next requests to `place` (`times`, or all) with `answer` of rig.oauth_answers, or refuses them with a Refusal. With
        `grant`, only token requests with this `grant_type`."""
        self.faults.append(types.SimpleNamespace(place=place, answer=answer, times=times, grant=grant))

    @contextlib.contextmanager
    def held(self, place):
        """While the context runs, requests to `place` are recorded, but only processed when it ends, or after its `set()`."""
        event = threading.Event()
        self.holds.append((place, event))
        try:
            yield event
        finally:
            event.set()
            self.holds.remove((place, event))

    def _fault(self, request):
        with self.turn:
            for fault in self.faults:
                if self._is_at(fault.place, request) and fault.times != 0 and fault.grant in (None, request.form.get("grant_type")):
                    fault.times = fault.times and fault.times - 1
                    return fault
        return None

    def _handle(self, request):
        for place, event in list(self.holds):
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


ES256 = jwt.algorithms.get_default_algorithms()["ES256"]


def encoded(data):
    return base64url_encode(data if isinstance(data, bytes) else json.dumps(data).encode()).decode()


def signed(header, claims, key):
    """A JWS with ES256 (RFC 7518 section 3.4), also with a header that is wrong."""
    text = f"{encoded(header)}.{encoded(claims)}"
    return f"{text}.{encoded(ES256.sign(text.encode(), key))}"


def thumbprint(jwk):
    """RFC 7638."""
    return hash_of(json.dumps({name: jwk[name] for name in ("crv", "kty", "x", "y")}, separators=(",", ":")))


def hash_of(text):
    return encoded(hashlib.sha256(text.encode()).digest())


class Proofs:
    """Checks proofs as RFC 9449 section 4.3 demands. `seen` are the `jti` of all correct proofs."""

    def __init__(self):
        self.nonce, self.seen = None, set()

    def new_nonce(self):
        """Requires a new nonce from now on; a proof with the previous one is refused with `use_dpop_nonce`."""
        self.nonce = secrets.token_urlsafe(12)

    def fields(self):
        return [f"DPoP-Nonce: {self.nonce}"] if self.nonce else []

    def check(self, request, url, token=None):
        """Returns the thumbprint of the key of the request's proof, or None without a proof. With `token`, demands its hash."""
        values = [value for name, value in request.headers if name.lower() == "dpop"]
        if not values:
            return None
        try:
            jwk = jwt.get_unverified_header(values[0])["jwk"]
            proof = jwt.api_jwt.decode_complete(values[0], ES256.from_jwk(json.dumps(jwk)), ["ES256"], {"verify_iat": False})
            claims = proof["payload"]
            demands = {
                "more than one proof": len(values) == 1, "another curve": jwk["crv"] == "P-256",
                "a private key": not {"d", "k"} & set(jwk), "another type": proof["header"]["typ"] == "dpop+jwt",
                f"for {claims} and not {request.method} {url}": (claims["htm"], claims["htu"]) == (request.method, url),
                "iat is not now": abs(claims["iat"] - time.time()) <= 60, "jti was used before": claims["jti"] not in self.seen,
                "ath is not the hash of the token": token is None or claims["ath"] == hash_of(token)}
        except (KeyError, TypeError, ValueError, AttributeError, jwt.PyJWTError) as problem:
            raise Refusal("invalid_dpop_proof", f"{type(problem).__name__}: {problem}") from None
        if broken := [why for why, holds in demands.items() if not holds]:
            raise Refusal("invalid_dpop_proof", ", ".join(broken))
        if self.nonce and claims.get("nonce") != self.nonce:
            raise Refusal("use_dpop_nonce", "the nonce is not the current one")
        self.seen.add(claims["jti"])
        return thumbprint(jwk)
