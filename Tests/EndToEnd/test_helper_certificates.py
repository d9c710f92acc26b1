"""The helper's questions about certificates, from a scripted broker."""
import base64
import contextlib
import subprocess

import pytest

from rig.broker import program
from rig.scripted_broker import OK, ScriptedBroker

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


def accepted(persistence):
    return {"action": "credential", "credential": {"type": "trust", "spkiSha256": "0c" * 32, "persistence": persistence}}


def run(broker, *arguments):
    """Runs the helper without a terminal."""
    return subprocess.run(
        [program("watchword"), *arguments], env=broker.environment, capture_output=True, timeout=30, start_new_session=True)


def say(terminal, prompt, *lines):
    """Types one line at each prompt: text typed before a prompt is not an answer to it."""
    for line in lines:
        terminal.expect(prompt)
        terminal.shown = b"" if line is not lines[-1] else terminal.shown
        terminal.type(line + "\n")


@pytest.mark.parametrize("typed, persistence", [
    ("fetch", "none"), ("f", "none"), ("session", "forSession"), ("always", "permanent"), ("unknown\nAlways", "permanent")])
def test_a_certificate_is_shown_and_accepted(broker, typed, persistence):
    plan = Trust("selfSigned", "hostMismatch")
    scripted = broker(plan)
    scripted.environment["TZ"] = "Europe/Berlin"
    terminal = scripted.at_terminal("fetch", "https://intranet.test:8443/")
    terminal.expect("Accept it? fetch/session/always/NO: ")
    for text in [
        b"https://intranet.test:8443 presents a certificate that is not trusted", b"is self-signed", b"for another host",
        b"CN=intranet.test", b"CN=Some authority", b"2026-01-01T01:00:00+01:00 to 2027-01-01T01:00:00+01:00", b"DNS:a9.test, and 2 more",
        b":".join([b"AB"] * 32), b":".join([b"0C"] * 32),
    ]:
        assert text in terminal.shown, terminal.shown
    assert b"DNS:a10.test" not in terminal.shown and b"key has changed" not in terminal.shown
    say(terminal, "Accept it? ", *typed.split("\n"))
    assert terminal.end() == 0 and b"done" in terminal.shown
    assert plan.answers == [accepted(persistence)] and plan.can == {"answer": True}


def test_a_certificate_without_names_is_not_said_to_be_for_another_host(broker):
    terminal = broker(Trust("hostMismatch", leaf={**LEAF, "subjectAltNames": []})).at_terminal("fetch", "https://intranet.test:8443/")
    terminal.expect("NO: ")
    assert b"It does not name any host." in terminal.shown and b"another host" not in terminal.shown
    terminal.type("n\n")
    terminal.end()


@pytest.mark.parametrize("typed", ["\n", "no\n", "N\n", "\x04"])
def test_the_default_answer_is_no(broker, typed):
    plan = Trust("expired")
    terminal = broker(plan).at_terminal("fetch", "https://intranet.test:8443/")
    terminal.expect("It has expired.", "NO: ")
    terminal.type(typed)
    assert terminal.end() == 60 and b"is not trusted." in terminal.shown
    assert plan.answers == [{"action": "reject"}]


def test_only_possible_persistence_is_offered(broker):
    plan = Trust("expired", persistenceAllowed=["none"])
    terminal = broker(plan).at_terminal("fetch", "https://intranet.test:8443/")
    terminal.expect("Accept it? fetch/NO: ")
    say(terminal, "Accept it? ", "always", "fetch")
    assert terminal.end() == 0 and plan.answers == [accepted("none")]


def test_text_of_a_certificate_has_no_effect_on_the_terminal(broker):
    plan = Trust("a\x1b[2J", leaf={**LEAF, "subject": "CN=\x1b[2Jevil", "subjectAltNames": ["DNS:\x1b[A"]})
    terminal = broker(plan).at_terminal("fetch", "https://intranet.test:8443/")
    terminal.answer({"NO: ": ""})
    terminal.end()
    assert b"\x1b" not in terminal.shown and b"evil" in terminal.shown


