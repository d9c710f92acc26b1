"""The agent without windows: its queue, texts, answers, command line, and its registration with the broker."""
import dataclasses
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import time

import pytest

from rig import schemas
from rig.bodies import eventually
from rig.broker import ROOT, program
from rig.desktop import AGENT, RunningAgent, askpass
from rig.subjects import AS_NOBODY, home_of_nobody

sys.path.insert(0, str(ROOT / "contrib" / "agent"))

from watchword_agent import answers, certificate_files, escaping, recent, secret, texts, typed_files  # noqa: E402
from watchword_agent.fallbacks import conversation  # noqa: E402
from watchword_agent.fallbacks.conversation import converse  # noqa: E402
from watchword_agent.fallbacks.dialogue import picked  # noqa: E402
from watchword_agent.question import Kind, NotUnderstood, read  # noqa: E402
from watchword_agent.question_queue import Close, PassOn, QuestionQueue, Recount, Reply, Show  # noqa: E402

EXAMPLES = ROOT / "Protocol" / "examples"


def message(name, number=1, **changes):
    example = json.loads((EXAMPLES / f"{name}.json").read_text())
    params = {**example["params"], **changes}
    return {"jsonrpc": "2.0", "id": number, "method": example["method"], "params": params}


def question(name="auth.challenge/ntlm", number=1, now=0.0, **changes):
    return read(message(name, number, challengeId=f"c{number}", **changes), now)


def other_host(host):
    return {**message("auth.challenge/ntlm")["params"]["protectionSpace"], "host": host}


# Questions

CANCEL = {"action": "cancel"}


@pytest.mark.parametrize("name, kind, refusal, stop", [
    ("auth.challenge/ntlm", Kind.LOGIN, CANCEL, CANCEL), ("auth.challenge/bearer", Kind.TOKEN, CANCEL, CANCEL),
    ("auth.challenge/client-certificate", Kind.CERTIFICATE, CANCEL, CANCEL),
    ("auth.challenge/server-trust", Kind.TRUST, {"action": "reject"}, CANCEL),
    ("auth.confirm/sandbox", Kind.CONSENT, {"allow": "no"}, {"allow": "no"})])
def test_every_kind_of_question_is_parsed_refused_by_closing_it_and_stopped(name, kind, refusal, stop):
    asked = read(message(name), 0)
    assert (asked.kind, answers.refusal(asked), answers.stop_asking(asked)) == (kind, refusal, {**stop, "stopAsking": True})


@pytest.mark.parametrize("broken", [
    message("auth.challenge/other"), {"id": 1, "method": "auth/challenge", "params": {}}, {"id": 1, "method": "auth/challenge"},
    message("auth.challenge/ntlm", requester=7), message("auth.challenge/ntlm", accepts=[]),
    message("auth.confirm/sandbox", subject=None), message("auth.prompt/secret", kind="password"),
    message("auth.prompt/secret", kind=None), message("auth.prompt/secret", requester=None)])
def test_malformed_questions_are_refused(broken):
    with pytest.raises(NotUnderstood):
        read(broken, 0)


@pytest.fixture
def queue():
    """A queue with one question, which is shown."""
    queue = QuestionQueue()
    queue.arrived(question(number=1))
    return queue


@pytest.mark.parametrize("number", [True, 1.0, "1", None, [1]])
def test_a_question_and_its_withdrawal_have_a_number(queue, number):
    with pytest.raises(NotUnderstood):
        read({**message("auth.challenge/ntlm"), "id": number}, 0)
    assert queue.request_withdrawn(number) == []


@pytest.mark.parametrize("typed, value", [("1", "a"), (" 2 ", "b"), ("0", None), ("3", None), ("\u0661", None), ("\u00b2", None), ("", None)])
def test_a_choice_is_made_with_ascii_digits(typed, value):
    assert picked([("a", "A"), ("b", "B")], secret.Secret(bytearray(typed.encode()))) == value


# The queue

