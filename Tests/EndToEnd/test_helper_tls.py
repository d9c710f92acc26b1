"""The helper with real TLS, and with scripted challenges about certificates: valid and invalid ones, servers that request a client
certificate, and the limits of the session that a challenge states."""
import base64
import contextlib
import subprocess
import threading

import pytest
from cryptography.hazmat.primitives import hashes, serialization

from rig.bodies import eventually
from rig.broker import program
from rig.scripted import basic_server, response
from rig.scripted_broker import OK, ScriptedBroker
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


@pytest.mark.parametrize("words, code", [
    (["-E", "client-both.pem"], 0), (["--cert", "client.pem", "--key", "client.key"], 0), (["-E", f"client.p12:{PASSPHRASE}"], 0),
    (["--cert", "client.pem", "--key", "client-locked.key", "--pass", PASSPHRASE], 0),
    (["--cert", "client.pem", "--key", "mismatch.key"], 58), (["-E", "client.p12:wrong"], 58), (["-E", "ca.pem"], 58)])
def test_a_client_certificate_in_the_command(shell, client_nginx, certificates, words, code):
    done = shell.run("fetch", *words, client_nginx("on").url + "/page.txt", cwd=certificates.folder)
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == ((58, b"", 1) if code else (0, b"page for you\n", 0)), done


# Without a terminal, an agent decides

def agent(stage, *answers):
    """Registers an agent with these answers. Returns the list of its challenges."""
    left = list(answers)
    client = stage.client(answer=lambda challenge: left.pop(0)(challenge["protectionSpace"]))
    client.call("agent/register", {"name": "desk"})
    return client.asked


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
    assert shell.run("fetch", *options, server.url).returncode == status and len(server.requests) == (status == 0)
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


SPACE = {"protocol": "https", "host": "intranet.test", "port": 8443, "realm": None, "isProxy": False, "receivesCredentialSecurely": True}
LEAF = {
    "pem": "", "subject": "CN=intranet.test", "issuer": "CN=Some authority", "notBefore": "2026-01-01T00:00:00Z",
    "notAfter": "2027-01-01T00:00:00Z", "sha256": "ab" * 32, "spkiSha256": "0c" * 32,
    "subjectAltNames": [f"DNS:a{number}.test" for number in range(12)]}
PIN = "sha256//" + base64.b64encode(b"\x0c" * 32).decode()
UNTRUSTED = ScriptedBroker.Failure(1026, "serverNotTrusted", "The certificate of intranet.test, port 8443, is not trusted.")


@pytest.fixture
def broker(tmp_path):
    with contextlib.ExitStack() as stack:
        yield lambda plan: stack.enter_context(contextlib.closing(ScriptedBroker(tmp_path, plan)))


def challenge(method, more, **members):
    return {"challengeId": "c", "fetchId": "f1", "protectionSpace": {**SPACE, "authenticationMethod": method, **more}, "offers": [],
            "proposedCredential": None, "previousFailureCount": 0, "failureResponse": None, "error": None, "accepts": [],
            "persistenceAllowed": ["none", "forSession", "permanent"], "url": "https://intranet.test:8443/", "method": "GET",
            "requester": {"name": "watchword", "pid": 1, "subject": "unknown"}, "deadlineMs": 120000, **members}


def about_trust(*problems, leaf=LEAF, **members):
    return challenge("serverTrust", {"serverTrust": {"chain": [leaf], "problems": list(problems)}}, **members)


class Trust:
    """Asks whether the client can answer, then for the decision; without a decision the fetch fails."""

    def __init__(self, *problems, **more):
        self.challenge, self.answers, self.can = about_trust(*problems, **more), [], None

    def __call__(self, broker, params):
        self.params = params
        self.can = broker.ask("auth/canAuthenticate", {"fetchId": "f1", "protectionSpace": self.challenge["protectionSpace"]})
        if self.can != {"answer": True}:
            raise UNTRUSTED
        self.answers.append(broker.ask("auth/challenge", self.challenge))
        if self.answers[-1]["action"] != "credential":
            raise UNTRUSTED
        return OK


def accepted_as(persistence):
    return {"action": "credential", "credential": {"type": "trust", "spkiSha256": "0c" * 32, "persistence": persistence}}


