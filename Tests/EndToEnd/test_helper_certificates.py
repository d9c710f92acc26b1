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
    assert plan.answers == [accepted(persistence)] and plan.can == {"answer": True}


@pytest.mark.parametrize("plan, options, lines, code, answers, shown, hidden", [
    *((Trust("expired"), [], {"NO: ": line}, 60, [REJECT], ["It has expired.", "is not trusted."], []) for line in ("", "no", "N")),
    (Trust("hostMismatch", leaf={**LEAF, "subjectAltNames": []}), [], {"NO: ": "n"}, 60, [REJECT], ["It does not name any host."], ["another host"]),
    (Trust("expired", persistenceAllowed=["none"]), [], {"it? fetch/NO: ": "always", "always\r\nAccept it? fetch/NO: ": "fetch"}, 0,
     [accepted("none")], ["It has expired."], []),
    # A certificate has no effect on the terminal.
    (Trust("a\x1b[2J", leaf={**LEAF, "subject": "CN=\x1b[2Jevil", "subjectAltNames": ["DNS:\x1b[A"]}), [], {"NO: ": ""}, 60,
     [REJECT], ["evil"], ["\x1b"]),
    (Trust("untrustedIssuer"), ["-k"], {}, 0, [accepted("none")], [":".join(["0C"] * 32), "because of -k"], ["Accept it?"]),
    (Trust("selfSigned", "changed"), ["-k"], {"NO: ": ""}, 60, [REJECT], ["key has changed"], []),
    (Trust("selfSigned", "revoked"), ["-k"], {"NO: ": ""}, 60, [REJECT], ["has revoked"], []),
    (Trust("selfSigned"), ["--pinnedpubkey", PIN], {}, 90, [], ["does not match --pinnedpubkey"], [])], ids=range(10))
def test_a_decision_about_a_certificate(broker, plan, options, lines, code, answers, shown, hidden):
    terminal = broker(plan).at_terminal("fetch", *options, URL)
    terminal.answer(lines)
    assert terminal.end() == code and plan.answers == answers
    assert all(text.encode() in terminal.shown for text in shown) and not any(text.encode() in terminal.shown for text in hidden)
    assert plan.can == {"answer": "--pinnedpubkey" not in options}
    if "--pinnedpubkey" in options:
        assert plan.params["tls"] == {"trust": "always", "pin": {"type": "trust", "spkiSha256": "0c" * 32, "persistence": "none"}}


def test_the_end_of_input_is_no(broker):
    plan = Trust("expired")
    terminal = broker(plan).at_terminal("fetch", URL)
    terminal.expect("NO: ")
    terminal.type("\x04")
    assert terminal.end() == 60 and plan.answers == [REJECT]


@pytest.mark.parametrize("options, methods", [([], []), (["-k"], ["serverTrust"])])
def test_without_a_terminal_only_agents_receive_questions_about_certificates(broker, options, methods):
    started = broker(Trust("selfSigned"))
    assert run(started, "fetch", *options, URL).returncode == 60
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
