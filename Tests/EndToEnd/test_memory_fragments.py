"""No part of a password of 16 bytes or more stays in the broker's memory, for all lengths, schemes, and ways in which it was
supplied."""
import base64
import contextlib
import os
import secrets
import struct
import subprocess

import pytest

from rig.bodies import eventually
from rig.client import password_answer
from rig.forwarding import Socks5Server
from rig.memory import Scanner, places
from rig.scripted import ScriptedServer, response

if os.geteuid() != 0:
    pytest.fail("only root may read the memory of another process; run the tests as root", pytrace=False)

LENGTHS = [8, 15, 16, 31, 32, 33, 47, 48, 64, 127, 255, 256]


@pytest.fixture(scope="module")
def passwords():
    letters = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
    return ["".join(secrets.choice(letters) for _ in range(length)) for length in LENGTHS]


@pytest.fixture
def scanner(passwords, tmp_path_factory):
    return Scanner(passwords, tmp_path_factory.getbasetemp())


def check(broker, scanner, seconds=30):
    """Searches the memory after a moment: the broker is still cleaning up when the client receives the end of its fetch."""
    eventually(lambda: not scanner.places(broker.process.pid), lambda: scanner.places(broker.process.pid), seconds, pause=0.05)


def rotated(passwords, *words):
    """Returns some lengths. Much happens only at the first login, so each test begins with another length."""
    start = sum(map(ord, "".join(words))) % len(passwords)
    return (passwords[start:] + passwords[:start])[:5]


NTLM_CHALLENGE = "NTLM " + base64.b64encode(
    b"NTLMSSP\0" + struct.pack("<I", 2) + bytes(8) + struct.pack("<I", 0x888205) + b"12345678" + bytes(8)
    + struct.pack("<HHI", 10, 10, 48) + b"\2\0\2\0D\0\0\0\0\0").decode()

CHALLENGES = {
    "basic": 'Basic realm="r"', "digest-md5": 'Digest realm="r", nonce="n", qop="auth", algorithm=MD5',
    "digest-sha-256": 'Digest realm="r", nonce="n", qop="auth", algorithm=SHA-256',
    "digest-sha-512-256-sess": 'Digest realm="r", nonce="n", qop="auth", algorithm=SHA-512-256-sess',
    "bearer": 'Bearer realm="r"', "other": 'Custom realm="r"', "ntlm": "NTLM",
}


def accepting(challenge, proxy=False):
    """A server or proxy that accepts every login without checking it."""
    field, status = ("Proxy-Authenticate", 407) if proxy else ("WWW-Authenticate", 401)

    def handle(request):
        given = request.header("Proxy-Authorization" if proxy else "Authorization")
        if given and given.startswith("NTLM ") and base64.b64decode(given[5:])[8] == 1:
            return response(status, b"", f"{field}: {NTLM_CHALLENGE}")
        return response(200, b"welcome") if given else response(status, b"", f"{field}: {challenge}")

    return contextlib.closing(ScriptedServer(handle))


def credential(scheme, password, persistence="none"):
    if scheme == "bearer":
        return {"type": "token", "token": password, "persistence": persistence}
    if scheme == "other":
        return {"type": "header", "scheme": "Custom", "value": password, "persistence": persistence}
    return {"type": "password", "user": "bob", "password": password, "persistence": persistence}


CONFIGURATION = '[schemes]\nntlm = ["127.0.0.1"]\n'


@pytest.mark.parametrize("scheme", CHALLENGES)
@pytest.mark.parametrize("way", ["answer", "own", "proxy-answer", "proxy-own"])
def test_rule_x8_no_fragment_is_left_of_a_credential_that_is_not_stored(stage, passwords, scanner, scheme, way):
    broker = stage.configured(CONFIGURATION)
    isProxy = way.startswith("proxy")
    with accepting(CHALLENGES[scheme], isProxy) as server:
        for password in rotated(passwords, scheme, way):
            given = credential(scheme, password)
            client = stage.client(answer=lambda challenge: {"action": "credential", "credential": given}, broker=broker)
            params = {"allowInsecureAuth": True}
            if isProxy:
                params["proxy"] = {"url": server.url, **({"credential": given} if way == "proxy-own" else {})}
            elif way == "own":
                params["credential"] = given
            url = "http://host.invalid/" if isProxy else server.url
            assert client.fetch(url, **params)["result"]["status"] == 200
            client.close()
            check(broker, scanner)


@pytest.mark.parametrize("length", LENGTHS)
def test_rule_x8_no_fragment_is_left_of_the_first_login(stage, passwords, scanner, length):
    password, broker = passwords[LENGTHS.index(length)], stage.configured(CONFIGURATION)
    with accepting(CHALLENGES["digest-sha-256"]) as server:
        client = stage.client(answer=lambda challenge: password_answer("bob", password, persistence="none"), broker=broker)
        assert client.fetch(server.url)["result"]["status"] == 200
        client.close()
        check(broker, scanner)


def test_functions_are_found_before_the_program_starts(stage):
    """The lazy resolver of the dynamic linker would save vector registers on the stack."""
    program = os.readlink(f"/proc/{stage.broker().process.pid}/exe")
    assert "NOW" in subprocess.run(["readelf", "-d", program], check=True, capture_output=True, text=True).stdout


