"""The agent without windows: its list of client certificates, and its connection to a broker that misbehaves."""
import base64
import contextlib
import datetime
import json
import os
import socket
import subprocess
import sys
import time

import pytest

from rig import tls
from rig.broker import ROOT
from test_client_certificates import with_token

sys.path.insert(0, str(ROOT / "contrib" / "agent"))

from gi.repository import GLib  # noqa: E402
from watchword_agent import certificate_choices, connection as subject, recent_files, x509  # noqa: E402

TOKEN_PROGRAM = ROOT / "contrib" / "agent" / "watchword_agent" / "token_program.py"
NOW = datetime.datetime(2026, 11, 24)


def openssl(*words, text=b""):
    done = subprocess.run(["openssl", *words], input=text, capture_output=True, timeout=20)
    assert done.returncode == 0, done.stderr
    return done.stdout


# Certificates

@pytest.mark.parametrize("subject", [
    "/CN=Alice Client", "/C=DE/O=Example, Inc./OU=R+D/CN=J\u00f6rg \u65e5\u672c", "/DC=org/DC=example/UID=7/emailAddress=a@b.example",
    "/O= leading/CN=#hash \\/ \"quoted\" <x>;", "/CN=two/CN=names", "/O=a+OU=b/CN=c"])
def test_names_are_written_as_openssl_writes_them(subject):
    """The broker writes the accepted issuers with OpenSSL."""
    made = openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "/dev/null", "-utf8",
                   "-subj", subject, "-days", "3", *(["-multivalue-rdn"] if "+" in subject else []))
    options = ["-noout", "-nameopt", "RFC2253,-esc_msb,utf8", "-dateopt", "iso_8601"]
    told = openssl("x509", *options, "-subject", "-issuer", "-enddate", text=made).decode().splitlines()
    [found] = x509.summaries(made)
    assert [f"subject={found.subject}", f"issuer={found.issuer}"] == told[:2]
    assert found.not_after == told[2].partition("=")[2].replace(" ", "T")
    assert x509.summaries(openssl("x509", "-outform", "DER", text=made)) == [found]


@pytest.mark.parametrize("name, short", [
    ("CN=Alice Client", "Alice Client"), ("CN=a\\,b,O=c", "a,b"), ("emailAddress=a@b.example,O=c", "a@b.example"), ("O=CN=x", "O=CN=x"),
    ("O=only", "O=only")])
def test_the_common_name_is_shown(name, short):
    assert x509.short_name(name) == short


@pytest.mark.parametrize("years", [2049, 2051])
def test_expiry_is_read_in_both_forms(years):
    """Times from 2050 on have another form (RFC 5280 section 4.1.2.5)."""
    tag, text = (0x17, f"{years % 100:02}0102030405Z") if years < 2050 else (0x18, f"{years}0102030405Z")
    assert x509._time(tag, text.encode()) == f"{years}-01-02T03:04:05Z"


def test_damaged_certificates_are_left_out(certificates):
    content = (certificates / "client.pem").read_bytes()
    der = base64.b64decode(content.split(b"-----")[2])
    [whole] = x509.summaries(content)
    for length in range(0, len(der), 7):
        assert x509.summaries(der[:length]) == []
    for place in range(0, len(der), 3):
        x509.summaries(der[:place] + bytes([der[place] ^ 0x85]) + der[place + 1:])
    assert x509.summaries(b"-----BEGIN CERTIFICATE-----\nAAA=\n-----END CERTIFICATE-----\n" + content) == [whole]


# Files

@pytest.fixture
def home(tmp_path, certificates):
    """A home directory whose ~/.pki contains certificates, and files that are none."""
    folder = tmp_path / "home" / ".pki"
    folder.mkdir(parents=True)
    for name in ("client.pem", "client.key", "stranger.pem", "stranger.key", "expired-client.pem", "expired-client.key", "client.p12"):
        (folder / name).write_bytes((certificates / name).read_bytes())
    both = (certificates / "other-client.pem").read_bytes() + (certificates / "other-client.key").read_bytes()
    (folder / "both.pem").write_bytes(both)
    (folder / "ca.pem").write_bytes((certificates / "ca.pem").read_bytes())
    (folder / "broken.pem").write_bytes(b"-----BEGIN CERTIFICATE-----\n")
    (folder / "large.pem").write_bytes(both + bytes(certificate_choices.SIZE_LIMIT_BYTES))
    os.mkfifo(folder / "pipe.pem")
    (folder / "nssdb.pem").mkdir()
    return tmp_path / "home"


@pytest.mark.parametrize("content", [b"\x30\x00", b"-----BEGIN CERTIFICATE-----\n\n-----END CERTIFICATE-----\n", b"\x30"])
def test_an_empty_certificate_is_left_out(content):
    assert x509.summaries(content) == []


