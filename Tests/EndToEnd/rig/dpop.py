"""DPoP proofs (RFC 9449): a server's checks, and a client that makes proofs, right and wrong."""
import base64
import hashlib
import json
import secrets
import time
import urllib.parse

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

COORDINATE = 32


def encoded(data):
    return base64.urlsafe_b64encode(data if isinstance(data, bytes) else json.dumps(data).encode()).rstrip(b"=").decode()


def decoded(text):
    if not isinstance(text, str) or not text or set(text) - set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"):
        raise ValueError("not base64url without padding")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def signed(header, claims, key):
    """A JWS with ES256 (RFC 7518 section 3.4)."""
    text = f"{encoded(header)}.{encoded(claims)}"
    r, s = decode_dss_signature(key.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
    return f"{text}.{encoded(r.to_bytes(COORDINATE, 'big') + s.to_bytes(COORDINATE, 'big'))}"


def verify(text, key):
    """Raises InvalidSignature or ValueError unless `text` is a JWS with ES256 by `key`."""
    head, _, signature = text.rpartition(".")
    signature = decoded(signature)
    if len(signature) != 2 * COORDINATE:
        raise ValueError("the signature has another length")
    r, s = (int.from_bytes(part, "big") for part in (signature[:COORDINATE], signature[COORDINATE:]))
    key.verify(encode_dss_signature(r, s), head.encode(), ec.ECDSA(hashes.SHA256()))


def public_jwk(key):
    numbers = key.public_key().public_numbers()
    return {"kty": "EC", "crv": "P-256", **{name: encoded(value.to_bytes(COORDINATE, "big")) for name, value in [("x", numbers.x), ("y", numbers.y)]}}


def key_of(jwk):
    """Returns the public key of a JWK; refuses every member that belongs to a private key (RFC 9449 section 4.3)."""
    if jwk.get("kty") != "EC" or jwk.get("crv") != "P-256" or "d" in jwk or "k" in jwk:
        raise ValueError("the JWK is not a public P-256 key")
    x, y = (int.from_bytes(decoded(jwk[name]), "big") for name in "xy")
    return ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()


def thumbprint(jwk):
    """RFC 7638."""
    members = {name: jwk[name] for name in ("crv", "kty", "x", "y")}
    return encoded(hashlib.sha256(json.dumps(members, separators=(",", ":"), sort_keys=True).encode()).digest())


def token_hash(token):
    return encoded(hashlib.sha256(token.encode()).digest())


class BadProof(Exception):
    def __init__(self, code, why):
        super().__init__(why)
        self.code, self.why = code, why


class Proofs:
    """Checks proofs as RFC 9449 section 4.3 demands. `seen` are the claims of all correct proofs."""

    def __init__(self):
        self.nonce, self.seen = None, []

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
        refuse = lambda why: BadProof("invalid_dpop_proof", why)
        if len(values) > 1:
            raise refuse("more than one proof")
        try:
            head, claims = (json.loads(decoded(part)) for part in values[0].split(".")[:2])
            key = key_of(head["jwk"])
            verify(values[0], key)
        except (ValueError, KeyError, TypeError, InvalidSignature) as problem:
            raise refuse(f"{type(problem).__name__}: {problem}") from None
        if head.get("typ") != "dpop+jwt" or head.get("alg") != "ES256":
            raise refuse(f"the header is {head}")
        if claims.get("htm") != request.method or claims.get("htu") != url:
            raise refuse(f"for {claims.get('htm')} {claims.get('htu')} and not {request.method} {url}")
        if abs(claims.get("iat", 0) - time.time()) > 60:
            raise refuse("iat is not now")
        if not claims.get("jti") or claims["jti"] in {one["jti"] for one in self.seen}:
            raise refuse("jti is missing or was used before")
        if token is not None and claims.get("ath") != token_hash(token):
            raise refuse("ath is not the hash of the token")
        if self.nonce and claims.get("nonce") != self.nonce:
            raise BadProof("use_dpop_nonce", "the nonce is not the current one")
        self.seen.append(claims)
        return thumbprint(head["jwk"])


class Prover:
    """A client's key. `proof(...)` makes a proof; `changes` are claims that are different, None for those that are missing."""

    def __init__(self):
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.jwk = public_jwk(self.key)
        self.thumbprint = thumbprint(self.jwk)

    def proof(self, method, url, token=None, nonce=None, header=None, **changes):
        address = urllib.parse.urlsplit(url)
        claims = {"htm": method, "htu": address._replace(query="", fragment="").geturl(), "iat": int(time.time()), "jti": secrets.token_urlsafe(16)}
        claims |= {"ath": token_hash(token)} if token else {}
        claims |= {"nonce": nonce} if nonce else {}
        claims = {name: value for name, value in {**claims, **changes}.items() if value is not None}
        return signed({"typ": "dpop+jwt", "alg": "ES256", "jwk": self.jwk, **(header or {})}, claims, self.key)