def test_one_question_is_shown_and_the_others_wait():
    queue = QuestionQueue()
    first, second = question(number=1), question(number=2, protectionSpace=other_host("b.example"))
    assert queue.arrived(first) == [Show(first, 0)]
    assert queue.arrived(second) == [Recount(1)]
    assert queue.answered(CANCEL) == [Reply(1, CANCEL), Show(second, 0)]
    assert queue.answered(CANCEL) == [Reply(2, CANCEL)]
    assert queue.shown is None and queue.answered(CANCEL) == []


def test_the_same_question_of_the_same_program_is_asked_once(queue):
    assert queue.arrived(question(number=2, url="https://intranet.example/other")) == []
    assert queue.answered(CANCEL) == [Reply(1, CANCEL), Reply(2, CANCEL)]


@pytest.mark.parametrize("change", [
    {"requester": {"name": "example", "pid": 1, "subject": "exe:/usr/bin/mytool"}}, {"previousFailureCount": 1},
    {"requester": {"name": "example", "pid": 4711, "subject": "exe:/tmp/mytool"}}, {"persistenceAllowed": ["none"]},
    {"protectionSpace": other_host("b.example")}, {"downgrade": True}, {"error": {"kind": "credentialAlreadyRefused"}},
    {"certificateException": "ab" * 32}, {"namedProxy": "http://h:1"},
    {"knownUsers": [{"id": "session:0", "user": "eve", "source": "session"}]}])
def test_questions_that_differ_in_a_shown_value_are_asked_separately(queue, change):
    assert queue.arrived(question(number=2, **change)) == [Recount(1)]


def test_once_applies_to_one_fetch():
    queue = QuestionQueue()
    first, second = (read(message("auth.confirm/sandbox", number, confirmId=f"c{number}"), 0) for number in (1, 2))
    queue.arrived(first)
    assert queue.arrived(second) == []
    assert queue.answered({"allow": "once"}) == [Reply(1, {"allow": "once"}), Show(second, 0)]
    assert queue.answered({"allow": "no"}) == [Reply(2, {"allow": "no"})]


def test_a_withdrawn_question_is_closed_and_the_next_is_shown():
    queue = QuestionQueue()
    first = question(number=1)
    second, third = (question(number=number, protectionSpace=other_host(f"{number}.example")) for number in (2, 3))
    for one in (first, second, third):
        queue.arrived(one)
    assert queue.request_withdrawn(2) == [Recount(1)]
    assert queue.challenge_settled("c1") == [Close(first), Show(third, 0)]
    assert queue.challenge_settled("c1") == []
    assert queue.connection_lost() == [Close(third)] and queue.shown is None


def test_a_window_stays_while_an_equal_question_is_open(queue):
    queue.arrived(question(number=2))
    assert queue.request_withdrawn(1) == []
    assert queue.answered(CANCEL) == [Reply(2, CANCEL)]


def test_deadlines_close_windows():
    queue = QuestionQueue()
    first, second = question(number=1, now=10), question(number=2, now=20, protectionSpace=other_host("b"))
    queue.arrived(first)
    queue.arrived(second)
    assert queue.next_deadline == 130 and queue.expire(129.9) == []
    assert queue.expire(130) == [Close(first), Show(second, 0)]
    assert queue.expire(140) == [Close(second)] and queue.next_deadline is None


def test_questions_that_cannot_be_shown_are_passed_on(queue):
    queue.arrived(question(number=2))
    assert queue.passed_on() == [PassOn(1), PassOn(2)]


# Texts

