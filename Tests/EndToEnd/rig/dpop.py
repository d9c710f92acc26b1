"""DPoP proofs (RFC 9449): a server's checks, and a client that makes proofs, right and wrong."""
import hashlib
import json
import secrets
import time
import urllib.parse

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.utils import base64url_encode

from .oauth_answers import Refusal

ES256 = jwt.algorithms.get_default_algorithms()["ES256"]


def encoded(data):
    return base64url_encode(data if isinstance(data, bytes) else json.dumps(data).encode()).decode()


def signed(header, claims, key):
    """A JWS with ES256 (RFC 7518 section 3.4), also with a header that is wrong."""
    text = f"{encoded(header)}.{encoded(claims)}"
    return f"{text}.{encoded(ES256.sign(text.encode(), key))}"


def thumbprint(jwk):
    """RFC 7638."""
    members = {name: jwk[name] for name in ("crv", "kty", "x", "y")}
    return encoded(hashlib.sha256(json.dumps(members, separators=(",", ":")).encode()).digest())


def hash_of(text):
    return encoded(hashlib.sha256(text.encode()).digest())


class Proofs:
    """Checks proofs as RFC 9449 section 4.3 demands. `seen` are the `jti` of all correct proofs."""

    def __init__(self):
        self.nonce, self.seen = None, set()

    def new_nonce(self):
        """Requires a new nonce from now on; a proof with the previous one is refused with `use_dpop_nonce`."""
        self.nonce = secrets.token_urlsafe(12)
        return self.nonce

    def fields(self):
        """The field with the nonce, if one is required."""
        return [f"DPoP-Nonce: {self.nonce}"] if self.nonce else []

    def check(self, request, url, token=None):
        """Returns the thumbprint of the key of the request's proof, or None without a proof. With `token`, demands its hash."""
        values = [value for name, value in request.headers if name.lower() == "dpop"]
        if not values:
            return None
        try:
            jwk = jwt.get_unverified_header(values[0])["jwk"]
            # No member may belong to a private key.
            assert len(values) == 1 and jwk["crv"] == "P-256" and not {"d", "k"} & set(jwk), f"more than one proof, or the key {jwk}"
            proof = jwt.api_jwt.decode_complete(values[0], ES256.from_jwk(json.dumps(jwk)), ["ES256"], {"verify_iat": False})
            header, claims = proof["header"], proof["payload"]
            assert header["typ"] == "dpop+jwt", f"the type is {header['typ']}"
            assert (claims["htm"], claims["htu"]) == (request.method, url), f"for {claims} and not {request.method} {url}"
            assert abs(claims["iat"] - time.time()) <= 60, "iat is not now"
            assert claims["jti"] not in self.seen, "jti was used before"
            assert token is None or claims["ath"] == hash_of(token), "ath is not the hash of the token"
        except (AssertionError, KeyError, TypeError, ValueError, jwt.PyJWTError) as problem:
            raise Refusal("invalid_dpop_proof", f"{type(problem).__name__}: {problem}") from None
        if self.nonce and claims.get("nonce") != self.nonce:
            raise Refusal("use_dpop_nonce", "the nonce is not the current one")
        self.seen.add(claims["jti"])
        return thumbprint(jwk)


class Prover:
    """A client's key. `proof(...)` makes a proof; `changes` are claims that are different, None for those that are missing."""

    def __init__(self):
        self.key = ec.generate_private_key(ec.SECP256R1())
        numbers = self.key.public_key().public_numbers()
        places = {name: encoded(value.to_bytes(32, "big")) for name, value in [("x", numbers.x), ("y", numbers.y)]}
        self.jwk = {"kty": "EC", "crv": "P-256", **places}
        self.thumbprint = thumbprint(self.jwk)

    def proof(self, method, url, token=None, nonce=None, header=None, **changes):
        address = urllib.parse.urlsplit(url)
        claims = {"htm": method, "htu": address._replace(query="", fragment="").geturl(), "iat": int(time.time()),
                  "jti": secrets.token_urlsafe(16), "ath": token and hash_of(token), "nonce": nonce, **changes}
        return signed({"typ": "dpop+jwt", "alg": "ES256", "jwk": self.jwk, **(header or {})},
                      {name: value for name, value in claims.items() if value is not None}, self.key)