URL = "https://intranet.test:8443/"
REJECT = {"action": "reject"}


@pytest.mark.parametrize("typed, persistence", [
    ("fetch", "none"), ("f", "none"), ("session", "forSession"), ("always", "permanent"), ("unknown\nAlways", "permanent")])
def test_a_certificate_is_shown_and_accepted(broker, typed, persistence):
    plan = Trust("selfSigned", "hostMismatch")
    scripted = broker(plan)
    scripted.environment["TZ"] = "Europe/Berlin"
    terminal = scripted.at_terminal("fetch", URL)
    terminal.expect(
        "https://intranet.test:8443 presents a certificate that is not trusted", "is self-signed", "for another host", "CN=intranet.test",
        "CN=Some authority", "2026-01-01T01:00:00+01:00 to 2027-01-01T01:00:00+01:00", "DNS:a9.test, and 2 more", ":".join(["AB"] * 32),
        ":".join(["0C"] * 32))
    for count, line in enumerate(typed.split("\n"), 1):
        # Text typed before a prompt is not an answer to it.
        terminal.expect("Accept it? fetch/session/always/NO: ", times=count)
        terminal.type(line + "\n")
    assert terminal.end() == 0 and b"done" in terminal.shown
    assert b"DNS:a10.test" not in terminal.shown and b"key has changed" not in terminal.shown
    assert plan.answers == [accepted_as(persistence)] and plan.can == {"answer": True}


@pytest.mark.parametrize("plan, options, lines, code, answers, shown, hidden", [
    *((Trust("expired"), [], {"NO: ": line}, 60, [REJECT], ["It has expired.", "is not trusted."], []) for line in ("", "no", "N", "\x04")),
    (Trust("hostMismatch", leaf={**LEAF, "subjectAltNames": []}), [], {"NO: ": "n"}, 60, [REJECT], ["It does not name any host."], ["another host"]),
    (Trust("expired", persistenceAllowed=["none"]), [], {"it? fetch/NO: ": "always", "always\r\nAccept it? fetch/NO: ": "fetch"}, 0,
     [accepted_as("none")], ["It has expired."], []),
    # A certificate has no effect on the terminal.
    (Trust("a\x1b[2J", leaf={**LEAF, "subject": "CN=\x1b[2Jevil", "subjectAltNames": ["DNS:\x1b[A"]}), [], {"NO: ": ""}, 60,
     [REJECT], ["evil"], ["\x1b"]),
    (Trust("untrustedIssuer"), ["-k"], {}, 0, [accepted_as("none")], [":".join(["0C"] * 32), "because of -k"], ["Accept it?"]),
    (Trust("selfSigned", "changed"), ["-k"], {"NO: ": ""}, 60, [REJECT], ["key has changed"], []),
    (Trust("selfSigned", "revoked"), ["-k"], {"NO: ": ""}, 60, [REJECT], ["has revoked"], []),
    (Trust("selfSigned"), ["--pinnedpubkey", PIN], {}, 90, [], ["does not match --pinnedpubkey"], [])], ids=range(11))
def test_a_decision_about_a_certificate(broker, plan, options, lines, code, answers, shown, hidden):
    terminal = broker(plan).at_terminal("fetch", *options, URL)
    terminal.answer(lines)
    assert terminal.end() == code and plan.answers == answers
    assert all(text.encode() in terminal.shown for text in shown) and not any(text.encode() in terminal.shown for text in hidden)
    assert plan.can == {"answer": "--pinnedpubkey" not in options}
    if "--pinnedpubkey" in options:
        assert plan.params["tls"] == {"trust": "always", "pin": {"type": "trust", "spkiSha256": "0c" * 32, "persistence": "none"}}


@pytest.mark.parametrize("options, methods", [([], []), (["-k"], ["serverTrust"])])
def test_without_a_terminal_only_agents_receive_questions_about_certificates(broker, options, methods):
    started = broker(Trust("selfSigned"))
    done = subprocess.run([program("watchword"), "fetch", *options, URL], env=started.environment, timeout=30, start_new_session=True)
    assert done.returncode == 60
    subscription = dict(started.called)["auth/subscribe"]
    assert set(subscription.pop("methods")) == {"httpBasic", "httpDigest", "ntlm", "negotiate", "bearer", "other", *methods}
    assert subscription == {"asksCanAuthenticate": True, "asksNeedBody": True}