def test_files_with_a_key_are_found_in_the_folder(home):
    found = [(os.path.basename(one.certificate), os.path.basename(one.private_key), one.summary and one.summary.name)
             for one in certificate_choices.on_files([], str(home))]
    assert found == [
        ("both.pem", "", "Bob Client"), ("client.p12", "", None), ("client.pem", "client.key", "Alice Client"),
        ("expired-client.pem", "expired-client.key", "Late Client"), ("stranger.pem", "stranger.key", "Stranger Client")]
    assert certificate_choices.on_files([], str(home / "nowhere")) == []


def test_accepted_issuers_come_first_and_expired_certificates_last(home):
    choices = certificate_choices.on_files([(str(home / ".pki" / "client.pem"), str(home / ".pki" / "client.key"))], str(home))
    token = certificate_choices.Choice("pkcs11:a", "pkcs11:a", certificate_choices.TOKEN, x509.Summary("CN=T", "CN=U", "2030-01-01T00:00:00Z"), ("CN=U",))
    in_order = sorted([*choices, token], key=lambda one: certificate_choices.rank(one, ["CN=Test authority"], NOW))
    assert [os.path.basename(one.certificate) for one in in_order] == [
        "client.pem", "both.pem", "expired-client.pem", "pkcs11:a", "client.p12", "stranger.pem"]
    strangers = sorted([*choices, token], key=lambda one: certificate_choices.rank(one, ["CN=Another authority"], NOW))
    assert os.path.basename(strangers[0].certificate) == "stranger.pem"


def test_a_chain_in_the_file_counts(tmp_path, certificates):
    """The server names the root, and the certificate is of an authority below it."""
    chain = (certificates / "client.pem").read_bytes() + (certificates / "stranger.pem").read_bytes() + b"-----BEGIN PRIVATE KEY-----\n"
    (tmp_path / ".pki").mkdir()
    (tmp_path / ".pki" / "chain.pem").write_bytes(chain)
    [choice] = certificate_choices.on_files([], str(tmp_path))
    assert choice.issuers == ("CN=Test authority", "CN=Another authority") and choice.summary.name == "Alice Client"


# Recently used files

def used(certificate, key=""):
    credential = {"type": "certificate", "certificate": certificate, "persistence": "forSession", **({"privateKey": key} if key else {})}
    return {"action": "credential", "credential": credential}


def test_recent_files_are_remembered_by_path_privately_and_bounded(tmp_path):
    path = tmp_path / "state" / "watchword" / "list.json"
    for number in range(recent_files.LIMIT + 3):
        recent_files.record(str(path), used(f"/c/{number}.pem", f"/c/{number}.key"))
    recent_files.record(str(path), used("/c/9.pem"))
    found = recent_files.read(str(path))
    assert found[:2] == [("/c/9.pem", ""), ("/c/10.pem", "/c/10.key")] and len(found) == recent_files.LIMIT
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
    assert os.listdir(path.parent) == ["list.json"]


@pytest.mark.parametrize("certificate, key", [
    ("pkcs11:token=a;object=b?pin-value=1234", ""), ("pkcs11:token=a", "pkcs11:token=a?pin-source=/pin"), ("/c.pem", "pkcs11:token=a"),
    ("-----BEGIN CERTIFICATE-----", "")])
def test_only_paths_are_remembered(tmp_path, certificate, key):
    recent_files.record(str(tmp_path / "list.json"), used(certificate, key))
    recent_files.record(str(tmp_path / "list.json"), {"action": "cancel"})
    assert not (tmp_path / "list.json").exists()


@pytest.mark.parametrize("content", [b"", b"{}", b"[1, {}, {\"certificate\": 7}, {\"certificate\": \"/a\", \"privateKey\": []}]", b"\xff", b"[["])
def test_a_damaged_list_is_an_empty_one(tmp_path, content):
    (tmp_path / "list.json").write_bytes(content)
    assert recent_files.read(str(tmp_path / "list.json")) == []


# Tokens

def listed(token, *words):
    done = subprocess.run(
        ["/usr/bin/python3", TOKEN_PROGRAM, *words], env={"PATH": os.environ["PATH"], **token.environment}, capture_output=True, text=True,
        timeout=20)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("module", [[], [tls.MODULE]], ids=["registered", "named"])
def test_certificates_on_a_token_are_listed_without_a_pin(token, module):
    """With p11-kit's modules; the authorities of the system are not listed."""
    [one] = listed(token, *module)
    assert one["token"] == "watchword" and one["uri"] == "pkcs11:token=watchword;id=%01"
    choice = certificate_choices.on_token(one["uri"], one["token"], base64.b64decode(one["der"]))
    assert choice.summary.name == "Alice Client" and choice.issuers == ("CN=Test authority",)
    assert (choice.certificate, choice.private_key) == (f"{one['uri']};type=cert", f"{one['uri']};type=private")


