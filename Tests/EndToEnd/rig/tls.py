"""HTTPS servers with valid and invalid certificates, and servers that request client certificates."""
import os
import pathlib
import secrets
import socket
import ssl
import subprocess

from cryptography.hazmat.primitives import hashes, serialization

from .authority import Authority, self_signed
from .scripted import ScriptedServer, response
from .servers import INSTALL, Server, find, free_port, nginx_command, publish
from .waiting import output

PASSPHRASE = "open sesame"


class Certificates:
    """A folder of certificates: `ca.pem`, and NAME.pem with NAME.key for each of `pairs`.

    Clients: "client" (also client-locked.key and client.p12 with PASSPHRASE, and client-both.pem with the key in it),
    "other-client" of the same authority, "stranger" of another one, "expired-client", and mismatch.key, which belongs to no
    certificate.
    """

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.authority, self.stranger = Authority(), Authority("Another authority")
        issue, middle = self.authority.issue, Authority("Middle authority", issuer=self.authority)
        self.pairs = {
            "good": issue(), "other-good": issue(), "self-signed": self_signed(), "expired": issue(start=-9, end=-2),
            "not-yet-valid": issue(start=2, end=9), "wrong-name": issue("elsewhere.test", ["elsewhere.test"]),
            "unknown-issuer": self.stranger.issue(), "weak-key": issue(bits=1024), "incomplete-chain": middle.issue(),
            "sha384": issue(digest=hashes.SHA384()),
            "client": issue("Alice Client", client=True, bits=2048), "other-client": issue("Bob Client", client=True),
            "stranger": self.stranger.issue("Stranger Client", client=True),
            "expired-client": issue("Late Client", client=True, start=-9, end=-2)}
        for stem, pair in [("ca", self.authority), ("other-ca", self.stranger), *self.pairs.items()]:
            pair.write(self.folder, stem)
        client = self.pairs["client"]
        for file, content in {
                "client-locked.key": client.key_pem(PASSPHRASE), "client.p12": client.pkcs12(PASSPHRASE, self.authority),
                "client-both.pem": client.certificate_pem + client.key_pem(),
                "mismatch.key": self.pairs["good"].key_pem()}.items():
            (self.folder / file).write_bytes(content)
            (self.folder / file).chmod(0o600)

    def __truediv__(self, file):
        return self.folder / file

    def credential(self, certificate="client.pem", key="client.key", **more):
        """The credential with these files; without `key`, the first one has both."""
        parts = {"certificate": str(self / certificate), **({"privateKey": str(self / key)} if key else {})}
        return {"type": "certificate", **parts, **more}

    def fingerprint(self, kind):
        return self.pairs[kind].fingerprint()