# Client certificates

class Certificate:
    def __init__(self, *errors, names=("CN=Test authority", "CN=Other")):
        self.errors, self.names, self.answers, self.can = [None, *errors], list(names), [], None

    def __call__(self, broker, params):
        self.params = params
        for failures, error in enumerate(self.errors):
            asked = challenge(
                "clientCertificate", {"distinguishedNames": self.names}, previousFailureCount=failures, persistenceAllowed=["none", "forSession"],
                error=error and {"kind": error, "message": f"It was {error}."})
            self.can = self.can or broker.ask("auth/canAuthenticate", {"fetchId": "f1", "protectionSpace": asked["protectionSpace"]})
            if self.can == {"answer": True}:
                self.answers.append(broker.ask("auth/challenge", asked))
        return OK


def test_a_client_certificate_is_asked_for(broker, tmp_path):
    plan = Certificate("passphraseWrong")
    terminal = broker(plan).at_terminal("fetch", URL)
    terminal.expect("requests a client certificate", "Certificate (file, or pkcs11: URI): ")
    assert b"CN=Test authority" in terminal.shown and b"CN=Other" in terminal.shown
    terminal.type("~/me.pem\n")
    terminal.answer({
        "Private key (empty: in the same file): ": "/keys/me.key", "Passphrase of the key (empty: none): ": "sesame"})
    terminal.expect("It was passphraseWrong.")
    terminal.answer({"continue without a certificate.\r\nPassphrase of the key (empty: none): ": "open sesame"})
    assert terminal.end() == 0 and terminal.shown.count(b"Certificate (file") == 1
    assert b"sesame" not in terminal.shown
    given = {"type": "certificate", "certificate": f"{tmp_path}/me.pem", "privateKey": "/keys/me.key", "persistence": "forSession"}
    assert plan.answers == [{"action": "credential", "credential": {**given, "passphrase": word}} for word in ["sesame", "open sesame"]]


@pytest.mark.parametrize("typed", ["\n", "\x04"])
def test_an_empty_answer_continues_without_a_certificate(broker, typed):
    plan = Certificate()
    terminal = broker(plan).at_terminal("fetch", URL)
    terminal.expect("URI): ")
    terminal.type(typed)
    assert terminal.end() == 0 and b"Continuing without a certificate." in terminal.shown
    assert plan.answers == [{"action": "continue"}]


def test_the_terminal_states_the_limits(stage):
    server = stage.server(basic_server("bob", stage.secret()))
    shell = Shell(stage.configured("[limits]\nsession-idle-s = 90\nsession-lifetime-s = 3600\n"))
    for options, said in [
            ([], b"Stored for this session: until it is unused for 90 seconds or the computer sleeps, at most 1 hour."), (["--keep", "none"], None)]:
        terminal = shell.at_terminal("fetch", *options, server.url)
        terminal.expect("User: ")
        assert said in terminal.shown if said else b"this session" not in terminal.shown, terminal.shown
        terminal.type("\x04")
        terminal.end()


@pytest.mark.parametrize("params, prompt, said", [
    (about_trust("expired", sessionLimits={"lifetimeMs": 7_200_000}), "NO: ", "For the session: until the computer sleeps, at most 2 hours."),
    (about_trust("expired", persistenceAllowed=["none"]), "NO: ", None),
    (challenge("clientCertificate", {"distinguishedNames": []}, sessionLimits={"idleMs": 1000, "lifetimeMs": 120_000}), "URI): ",
     "Stored for this session: until it is unused for 1 second or the computer sleeps, at most 2 minutes.")])
def test_prompts_about_certificates_state_their_limits(broker, params, prompt, said):
    terminal = broker(lambda one, _: one.ask("auth/challenge", params) and OK).at_terminal("fetch", URL)
    terminal.answer({prompt: ""})
    terminal.end()
    shown = terminal.shown.decode()
    assert said in shown if said else "session:" not in shown, shown
