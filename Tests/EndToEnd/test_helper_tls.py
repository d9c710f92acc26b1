"""The shell helper with real TLS: certificates good and bad, and servers that ask for the client's."""
import base64

import pytest
from cryptography.hazmat.primitives import hashes, serialization

from rig.scripted import basic_server, response
from rig.terminal import Shell
from rig.tls import PASSPHRASE


@pytest.fixture
def shell(stage, certificates):
    return Shell(stage.broker("--ca-file", str(certificates / "ca.pem")))


def key_hash(certificates, kind):
    key = certificates.pairs[kind].certificate.public_key()
    digest = hashes.Hash(hashes.SHA256())
    digest.update(key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo))
    return digest.finalize()


def pin(certificates, kind):
    return "sha256//" + base64.b64encode(key_hash(certificates, kind)).decode()


def colons(hexadecimal):
    return ":".join(hexadecimal[at:at + 2] for at in range(0, len(hexadecimal), 2)).upper()


def test_a_good_certificate_is_not_asked_about(shell, tls_server):
    terminal = shell.at_terminal("fetch", tls_server("good").url)
    assert terminal.end() == 0 and b"secure page" in terminal.shown and b"Accept" not in terminal.shown


@pytest.mark.parametrize("kind, words", [
    ("self-signed", "its own issuer"), ("expired", "has expired"), ("not-yet-valid", "not valid yet"), ("wrong-name", "for another host"),
    ("unknown-issuer", "Nobody who is trusted"), ("weak-key", "too weak"), ("incomplete-chain", "Nobody who is trusted")])
def test_what_is_wrong_is_said_and_accepted_for_one_fetch(shell, tls_server, certificates, kind, words):
    server = tls_server(kind)
    terminal = shell.at_terminal("fetch", server.url)
    terminal.expect(words)
    terminal.expect("NO: ")
    assert colons(certificates.fingerprint(kind)).encode() in terminal.shown
    assert colons(key_hash(certificates, kind).hex()).encode() in terminal.shown
    terminal.type("fetch\n")
    assert terminal.end() == 0 and b"secure page" in terminal.shown
    done = shell.run("fetch", server.url)
    assert done.returncode == 60 and done.stderr.count(b"\n") == 1 and len(server.requests) == 1


def test_no_sends_nothing(shell, tls_server):
    server = tls_server("self-signed")
    terminal = shell.at_terminal("fetch", server.url)
    terminal.expect("NO: ")
    terminal.type("\n")
    assert terminal.end() == 60 and server.requests == []


def test_accepted_for_the_session_until_the_key_changes(shell, tls_server):
    server = tls_server("self-signed", first=True)
    terminal = shell.at_terminal("fetch", server.url)
    terminal.expect("NO: ")
    terminal.type("session\n")
    assert terminal.end() == 0
    assert shell.run("fetch", server.url).stdout == b"secure page\n"
    server.leaf = "unknown-issuer"
    terminal = shell.at_terminal("fetch", "-k", server.url)
    terminal.expect("IT HAS ANOTHER KEY")
    terminal.expect("NO: ")
    terminal.type("\n")
    assert terminal.end() == 60 and len(server.requests) == 2


def test_k_at_a_terminal_and_without(shell, tls_server, certificates):
    server = tls_server("self-signed")
    terminal = shell.at_terminal("fetch", "-k", server.url)
    assert terminal.end() == 0 and b"because of -k" in terminal.shown and b"secure page" in terminal.shown
    done = shell.run("fetch", "-k", server.url)
    assert done.returncode == 60 and f"--pinnedpubkey {pin(certificates, 'self-signed')}".encode() in done.stderr
    assert len(server.requests) == 1


@pytest.mark.parametrize("kind, pinned, code", [
    ("self-signed", "self-signed", 0), ("wrong-name", "wrong-name", 0), ("good", "good", 0), ("good", "other-good", 90),
    ("self-signed", "good", 90)])