@pytest.mark.parametrize("text, shown", [
    ("Staff", "Staff"), ("<b>&", "<b>&"), ("a\u202eb", "a‹U+202E›b"), ("a\nb\tc\x1b[2J", "a‹U+000A›b‹U+0009›c‹U+001B›[2J"),
    ("\u2066x\u2069", "‹U+2066›x‹U+2069›"), ("\u200b", "‹U+200B›"), ("\u3164", "‹U+3164›"), ("a\u00a0b", "a b"), ("שלום", "שלום"),
    ("e" + "\u0301" * 5, "e" + "\u0301" * 3 + "‹U+0301›" * 2), ("a" * 50 + "z" * 31, "a" * 50 + "zzzz…" + "z" * 26), ("\u200b" * 11, "‹U+200B›" * 6 + "…" + "‹U+200B›" * 3),
    ("x" * 80, "x" * 80), (None, ""),
    ("\ud800", "‹U+D800›"), ("\u2028", "‹U+2028›")])
def test_text_is_escaped_and_bounded(text, shown):
    assert escaping.shown(text) == shown


def test_the_security_of_the_connection_is_described():
    def said(name="auth.challenge/ntlm", proxy=None, **space):
        return texts.security(question(name, protectionSpace={**message(name)["params"]["protectionSpace"], **space}, namedProxy=proxy))

    plain = {"protocol": "http", "port": 80, "receivesCredentialSecurely": False}
    assert said() == (True, "The connection is encrypted (https)")
    assert said(**plain, authenticationMethod="httpBasic") == (
        False, "The password would be readable on the network: http is not encrypted")
    assert said(**plain)[0] is False and "relayed" in said(**plain)[1]
    assert said(**{**plain, "receivesCredentialSecurely": True}, authenticationMethod="httpDigest") == (
        True, "Not encrypted (http), but the password itself is not sent")
    for host in ("127.0.0.1", "[::1]", "localhost", "a.localhost"):
        assert said(**plain, host=host, authenticationMethod="httpBasic") == (
            True, "Not encrypted (http), but the password stays on this machine unless a proxy is used")
        assert said(**plain, host=host, isProxy=True, authenticationMethod="httpBasic") == (
            True, "Not encrypted (http), but the password stays on this machine")
    for host in ("localhost.example", "[::2]", "127.0.0.1.example"):
        assert said(**plain, host=host, authenticationMethod="httpBasic")[0] is False
    # A proxy that the program names is said if it can read the request.
    proxy = "socks5h://127.0.0.1:1080"
    assert said(proxy=proxy) == (True, "The connection is encrypted (https)")
    for host in ("h.example", "localhost"):
        assert said(proxy=proxy, protocol="http", host=host) == (
            False, f"Not encrypted, and sent to a proxy that the program names: {proxy}")
    for name in ("auth.challenge/ntlm", "auth.challenge/bearer"):
        assert texts.exception(question(name)) is None
        assert texts.security(question(name, certificateException="ab" * 32)) == (
            False, "The server is not verified: its certificate was accepted by exception")


def test_failed_attempts_are_described_and_counted():
    assert texts.failures(question(previousFailureCount=0)) is None
    assert texts.failures(question(previousFailureCount=1)) == "The last password was refused. Attempt 2."
    assert texts.failures(question(previousFailureCount=10)) == "The last password was refused. Attempt 11."
    assert texts.failures(question(previousFailureCount=1, error={"kind": "passphraseWrong"})) == (
        "The passphrase or PIN is wrong or missing. Attempt 2.")
    assert texts.failures(question(error={"kind": "news\u202e"})) == "The last answer could not be used: news‹U+202E›."


def test_a_program_and_a_server_are_named():
    requester = question(requester={"name": "Your Bank", "pid": 7, "subject": "exe:/tmp/evil"}).requester
    assert texts.program(requester) == "evil"
    assert texts.program_place(requester) == "/tmp/evil, process 7, calls itself “Your Bank”"
    unknown = question(requester={"name": "Your Bank", "pid": 7, "subject": "unknown", "restricted": True}).requester
    assert texts.program(unknown) == "an unknown program"
    assert texts.program_place(unknown) == (
        "Cannot be identified, process 7, calls itself “Your Bank”, in a container or on another machine")
    for host in ("::1", "[::1]"):
        assert texts.heading(question(protectionSpace=other_host(host))) == "Log in to [::1]"
    asked = question("auth.challenge/proxy")
    assert texts.heading(asked).startswith("Log in to the proxy ") and texts.server_says(asked).startswith("The proxy says: “")
    assert escaping.quoted("Staff” and it is safe “") == "“Staff' and it is safe '”"