def test_the_broker_uses_a_listed_certificate(stage, token, certificates, client_nginx):
    server = client_nginx()
    [one] = listed(token)
    choice = certificate_choices.on_token(one["uri"], one["token"], base64.b64decode(one["der"]))
    credential = {"type": "certificate", "certificate": choice.certificate, "privateKey": choice.private_key, "passphrase": token.pin}
    broker = with_token(stage.broker("--ca-file", str(certificates / "ca.pem")), token)
    client = stage.client(answer=lambda challenge: {"action": "credential", "credential": credential}, broker=broker)
    client.takes["auth/canAuthenticate"] = lambda asked: client.reply(asked, {"answer": True})
    assert "result" in client.call("auth/subscribe", {"asksCanAuthenticate": True})
    result = client.fetch(f"{server.url}/page.txt")
    assert result.get("result", {}).get("status") == 200, result


@pytest.fixture
def until(monkeypatch):
    # The process is pytest's, so it stays dumpable.
    monkeypatch.setattr(subject.hardening, "hide", lambda: None)
    monkeypatch.setattr(subject.hardening, "show_for_greeting", lambda: None)

    def wait(condition, seconds=10):
        end, context = time.monotonic() + seconds, GLib.MainContext.default()
        while not condition():
            assert time.monotonic() < end, "the condition did not become true"
            if not context.iteration(False):
                time.sleep(0.005)

    return wait


class Made:
    """A connection, and what it reported."""

    def __init__(self, path, on_message=lambda message: None):
        self.ready, self.lost, self.mishaps = 0, [], []
        self.connection = subject.BrokerConnection(str(path), [("initialize", {})], on_message)
        self.connection.on_ready = lambda: setattr(self, "ready", self.ready + 1)
        self.connection.on_lost, self.connection.on_mishap = self.lost.append, self.mishaps.append


class OneBroker:
    """A broker that accepts a connection on demand."""

    def __init__(self, path):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()
        self.listener.setblocking(False)
        self.wire, self.buffer = None, b""

    def accepted(self):
        with contextlib.suppress(BlockingIOError):
            self.wire = self.listener.accept()[0]
            self.wire.setblocking(False)
        return self.wire

    def came(self):
        with contextlib.suppress(BlockingIOError):
            self.buffer += self.wire.recv(65536)
        line, found, rest = self.buffer.partition(b"\n")
        if not found:
            return None
        self.buffer = rest
        return json.loads(line)

    def say(self, message):
        self.wire.sendall(json.dumps(message).encode() + b"\n")

    def close(self):
        for one in (self.wire, self.listener):
            if one:
                one.close()


@pytest.fixture
def broker(tmp_path):
    with contextlib.closing(OneBroker(tmp_path / "broker.sock")) as broker:
        yield broker


def greeted(until, made, broker):
    made.connection.start()
    until(broker.accepted)
    got = []
    until(lambda: (message := broker.came()) and not got.append(message))
    broker.say({"jsonrpc": "2.0", "id": got[0]["id"], "result": {}})
    until(lambda: made.ready)


def test_a_message_that_cannot_be_handled_is_answered_and_the_next_is_handled(until, broker, tmp_path):
    def handle(message):
        handled.append(message["method"])
        if message["method"] == "auth/challenge":
            raise ValueError("unexpected challenge")

    handled = []
    made = Made(tmp_path / "broker.sock", handle)
    greeted(until, made, broker)
    broker.say({"jsonrpc": "2.0", "id": [], "result": {}})
    broker.say({"jsonrpc": "2.0", "id": 7, "method": "auth/challenge", "params": {}})
    broker.say({"jsonrpc": "2.0", "method": "auth/cancelled", "params": {}})
    until(lambda: handled == ["auth/challenge", "auth/cancelled"])
    assert made.mishaps == ["cannot handle a message of the broker: ValueError: unexpected challenge"]
    answer = broker.came()
    assert (answer["id"], answer["error"]["code"]) == (7, -32603)
    assert not made.lost


def test_a_restarted_broker_is_detected_before_the_next_attempt(until, tmp_path):
    path = tmp_path / "broker.sock"
    made = Made(path)
    made.connection._wait_ms = 3_600_000
    made.connection.start()
    assert len(made.lost) == 1 and "No such file" in made.lost[0]
    with contextlib.closing(OneBroker(path)) as broker:
        until(broker.accepted)


def test_connecting_continues_when_no_descriptor_is_left(until, broker, tmp_path, monkeypatch):
    def none_left(*_):
        raise OSError(24, "Too many open files")

    made = Made(tmp_path / "broker.sock")
    with monkeypatch.context() as patched:
        patched.setattr(subject.socket, "socket", none_left)
        made.connection.start()
    assert "Too many open files" in made.lost[0]
    until(broker.accepted)


@pytest.mark.parametrize("moment", ["before the reply", "after the reply"])
def test_a_connection_lost_at_any_moment_is_retried(until, broker, tmp_path, moment):
    made = Made(tmp_path / "broker.sock")
    if moment == "after the reply":
        greeted(until, made, broker)
    else:
        made.connection.start()
        until(broker.accepted)
    first, broker.wire = broker.wire, None
    first.close()
    until(broker.accepted)
    assert len(made.lost) == 1