class TlsServer(ScriptedServer):
    """A scripted server over TLS 1.2 and 1.3, or without `certificates` over plain HTTP. The next connection gets the certificate
    `leaf`, which can be set at any time.

    `wire` is the decrypted data, `connections` are all connections, and `failures` those whose handshake failed, with the
    reason. With `client_authority`, the handshake fails without a client certificate of that authority; `peers` are the common
    names of the clients by connection. With `first`, every connection is closed after one response, so that each request shows
    the current certificate. `alpn` are the protocols that it negotiates.
    """
    alpn, verify_mode = (), ssl.CERT_REQUIRED

    def __init__(self, certificates, leaf="good", handler=lambda request: response(200, b"secure page\n"),
                 client_authority=None, minimum=ssl.TLSVersion.TLSv1_2, maximum=ssl.TLSVersion.TLSv1_3, first=False):
        self.certificates, self.leaf, self.client_authority, self.first = certificates, leaf, client_authority, first
        self.minimum, self.maximum, self.failures, self.peers = minimum, maximum, [], {}
        super().__init__(handler)
        if certificates:
            self.url = f"https://localhost:{self.port}"

    def _context(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_ciphers("DEFAULT:@SECLEVEL=0")  # otherwise OpenSSL refuses to serve the weak key
        context.minimum_version, context.maximum_version = self.minimum, self.maximum
        context.load_cert_chain(self.certificates / f"{self.leaf}.pem", self.certificates / f"{self.leaf}.key")
        if self.alpn:
            context.set_alpn_protocols(self.alpn)
        if self.client_authority:
            context.verify_mode = self.verify_mode
            context.load_verify_locations(self.client_authority)
        return context

    def _open(self, connection, number):
        if not self.certificates:
            return connection
        connection = self._context().wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        try:
            connection.do_handshake()
        except OSError as problem:
            self.failures.append((number, getattr(problem, "reason", None) or type(problem).__name__))
            with connection:
                connection.shutdown(socket.SHUT_WR)  # else a reset would overtake the alert
                while connection.recv(1 << 16):
                    pass
            raise
        subject = (connection.getpeercert() or {}).get("subject", ())
        self.peers[number] = dict(pair for group in subject for pair in group).get("commonName")
        return connection

    def _respond(self, connection, request, early):
        return super()._respond(connection, request, early) or self.first


def client_certificate_nginx(folder, certificates, verify="on", protocols="TLSv1.2 TLSv1.3"):
    """nginx that requests a client certificate: `verify` is on, optional or optional_no_ca. A line of the log: status, SUCCESS,
    NONE or FAILED:reason, the client's subject, TLS version, connection, request on it, login, target."""
    folder, port = pathlib.Path(folder), free_port()
    publish(folder, {"page.txt": "page for you\n"})
    server = Server(nginx_command(
        folder, "$status $ssl_client_verify \"$ssl_client_s_dn\" $ssl_protocol "
        "connection=$connection request=$connection_requests \"$http_authorization\" $request_uri",
        f"server {{ listen 127.0.0.1:{port} ssl; root {folder}/www;\n"
        f"ssl_certificate {certificates / 'good.pem'}; ssl_certificate_key {certificates / 'good.key'};\n"
        f"ssl_verify_client {verify}; ssl_client_certificate {certificates / 'ca.pem'}; ssl_protocols {protocols}; }}"),
        port, folder / "access.log")
    server.url = f"https://localhost:{port}"
    return server


class BreakingOff(TlsServer):
    """Requests a certificate, continues without one, and closes the connection after each request without a response."""

    verify_mode = ssl.CERT_OPTIONAL

    def _respond(self, connection, request, early):
        return True


MODULE = "/usr/lib/softhsm/libsofthsm2.so"


class Token:
    """`environment` is what a program needs to find the token; `certificate_url` and `key_url` identify its objects (RFC 7512).
    """

    def __init__(self, folder, pair, label="watchword", name="client"):
        assert pathlib.Path(MODULE).exists(), f"{MODULE} is missing; run {INSTALL}"
        assert list(pathlib.Path("/usr/lib").glob("*/engines-3/pkcs11.so")), f"OpenSSL's engine pkcs11 is missing; run {INSTALL}"
        self.folder, self.label = pathlib.Path(folder), label
        self.pin, officer = secrets.token_hex(6), secrets.token_hex(6)
        (self.folder / "tokens").mkdir(mode=0o700)
        configuration = self.folder / "softhsm2.conf"
        configuration.write_text(f"directories.tokendir = {self.folder}/tokens\nobjectstore.backend = file\nlog.level = ERROR\n")
        self.environment = {"SOFTHSM2_CONF": str(configuration), "PKCS11_MODULE_PATH": MODULE}
        self._secrets = {"TOKEN_PIN": self.pin, "TOKEN_OFFICER": officer}
        self._tool("--init-token", "--slot-index", "0", "--label", label, "--so-pin", "env:TOKEN_OFFICER")
        self._tool("--token-label", label, "--init-pin", "--login", "--so-pin", "env:TOKEN_OFFICER", "--pin", "env:TOKEN_PIN")
        parts = {
            "cert": pair.certificate.public_bytes(serialization.Encoding.DER),
            "privkey": pair.key.private_bytes(
                serialization.Encoding.DER, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())}
        for kind, content in parts.items():
            path = self.folder / f"{kind}.der"
            path.write_bytes(content)
            self._tool("--token-label", label, "--login", "--pin", "env:TOKEN_PIN", "--write-object", str(path), "--type", kind,
                       "--id", "01", "--label", name, *(["--usage-sign"] if kind == "privkey" else []))
            path.unlink()
        self.certificate_url = f"pkcs11:token={label};object={name};type=cert"
        self.key_url = f"pkcs11:token={label};object={name};type=private"

    def _tool(self, *words):
        return output(find("pkcs11-tool"), "--module", MODULE, *words, env={**os.environ, **self.environment, **self._secrets},
                      stdin=subprocess.DEVNULL)

    def objects(self):
        return self._tool("--token-label", self.label, "--login", "--pin", "env:TOKEN_PIN", "--list-objects")