def test_problems_of_a_certificate_are_listed_gravest_first():
    asked = read(message("auth.challenge/server-trust-changed"), 0)
    assert texts.problems(asked)[0].startswith("Its key differs") and texts.is_grave(asked)
    leaf = asked.chain[0]
    assert texts.fingerprint(leaf.sha256).replace("\n", ":").replace(":", "").lower() == leaf.sha256
    assert texts.date("2026-11-21T10:21:24Z") == "21 November 2026" and texts.date("\x1bsoon") == "‹U+001B›soon"


def test_a_certificate_without_names_and_one_without_problems():
    params = message("auth.challenge/server-trust")["params"]
    trust = params["protectionSpace"]["serverTrust"]

    def asked(problems, names):
        chain = [{**trust["chain"][0], "subjectAltNames": names}]
        return question("auth.challenge/server-trust", protectionSpace={
            **params["protectionSpace"], "serverTrust": {**trust, "problems": problems, "chain": chain}})

    assert texts.problems(asked(["hostMismatch"], [])) == ["It does not name any server."]
    assert texts.problems(asked(["hostMismatch"], ["DNS:a.example"])) == ["It was issued for another name: a.example."]
    assert texts.problems(asked([], [])) == ["It is valid. The program asks you to confirm it."]
    assert "does not prove" not in texts.trust_summary(asked([], [])), "it has no problem"


def test_times_are_local(monkeypatch):
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    time.tzset()
    try:
        assert texts.date("2026-11-21T20:00:00Z") == "22 November 2026"
        now = datetime.datetime.fromisoformat("2026-11-22T10:00:00+13:00")
        assert recent.when("2026-11-21T20:00:00Z", now) == "09:00:00"
        assert recent.when("2026-11-20T20:00:00Z", now) == "21 November 2026 09:00"
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("event, said", [
    ({"kind": "grantRevoked", "count": 1}, "Revoked 1 permission"), ({"kind": "grantRevoked", "count": 2}, "Revoked 2 permissions"),
    ({"kind": "eventsLost", "count": 1}, "1 event is missing here"), ({"kind": "eventsLost"}, "Some events are missing here"),
    ({"kind": "sessionCleared"}, "Forgot logins of this session"),
    ({"kind": "sessionCleared", "origin": "https://a.example"}, "Forgot this session's logins for https://a.example"),
    ({"kind": "challengeAnswered", "action": "reject", "origin": "https://a.example"}, "https://a.example asked: rejected")])
def test_events_are_counted_and_described(event, said):
    assert recent.what(event) == said
    assert recent.who({"kind": "credentialUsed", "count": 1}).endswith(" · 1 time")
    assert recent.who({"kind": "credentialUsed", "count": 3}).endswith(" · 3 times")


def test_no_text_says_until_you_log_out():
    """The broker removes a session login after a time, and can outlive the login session."""
    assert texts.stored_place("session") == "for this session"
    for file in (ROOT / "contrib" / "agent").rglob("*.py"):
        assert "log out" not in file.read_text().lower(), file


# Answers

def test_only_allowed_persistence_is_answered_and_refusals_are_known():
    assert answers.allowed_persistence(question(persistenceAllowed=["none"])) == ["none"]
    assert answers.usual_keep(question(persistenceAllowed=["none"])) == "none"
    assert answers.usual_keep(question()) == "forSession"
    assert answers.usual_keep(read(message("auth.challenge/server-trust"), 0)) == "none"
    for refusal in (answers.cancel(), answers.continue_without(), answers.reject(), answers.allow("no")):
        assert answers.is_refusal(refusal)
    for consent in (answers.leave_it(), answers.use_proposed(), answers.allow("once")):
        assert not answers.is_refusal(consent)