def test_a_pin(shell, tls_server, certificates, kind, pinned, code):
    server = tls_server(kind)
    done = shell.run("fetch", "--pinnedpubkey", pin(certificates, pinned), server.url)
    assert (done.returncode, done.stdout) == (code, b"" if code else b"secure page\n"), done
    assert len(server.requests) == (0 if code else 1)


def test_a_pin_holds_after_a_redirect(stage, shell, tls_server, certificates):
    other = tls_server("good")
    server = tls_server("self-signed", handler=lambda request: response(302, b"", f"Location: {other.url}/"))
    assert shell.run("fetch", "-L", "--pinnedpubkey", pin(certificates, "self-signed"), server.url).returncode == 90
    assert other.requests == []


def test_no_stored_password_goes_over_an_exception(stage, shell, tls_server):
    password = stage.secret()
    check = basic_server("bob", password)
    server = tls_server("self-signed", handler=check.handler)
    check.close()
    shell.run("credentials", "store", server.url, "--user", "bob", "--password-stdin", input=password.encode())
    terminal = shell.at_terminal("fetch", "-k", server.url)
    terminal.expect("User: ")
    terminal.type("\n")
    assert terminal.end() == 0 and server.authorizations == [None]


# Client certificates


def test_a_client_certificate_at_a_terminal(stage, shell, client_nginx, certificates):
    server = client_nginx("on")
    stage.secrets[PASSPHRASE] = ()
    before = server.log.count("200 SUCCESS")
    terminal = shell.at_terminal("fetch", server.url + "/page.txt")
    terminal.expect("CN=Test authority")
    terminal.expect("URI): ")
    terminal.type(str(certificates / "client.pem") + "\n")
    terminal.expect("same file): ")
    terminal.type(str(certificates / "client-locked.key") + "\n")
    terminal.expect("none): ")
    terminal.type("wrong\n")
    terminal.expect("The passphrase of the key")
    terminal.expect("goes on without one.\r\nPassphrase of the key (empty: none): ")
    terminal.type(PASSPHRASE + "\n")
    assert terminal.end() == 0 and b"page for you" in terminal.shown and PASSPHRASE.encode() not in terminal.shown
    server.wait_for_log('200 SUCCESS "CN=Alice Client"', times=before + 1)


def test_going_on_without_a_client_certificate(shell, client_nginx):
    for server, words in [(client_nginx("on"), b"No required SSL certificate"), (client_nginx("optional"), b"page for you")]:
        terminal = shell.at_terminal("fetch", server.url + "/page.txt")
        terminal.expect("URI): ")
        terminal.type("\n")
        assert terminal.end() == 0 and words in terminal.shown
        assert words in shell.run("fetch", server.url + "/page.txt").stdout


@pytest.mark.parametrize("words", [
    ["-E", "client-both.pem"], ["--cert", "client.pem", "--key", "client.key"], ["-E", f"client.p12:{PASSPHRASE}"],
    ["--cert", "client.pem", "--key", "client-locked.key", "--pass", PASSPHRASE]])
def test_a_client_certificate_in_the_command(shell, client_nginx, certificates, words):
    done = shell.run("fetch", *words, client_nginx("on").url + "/page.txt", cwd=certificates.folder)
    assert (done.returncode, done.stdout) == (0, b"page for you\n"), done


@pytest.mark.parametrize("words", [
    ["--cert", "client.pem", "--key", "mismatch.key"], ["-E", "client.p12:wrong"], ["-E", "ca.pem"]])
def test_a_client_certificate_that_cannot_be_used(shell, client_nginx, certificates, words):
    done = shell.run("fetch", *words, client_nginx("on").url + "/page.txt", cwd=certificates.folder)
    assert done.returncode == 58 and done.stdout == b"" and done.stderr.count(b"\n") == 1, done


def test_a_client_certificate_that_the_server_refuses(shell, tls_server, certificates):
    server = tls_server(client_authority=str(certificates / "ca.pem"))
    done = shell.run("fetch", "--cert", "stranger.pem", "--key", "stranger.key", server.url, cwd=certificates.folder)
    assert done.returncode == 58 and server.requests == []
