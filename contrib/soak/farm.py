"""The servers and the proxy: each checks every login it receives, and can be killed and restarted on its port."""
import hashlib
import os
import socket
import struct
import threading

from rig import ntlm
from rig.forwarding import ForwardProxy
from rig.scripted import ScriptedServer, response
from rig.tls import TlsServer
from truth import Place, ntlm_user

BLOCK = os.urandom(1 << 16)
RESET = struct.pack("ii", 1, 0)


class Nothing:
    """A list that stores nothing, because a long run has too many requests."""

    def append(self, item):
        pass


class Mortal:
    """A mixin for ScriptedServer: `die` stops it and resets its connections, and `rise` starts it again on the same port."""

    port = 0

    def __init__(self, *words, **more):
        self.open, self.number = {}, 0
        super().__init__(*words, **more)
        self.requests = Nothing()
        self.lock = threading.Lock()

    # The traffic is not recorded.
    wire = tunnelled = property(lambda self: b"", lambda self, value: None)

    def _open(self, connection, number):
        self.open[number] = connection
        return super()._open(connection, number)

    def _serve(self, connection, number):
        try:
            super()._serve(connection, number)
        except (ValueError, AttributeError):  # closed by `die` between two lines
            pass
        finally:
            self.open.pop(number, None)

    def die(self):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        for connection in list(self.open.values()):
            try:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def rise(self):
        self.listener = socket.create_server(("127.0.0.1", self.port), backlog=512)
        threading.Thread(target=self._accept, daemon=True).start()


class MortalServer(Mortal, ScriptedServer):
    pass


class MortalTlsServer(Mortal, TlsServer):
    pass


class MortalProxy(Mortal, ForwardProxy):
    pass


class Site:
    """An origin with a place for each scheme of `schemes`, at /0/, /1/ and so on; /open/ requires no login.

    Below a place, `page` names the account, `big/N` sends N blocks, `put` returns the SHA-256 of the request body, and `away/URL`
    redirects to URL.
    """

    def __init__(self, name, schemes, chance, verdict, folder, certificates=None):
        self.name, self.verdict, self.nonces = name, verdict, 0
        self.places = [Place(f"{name}r{number}", scheme, chance) for number, scheme in enumerate(schemes)]
        self.ntlm = None
        if "ntlm" in schemes:
            users = {account.user: account.secret for account in self.places[0].right}
            self.ntlm = ntlm.NtlmCheck(folder, users, handler=lambda request: self.serve(request, self.places[0], None))
            self.ntlm.served = self.ntlm.refused = Nothing()
        self.server = MortalTlsServer(certificates, handler=self.handle) if certificates else MortalServer(self.handle)
        self.server.host = "localhost" if certificates or self.ntlm else "127.0.0.1"
        self.url = f"{'https' if certificates else 'http'}://{self.server.host}:{self.server.port}"
        for place in self.places:
            place.url = self.url

    def place_of(self, target):
        word = target.split("/")[1]
        return self.places[int(word)] if word.isdigit() and int(word) < len(self.places) else None

    def look(self, request):
        """Checks that the login of a request belongs to the place of its target; returns the account."""
        place, said = self.place_of(request.target), request.authorization
        if request.header("Proxy-Authorization"):
            self.verdict.wrong(f"{self.name} received a proxy login: {request.raw!r}")
        if not said:
            return None
        self.verdict.count("logins received")
        if place and place.scheme == "ntlm" and said.startswith("NTLM "):
            user = ntlm_user(said.partition(" ")[2])
            if user not in [None, *(account.user for account in place.right)]:
                self.verdict.wrong(f"{self.name} received NTLM of {user}")
            return None
        account = place.owner(said, request.method, request.target) if place else None
        if not account:
            self.verdict.wrong(f"{self.name} received at {request.target}: {said!r}")
        return account

    def handle(self, request):
        place, account = self.place_of(request.target), self.look(request)
        if not place:
            return self.serve(request, None, None)
        if place.scheme == "ntlm":
            return self.ntlm(request)
        if account in place.right:
            return self.serve(request, place, account)
        return response(401, b"who are you?", "WWW-Authenticate: " + self.challenge(place))

    def challenge(self, place):
        if place.scheme != "digest":
            return f'{place.scheme.capitalize()} realm="{place.realm}"'
        self.nonces += 1
        number = self.places.index(place)
        return f'Digest realm="{place.realm}", nonce="{self.name}-{self.nonces}", algorithm=SHA-256, qop="auth", domain="/{number}/"'

    def serve(self, request, place, account):
        self.verdict.count("pages served")
        word, *rest = request.target.split("/")[2:]
        if word == "big":
            return response(200, BLOCK * int(rest[0]))
        if word == "put":
            return response(200, hashlib.sha256(request.body).hexdigest().encode())
        if word == "away":
            return response(302, b"", "Location: " + "/".join(rest))
        whose = f" of {account.user}" if account else ""
        return response(200, f"{self.name} {place.name if place else 'open'}{whose}".encode())


class Gate:
    """A proxy that requires a login. It checks the logins that it receives and forwards."""

    def __init__(self, name, chance, verdict, sites):
        self.name, self.verdict, self.place = name, verdict, Place(name, "basic", chance)
        self.sites = {site.server.port: site for site in sites}
        self.server = MortalProxy(self.check)
        self.url = f"http://127.0.0.1:{self.server.port}"

    def check(self, request):
        said = request.header("Proxy-Authorization")
        account = self.place.owner(said, request.method, request.target) if said else None
        if said:
            self.verdict.count("logins received")
            if not account:
                self.verdict.wrong(f"the proxy received {said!r}")
        if request.authorization and request.method == "CONNECT":
            self.verdict.wrong(f"the proxy received with CONNECT: {request.authorization!r}")
        if account in self.place.right:
            return None
        return response(407, b"who are you?", f'Proxy-Authenticate: Basic realm="{self.place.realm}"')