def test_a_secret_reaches_the_wire_whole_and_is_wiped():
    for text in ["open sesame", 'quo"te\\', "\n\x00\x1f", "päss", "🔑", ""]:
        content = secret.Secret(bytearray(text.encode()))
        answer = answers.password("bob", content, "CORP", "none")
        line = secret.line({"jsonrpc": "2.0", "id": 1, "result": answer})
        assert json.loads(line)["result"]["credential"] == {
            "type": "password", "user": "bob", "password": text, "domain": "CORP", "persistence": "none"}
        schemas.check(json.loads(line)["result"], schemas.methods("brokerToClient")["auth/challenge"]["result"]["schema"])
        answers.wipe(answer)
        assert content.text() == "\0" * len(text.encode()) and "sesame" not in repr(answer)


class Dialogue:
    """A dialogue at which a person types these texts, then cancels, and chooses `chosen` if it is offered."""

    def __init__(self, *typed, chosen=None):
        self.typed, self.chosen, self.prompts, self.offered = list(typed), chosen, [], []

    def has_room(self, text):
        return True

    def line(self, text, prompt, initial):
        self.prompts.append(prompt)
        return self.typed.pop(0) if self.typed else None

    def secret(self, text, prompt, short=""):
        typed = Dialogue.line(self, text, prompt, "")
        return None if typed is None else secret.Secret(bytearray(typed.encode()))

    def choose(self, text, choices, refusal):
        self.offered.append([value for value, _ in choices])
        return self.chosen if self.chosen in self.offered[-1] else None


def test_stopping_is_offered_after_a_repeated_refusal():
    asked = question()
    dialogue = Dialogue(chosen="stop")
    assert conversation.converse(asked, dialogue) == CANCEL and dialogue.offered == []
    repeated = dataclasses.replace(asked, is_repeated=True)
    assert conversation.converse(repeated, Dialogue(chosen="stop")) == {**CANCEL, "stopAsking": True}
    assert conversation.converse(repeated, Dialogue()) == CANCEL
    assert repeated.key == asked.key, "equal questions have equal keys"


def test_a_path_is_checked_before_it_is_sent(tmp_path):
    (tmp_path / "c.pem").write_text("x")
    assert certificate_files.checked(f" {tmp_path}/c.pem ") == f"{tmp_path}/c.pem"
    assert certificate_files.checked("pkcs11:object=x") == "pkcs11:object=x"
    for wrong, said in [("c.pem", "is not a full path"), (str(tmp_path), "is a folder"), (f"{tmp_path}/d.pem", "No such file")]:
        with pytest.raises(certificate_files.NotUsable, match=said):
            certificate_files.checked(wrong)


def test_the_files_of_a_certificate_survive_a_wrong_passphrase_but_no_pin_does():
    typed = typed_files.TypedFiles()
    failed = {"previousFailureCount": 1, "error": {"kind": "passphraseWrong"}}
    first = question("auth.challenge/client-certificate", error=None, previousFailureCount=0)
    again = question("auth.challenge/client-certificate", **failed)
    other = question("auth.challenge/client-certificate", **failed, requester={"name": "x", "pid": 1, "subject": "exe:/tmp/x"})
    typed.record(first, answers.certificate("/a.pem", "/a.key", secret.Secret(bytearray(b"x")), "none"))
    typed.record(first, answers.cancel())
    assert (typed.of(again), typed.of(first), typed.of(other)) == (("/a.pem", "/a.key"), ("", ""), ("", ""))
    assert dataclasses.replace(again, typed_files=typed.of(again)).key == again.key, "equal questions have equal keys"
    dialogue = Dialogue()
    dialogue.line = lambda text, prompt, initial: dialogue.offered.append(initial) or initial
    assert conversation.converse(dataclasses.replace(again, typed_files=("pkcs11:a", "pkcs11:b")), dialogue) == CANCEL
    assert dialogue.offered == ["pkcs11:a", "pkcs11:b"]
    typed.record(first, answers.certificate("pkcs11:object=x?pin-value=1234", "pkcs11:object=x?pin-source=file:/pin", None, "none"))
    assert typed.of(again) == ("", "")
    assert typed.of(again) == ("", "")


