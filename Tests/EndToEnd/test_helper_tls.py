"""The helper with real TLS: valid and invalid certificates, and servers that request a client certificate."""
import base64
import threading

import pytest
from cryptography.hazmat.primitives import hashes, serialization

from rig.bodies import eventually
from rig.scripted import basic_server, response
from rig.servers import marked
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
    ("self-signed", "is self-signed"), ("expired", "has expired"), ("not-yet-valid", "not valid yet"), ("wrong-name", "for another host"),
    ("unknown-issuer", "No trusted authority"), ("weak-key", "too weak"), ("incomplete-chain", "No trusted authority")])
def test_problems_are_shown_and_accepted_for_one_fetch(shell, tls_server, certificates, kind, words):
    server = tls_server(kind)
    terminal = shell.at_terminal("fetch", server.url)
    terminal.expect(words, "NO: ")
    assert colons(certificates.fingerprint(kind)).encode() in terminal.shown
    assert colons(key_hash(certificates, kind).hex()).encode() in terminal.shown
    terminal.type("fetch\n")
    assert terminal.end() == 0 and b"secure page" in terminal.shown
    done = shell.run("fetch", server.url)
    assert done.returncode == 60 and done.stderr.count(b"\n") == 1 and len(server.requests) == 1


def test_accepted_for_the_session_until_the_key_changes(shell, tls_server):
    server = tls_server("self-signed", first=True)
    terminal = shell.at_terminal("fetch", server.url)
    terminal.answer({"NO: ": "session"})
    assert terminal.end() == 0
    assert shell.run("fetch", server.url).stdout == b"secure page\n"
    server.leaf = "unknown-issuer"
    terminal = shell.at_terminal("fetch", "-k", server.url)
    terminal.expect("Its key has changed")
    terminal.answer({"NO: ": ""})
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


def test_no_stored_password_is_sent_over_an_exception(stage, shell, tls_server):
    password = stage.secret()
    check = basic_server("bob", password)
    server = tls_server("self-signed", handler=check.handler)
    check.close()
    shell.run("credentials", "store", server.url, "--user", "bob", "--password-stdin", input=password.encode())
    terminal = shell.at_terminal("fetch", "-k", server.url)
    terminal.answer({"User: ": ""})
    assert terminal.end() == 0 and server.authorizations == [None]


# Client certificates


def test_a_client_certificate_at_a_terminal(stage, shell, client_nginx, certificates):
    server = client_nginx("on")
    stage.secrets[PASSPHRASE] = ()
    page = marked("/page.txt")
    terminal = shell.at_terminal("fetch", server.url + page)
    terminal.expect("CN=Test authority")
    terminal.answer({
        "URI): ": str(certificates / "client.pem"), "same file): ": str(certificates / "client-locked.key"), "none): ": "wrong"})
    terminal.expect("The passphrase of the key")
    terminal.answer({"continue without a certificate.\r\nPassphrase of the key (empty: none): ": PASSPHRASE})
    assert terminal.end() == 0 and b"page for you" in terminal.shown and PASSPHRASE.encode() not in terminal.shown
    assert server.lines(page)[-1].startswith('200 SUCCESS "CN=Alice Client"')


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


# Without a terminal, an agent decides


def agent(stage, *answers):
    """Registers an agent with these answers. Returns the list of its challenges."""
    asked, left = [], list(answers)
    client = stage.client(answer=lambda challenge: asked.append(challenge) or left.pop(0)(challenge["protectionSpace"]))
    client.call("agent/register", {"name": "desk"})
    return asked


def accepted(space):
    key = space["serverTrust"]["chain"][0]["spkiSha256"]
    return {"action": "credential", "credential": {"type": "trust", "spkiSha256": key, "persistence": "none"}}


def no(space):
    return {"action": "default"}


@pytest.mark.parametrize("options", [[], ["-k"]])
@pytest.mark.parametrize("answer, status", [(accepted, 0), (no, 60)])
def test_an_agent_decides_about_a_server_certificate(stage, shell, tls_server, options, answer, status):
    server = tls_server("self-signed")
    asked = agent(stage, answer)
    done = shell.run("fetch", *options, server.url)
    assert done.returncode == status and len(server.requests) == (status == 0)
    assert [one["protectionSpace"]["authenticationMethod"] for one in asked] == ["serverTrust"]


def test_an_agent_selects_a_client_certificate(stage, shell, client_nginx, certificates):
    server, page = client_nginx("optional"), marked("/page.txt")
    own = {"type": "certificate", "certificate": str(certificates / "client-both.pem"), "persistence": "none"}
    asked = agent(stage, lambda space: {"action": "credential", "credential": own}, no)
    for _ in range(2):
        assert shell.run("fetch", server.url + page).stdout == b"page for you\n"
    assert [line.split()[1] for line in server.lines(page, 2)] == ["SUCCESS", "NONE"]
    assert [one["protectionSpace"]["authenticationMethod"] for one in asked] == ["clientCertificate"] * 2


def test_an_agent_is_asked_for_the_passphrase_of_the_certificate_in_the_command(stage, shell, client_nginx, certificates):
    stage.secrets[PASSPHRASE] = ()
    server, page = client_nginx("on"), marked("/page.txt")
    right = {"type": "certificate", "certificate": str(certificates / "client.pem"), "privateKey": str(certificates / "client-locked.key"),
             "passphrase": PASSPHRASE, "persistence": "none"}
    asked = agent(stage, lambda space: {"action": "credential", "credential": right})
    done = shell.run("fetch", "--cert", "client.pem:wrong", "--key", "client-locked.key", server.url + page, cwd=certificates.folder)
    assert done.stdout == b"page for you\n" and [one["error"]["kind"] for one in asked] == ["passphraseWrong"]


@pytest.mark.parametrize("action", ["default", "continue"])
def test_the_answer_to_another_program_does_not_hide_a_wrong_passphrase(stage, shell, client_nginx, certificates, action):
    stage.secrets[PASSPHRASE] = ()
    server, page, may_answer = client_nginx("optional"), marked("/page.txt"), threading.Event()
    right = {"type": "certificate", "certificate": str(certificates / "client-both.pem"), "persistence": "none"}
    asked = agent(
        stage, lambda space: may_answer.wait(60) and {"action": action}, lambda space: {"action": "credential", "credential": right})
    other, own = stage.client(delivery=None), stage.client(delivery=None)
    first = other.start("fetch/run", {"url": server.url + page})
    eventually(lambda: asked, "the agent was not asked")
    wrong = {**right, "certificate": str(certificates / "client.pem"), "privateKey": str(certificates / "client-locked.key"), "passphrase": "wrong"}
    second = own.start("fetch/run", {"url": server.url + page, "tls": {"certificate": wrong}})
    status = stage.client(delivery=None)
    eventually(lambda: status.call("server/status")["result"]["fetches"]["waiting"] == 1, "the second fetch does not wait")
    may_answer.set()
    assert [client.wait(call)["result"]["status"] for client, call in [(other, first), (own, second)]] == [200, 200]
    assert [line.split()[1] for line in server.lines(page, 2)] == ["NONE", "SUCCESS"]
    assert [one["error"] and one["error"]["kind"] for one in asked] == [None, "passphraseWrong"]


def test_a_client_certificate_that_the_server_refuses(shell, tls_server, certificates):
    server = tls_server(client_authority=str(certificates / "ca.pem"))
    done = shell.run("fetch", "--cert", "stranger.pem", "--key", "stranger.key", server.url, cwd=certificates.folder)
    assert done.returncode == 58 and server.requests == []