def test_k_shows_and_accepts_for_the_fetch(broker):
    plan = Trust("untrustedIssuer")
    terminal = broker(plan).at_terminal("fetch", "-k", "https://intranet.test:8443/")
    assert terminal.end() == 0
    assert b":".join([b"0C"] * 32) in terminal.shown and b"because of -k" in terminal.shown and b"Accept it?" not in terminal.shown
    assert plan.answers == [accepted("none")]


@pytest.mark.parametrize("problem, words", [("changed", "key has changed"), ("revoked", "has revoked")])
def test_k_does_not_accept_grave_problems(broker, problem, words):
    plan = Trust("selfSigned", problem)
    terminal = broker(plan).at_terminal("fetch", "-k", "https://intranet.test:8443/")
    terminal.expect(words)
    terminal.answer({"NO: ": ""})
    assert terminal.end() == 60 and plan.answers == [{"action": "reject"}]


@pytest.mark.parametrize("options, methods", [([], []), (["-k"], ["serverTrust"])])
def test_without_a_terminal_only_agents_receive_questions_about_certificates(broker, options, methods):
    started = broker(Trust("selfSigned"))
    assert run(started, "fetch", *options, "https://intranet.test:8443/").returncode == 60
    subscription = dict(started.called)["auth/subscribe"]
    assert set(subscription.pop("methods")) == {"httpBasic", "httpDigest", "ntlm", "negotiate", "bearer", "other", *methods}
    assert subscription == {"asksCanAuthenticate": True, "asksNeedBody": True}


def test_a_pin_is_the_only_decision(broker):
    plan = Trust("selfSigned")
    terminal = broker(plan).at_terminal("fetch", "--pinnedpubkey", PIN, "https://intranet.test:8443/")
    assert terminal.end() == 90 and b"does not match --pinnedpubkey" in terminal.shown
    assert plan.can == {"answer": False}
    assert plan.params["tls"] == {"trust": "always", "pin": {"type": "trust", "spkiSha256": "0c" * 32, "persistence": "none"}}


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
    terminal = broker(plan).at_terminal("fetch", "https://intranet.test:8443/")
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
    terminal = broker(plan).at_terminal("fetch", "https://intranet.test:8443/")
    terminal.expect("URI): ")
    terminal.type(typed)
    assert terminal.end() == 0 and b"Continuing without a certificate." in terminal.shown
    assert plan.answers == [{"action": "continue"}]


def test_a_certificate_in_the_command(broker, tmp_path):
    for name in ["me.pem", "me:1.pem", "me.key"]:
        (tmp_path / name).write_text("")
    for words, given in [
        (["-E", "me.pem:sesame"], {"certificate": f"{tmp_path}/me.pem", "passphrase": "sesame"}),
        (["--cert", f"{tmp_path}/me\\:1.pem", "--key", "me.key", "--pass", "a:b"],
         {"certificate": f"{tmp_path}/me:1.pem", "privateKey": f"{tmp_path}/me.key", "passphrase": "a:b"}),
        (["--cert=pkcs11:object=me;type=cert"], {"certificate": "pkcs11:object=me;type=cert"}),
    ]:
        folder = tmp_path / f"run{len(list(tmp_path.glob('run*')))}"
        folder.mkdir()
        plan = Certificate()
        with contextlib.closing(ScriptedBroker(folder, plan)) as started:
            done = subprocess.run(
                [program("watchword"), "fetch", *words, "--keep", "none", "https://intranet.test:8443/"], env=started.environment,
                cwd=tmp_path, capture_output=True, timeout=30, start_new_session=True)
        assert done.returncode == 0, done
        assert plan.params["tls"]["certificate"] == {"type": "certificate", "persistence": "none", **given}