def test_choosing_a_file_begins_where_one_was_typed(tmp_path):
    home = os.path.expanduser("~")
    for typed, folder in [(f"{tmp_path}/c.pem", str(tmp_path)), ("", home), ("c.pem", home), ("/no/such/c.pem", home), ("~/c", home)]:
        assert certificate_files.folder_of(typed) == folder


def test_recent_use_is_read_from_the_audit_log(tmp_path):
    names = ("credential-used", "challenge-answered")
    events = [json.loads((EXAMPLES / "event" / f"{name}.json").read_text())["params"] for name in names]
    (tmp_path / "audit.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events) + '{"half')
    answered, used = recent.read(tmp_path / "audit.jsonl")
    assert recent.what(used) == "Login at https://intranet.example as “bob”"
    assert "/usr/bin/mytool, process 4711 · from the keyring" in recent.who(used)
    assert recent.what(answered) == "http://intranet.example:8080 asked: answered"
    assert recent.read(tmp_path / "nothing.jsonl") == []


@pytest.mark.parametrize("kind", schemas.document()["components"]["schemas"]["eventKind"]["enum"])
def test_every_kind_of_event_has_a_text(kind):
    said = recent.what({"kind": kind, "origin": "https://intranet.example", "user": "bob"})
    assert kind not in said or not recent.is_of_interest({"kind": kind}), said
    assert recent.what({"kind": "credentialHandedOut", "origin": "https://a.example", "user": "bob"}) == (
        "Received the password for https://a.example as “bob”")


# The command line

def run(*words, environment=None):
    return subprocess.run(
        ["/usr/bin/python3", AGENT, *words], env={"PATH": "/usr/bin:/bin", **(environment or {})}, capture_output=True, text=True,
        timeout=30, start_new_session=True)


def test_the_command_prints_its_usage_and_its_errors(tmp_path):
    told = run("--help")
    assert told.returncode == 0 and all(word in told.stdout for word in ["--list", "--fallback", "--socket", "exit codes"])
    wrong = run("--colour")
    assert wrong.returncode == 64 and "Try: watchword-agent --help" in wrong.stderr
    nowhere = run(environment={"XDG_RUNTIME_DIR": str(tmp_path), "PATH": str(tmp_path)})
    assert nowhere.returncode == 1, nowhere
    assert all(f"{way}: " in nowhere.stderr for way in ["windows", "zenity", "pinentry", "askpass", "terminal"]), nowhere.stderr
    listing = run("--list")
    assert listing.returncode == 1 and "watchword credentials list" in listing.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="is run by another user already")