def test_the_scanner_finds_present_fragments(stage, passwords, scanner):
    broker = stage.configured(CONFIGURATION)
    with accepting(CHALLENGES["basic"]) as server:
        client = stage.client(answer=lambda challenge: password_answer("bob", passwords[-1], persistence="forSession"), broker=broker)
        assert client.fetch(server.url, allowInsecureAuth=True)["result"]["status"] == 200
        assert places(broker.process.pid, passwords[-1]) and scanner.places(broker.process.pid)


@pytest.mark.parametrize("scheme", ["basic", "digest-sha-256", "ntlm"])
@pytest.mark.parametrize("way", ["url", "session", "stored"])
def test_rule_x8_no_fragment_is_left_of_a_credential_removed_from_the_session(stage, passwords, scanner, scheme, way):
    broker = stage.configured(CONFIGURATION)
    with accepting(CHALLENGES[scheme]) as server:
        for password in rotated(passwords, scheme, way):
            client = stage.client(answer=lambda challenge: password_answer("bob", password, persistence="forSession"), broker=broker)
            url = server.url if way != "url" else server.url.replace("//", f"//bob:{password}@")
            if way == "stored":
                method = {"basic": "httpBasic", "digest-sha-256": "httpDigest", "ntlm": "ntlm"}[scheme]
                space = {"protocol": "http", "host": "127.0.0.1", "port": server.port, "authenticationMethod": method,
                         **({} if scheme == "ntlm" else {"realm": "r"})}
                assert "result" in client.call("credential/store", {
                    "protectionSpace": space, "credential": credential(scheme, password, "forSession")})
            assert client.fetch(url, allowInsecureAuth=True)["result"]["status"] == 200
            client.call("session/clear", {})
            client.close()
            check(broker, scanner)


@pytest.mark.parametrize("way", ["answer", "own"])
def test_no_fragment_is_left_of_a_socks_login(stage, passwords, scanner, way):
    broker = stage.configured(CONFIGURATION)
    with contextlib.closing(ScriptedServer(lambda request: response(200, b"welcome"))) as server:
        # A SOCKS login has no room for longer ones (RFC 1929).
        for password in filter(lambda password: len(password) <= 255, passwords):
            with contextlib.closing(Socks5Server({"bob": password})) as socks:
                given = credential("socks", password)
                client = stage.client(answer=lambda challenge: {"action": "credential", "credential": given}, broker=broker)
                proxy = {"url": f"socks5h://127.0.0.1:{socks.port}", **({"credential": given} if way == "own" else {})}
                assert client.fetch(server.url, proxy=proxy)["result"]["status"] == 200
                client.close()
                check(broker, scanner)


@pytest.mark.parametrize("scheme", ["basic", "digest-sha-256", "ntlm"])
@pytest.mark.parametrize("way", ["answer", "own"])
def test_no_fragment_is_left_of_a_tunnel_login(stage, passwords, scanner, scheme, way):
    """The server behind the tunnel does not speak TLS, so the fetch fails after the login."""
    broker = stage.configured(CONFIGURATION)
    with accepting(CHALLENGES[scheme], True) as proxy:
        for password in rotated(passwords, scheme, way, "tunnel"):
            given = credential(scheme, password)
            client = stage.client(answer=lambda challenge: {"action": "credential", "credential": given}, broker=broker)
            choice = {"url": proxy.url, **({"credential": given} if way == "own" else {})}
            count = len(proxy.requests)
            assert "error" in client.fetch("https://host.invalid/", proxy=choice)
            assert any(request.header("Proxy-Authorization") for request in proxy.requests[count:])
            client.close()
            check(broker, scanner)


@pytest.mark.parametrize("form", ["pkcs8", "pkcs12"])
def test_rule_x8_no_fragment_is_left_of_a_passphrase(stage, certificates, client_nginx, passwords, scanner, tmp_path, form):
    broker = stage.broker("--ca-file", str(certificates / "ca.pem"))
    server = client_nginx("on", "TLSv1.3")
    for password in passwords:
        key = tmp_path / f"{len(password)}.{form}"
        make = {"pkcs8": ["pkcs8", "-topk8", "-in", certificates / "client.key"],
                "pkcs12": ["pkcs12", "-export", "-in", certificates / "client.pem", "-inkey", certificates / "client.key"]}[form]
        subprocess.run(["openssl", *make, "-out", key, "-passout", "stdin"], input=password.encode(), check=True, capture_output=True)
        key.chmod(0o600)
        parts = {"certificate": str(certificates / "client.pem"), "privateKey": str(key)} if form == "pkcs8" else {"certificate": str(key)}
        own = {"type": "certificate", **parts, "passphrase": password, "persistence": "none"}
        client = stage.client(broker=broker)
        reply = client.fetch(f"{server.url}/page.txt", tls={"certificate": own})
        assert reply.get("result", {}).get("status") == 200, reply
        client.close()
        check(broker, scanner)


def test_no_fragment_is_left_of_secrets_in_the_keyring(stage, gnome, passwords, scanner):
    broker = stage.broker(environment=gnome.environment)
    with accepting(CHALLENGES["basic"]) as server:
        for password in passwords:
            client = stage.client(answer=lambda challenge: password_answer("bob", password, persistence="permanent"), broker=broker)
            assert client.fetch(server.url, allowInsecureAuth=True)["result"]["status"] == 200
            client.call("broker/lock", {})
            check(broker, scanner)
            client.call("broker/unlock", {})
            client.close()