def test_the_agent_is_known_to_the_broker_and_hidden_from_others(stage):
    """Run as an ordinary user. The broker treats a process that it cannot read as sandboxed, and a sandboxed process may not be
    an agent."""
    folder = stage.folder / "nobody"
    environment = {**home_of_nobody(folder, "watchwordd"), "PYTHONDONTWRITEBYTECODE": "1", **askpass(folder, "unused-here")}
    shutil.copytree(ROOT / "contrib" / "agent", folder / "agent", ignore=shutil.ignore_patterns("__pycache__"))
    for path in folder.rglob("*"):
        os.chown(path, 65534, 65534)
    started = []

    def start(*command):
        log = open(folder / f"log{len(started)}", "ab")
        started.append(subprocess.Popen([*AS_NOBODY, *command], env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
        return started[-1]

    start_broker = lambda: start(folder / "watchwordd", "--socket", folder / "run" / "broker.sock")
    def can_be_looked_at():
        return subprocess.run([*AS_NOBODY, "ls", f"/proc/{agent.pid}/fd"], capture_output=True).returncode == 0

    environment["WATCHWORD_SOCKET"] = str(folder / "run" / "broker.sock")
    try:
        broker = start_broker()
        agent = start(folder / "agent" / "watchword-agent", "--fallback", "askpass")
        said = lambda: "".join((folder / f"log{number}").read_text() for number in range(len(started)))
        count = lambda: said().count("registered with the broker")
        eventually(lambda: count() == 1, said)
        assert not can_be_looked_at()
        limits = open(f"/proc/{agent.pid}/limits").read()
        assert re.search(r"^Max core file size +0 +0 ", limits, re.M), limits
        broker.terminate()
        broker.wait(30)
        start_broker()
        eventually(lambda: count() == 2, said)
        assert not can_be_looked_at()
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait(30)


def test_a_broker_that_allows_no_agent_is_named(stage, tmp_path):
    """The restricted socket allows no agent."""
    broker = stage.broker()
    agent = RunningAgent(stage.folder, broker, None, "--fallback", "askpass", environment={
        **askpass(tmp_path, "x"), "WATCHWORD_SOCKET": broker.restricted})
    assert agent.process.wait(30) == 1 and "the broker allows no agent here" in agent.log


def test_the_desktop_entry_and_the_unit_are_valid():
    folder = ROOT / "contrib" / "agent"
    subprocess.run(["desktop-file-validate", folder / "watchword-agent.desktop"], check=True)
    unit = (folder / "watchword-agent.service").read_text()
    assert re.search(r"^WantedBy=graphical-session.target$", unit, re.M)
    verified = subprocess.run(
        ["systemd-analyze", "--user", "verify", "--man=no", folder / "watchword-agent.service"], capture_output=True, text=True)
    assert "watchword-agent.service:" not in verified.stderr.replace("is not executable", ""), verified.stderr


def known(*users):
    return [{"id": f"session:{number}", "user": user, "source": "session"} for number, user in enumerate(users)]


def test_known_users_are_read_and_malformed_ones_are_ignored():
    asked = question("auth.challenge/known-users")
    assert [(one.name, one.source) for one in asked.known_users] == [("alice", "keyring"), ("CORP\\bob", "session")]
    odd = question("auth.challenge/known-users", knownUsers=[7, {"id": 1, "user": "a"}, {"id": "session:1"}, *known("eve")])
    assert [one.user for one in odd.known_users] == ["eve"]
    assert question("auth.challenge/known-users", knownUsers={"id": "x"}).known_users == ()


@pytest.mark.parametrize("user, is_apart", [("bob", False), ("BOB", True), ("carol", True)])
def test_a_proposed_user_is_offered_separately_unless_it_is_known(user, is_apart):
    proposed = {"user": user, "hasPassword": True, "source": "keyring"}
    assert question("auth.challenge/known-users", proposedCredential=proposed).is_proposal_apart is is_apart


@pytest.mark.parametrize("name, identifier", [
    ("alice", "session:0"), ("CORP\\bob", "session:2"), ("\u212a", "session:1"), ("caf\u00e9", "session:3"),
    ("bob", None), ("ALICE", None), ("k", None), ("K", None), ("cafe\u0301", None), (" alice", None)])
def test_without_windows_the_name_of_a_saved_login_is_enough(name, identifier):
    """Names are compared byte by byte: another user may have a name that looks the same."""
    listed = known("alice", "\u212a", "bob", "caf\u00e9")
    listed[2]["domain"] = "CORP"
    dialogue = Dialogue(name, "secret")
    answer = converse(question("auth.challenge/known-users", knownUsers=listed), dialogue)
    if identifier:
        assert answer == {"action": "credential", "credential": {"type": "stored", "id": identifier}}
        assert dialogue.prompts == ["User"]
    else:
        assert (answer["credential"]["type"], answer["credential"]["user"]) == ("password", name)
