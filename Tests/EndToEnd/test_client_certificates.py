"""Servers that request a client certificate: which respondent is asked, which certificate is sent, and the outcome of unusable ones; and
stored credentials in the list of all, with accepted certificates: how they are shown and forgotten."""
import base64
import json
import pathlib
import socket
import ssl
import subprocess

import pytest

from rig import tls
from rig.bodies import eventually
from rig.client import trust_answer
from rig.forwarding import ForwardProxy
from rig.keyring import heard
from rig.terminal import Shell
from rig.tls import PASSPHRASE, BreakingOff, TlsServer


def shown(certificates, *files):
    return {"action": "credential", "credential": certificates.credential(*files)}


def asking(stage, broker, reply, mode="classic"):
    client = stage.client(answer=reply, broker=broker)
    client.takes["auth/canAuthenticate"] = lambda question: client.reply(question, {"answer": True})
    assert "result" in client.call("auth/subscribe", {"mode": mode, "asksCanAuthenticate": mode == "classic"})
    return client, client.asked


@pytest.fixture
def broker(stage, certificates):
    return stage.broker("--ca-file", str(certificates / "ca.pem"))


@pytest.fixture
def broker_with_token(stage, certificates, token):
    # A login with the right PIN. The token counts wrong PINs until then, and the broker tries fewer if an earlier test has left one.
    token.objects()
    return with_token(stage.broker("--ca-file", str(certificates / "ca.pem")), token)


def with_token(broker, token):
    # SoftHSM reads this file; the broker does not keep its environment variable.
    configuration = broker.home / ".config" / "softhsm2" / "softhsm2.conf"
    configuration.parent.mkdir(parents=True)
    configuration.write_text(pathlib.Path(token.environment["SOFTHSM2_CONF"]).read_text())
    return broker


def on_token(token, pin, respell=lambda url: url):
    return {"type": "certificate", "certificate": respell(token.certificate_url), "privateKey": respell(token.key_url), "passphrase": pin}


@pytest.fixture
def locking_token(tmp_path, token):
    """Returns a function that makes a module whose tokens lock themselves after the third wrong PIN, and that counts the tries
    in a file."""
    source = pathlib.Path(__file__).parent / "programs" / "locking_token.c"

    def make(reports):
        module, tries = tmp_path / "locking.so", tmp_path / "tries"
        defines = [f'-DMODULE="{tls.MODULE}"', f'-DTRIES="{tries}"', f"-DREPORTS={int(reports)}"]
        subprocess.run(["gcc", "-shared", "-fPIC", *defines, "-o", module, source, "-ldl"], check=True)
        return module, lambda: len(tries.read_text().splitlines())

    return make


@pytest.mark.parametrize("reports", [True, False], ids=["reporting", "silent"])
def test_no_token_is_locked_by_wrong_pins(stage, certificates, tls_server, token, locking_token, reports):
    """Ten fetches with ten PINs, with different URI attributes for the token each time."""
    module, tries = locking_token(reports)
    server = tls_server(client_authority=certificates / "ca.pem", first=True)
    broker = with_token(stage.configured(
        f'[tokens]\nmodule = "{module}"\n', "--ca-file", str(certificates / "ca.pem")), token)
    spellings = [lambda url: url, lambda url: url + ";model=SoftHSM%20v2", lambda url: url + ";manufacturer=SoftHSM%20project"]

    def fetch(pin, number=0):
        own = {**on_token(token, pin, spellings[number % 3]), "persistence": "none"}
        return stage.client(broker=broker).fetch(server.url, tls={"certificate": own})

    assert fetch(token.pin[:-1])["error"]["data"]["kind"] == "clientCertificateRejected"
    replies = [fetch(f"00000{number}", number) for number in range(10)]
    assert all(reply["error"]["data"]["kind"] == "clientCertificateRejected" for reply in replies)
    assert all("was not tried" in reply["error"]["message"] for reply in replies[1:]), replies
    assert tries() == 2
    # The right PIN is not tried either, because it cannot be told from the others.
    client, asked = asking(stage, broker, lambda challenge: {"action": "credential", "credential": on_token(token, token.pin)})
    client.fetch(server.url)
    assert asked[1]["error"]["kind"] == "pinNotTried" and tries() == 2
    # The token was not locked: after a restart it accepts the right PIN.
    broker = with_token(stage.configured(
        f'[tokens]\nmodule = "{module}"\n', "--ca-file", str(certificates / "ca.pem")), token)
    assert fetch(token.pin)["result"]["status"] == 200


def test_no_client_chooses_what_the_broker_loads(stage, broker, certificates, tls_server, tmp_path):
    (tmp_path / "module.c").write_text(
        f'#include <fcntl.h>\n__attribute__((constructor)) static void run(void) {{ creat("{tmp_path}/loaded", 0600); }}\n')
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", tmp_path / "module.so", tmp_path / "module.c"], check=True)
    server = tls_server(client_authority=certificates / "ca.pem")
    own = {"type": "certificate", "certificate": f"pkcs11:token=x?module-path={tmp_path}/module.so", "passphrase": "1"}
    reply = stage.client(broker=broker).fetch(server.url, tls={"certificate": own})
    assert reply["error"]["data"]["kind"] == "clientCertificateRejected" and "module-path" in reply["error"]["message"]
    assert not (tmp_path / "loaded").exists()


@pytest.mark.parametrize("form", [
    {}, {"key": "client-locked.key", "passphrase": PASSPHRASE}, {"certificate": "client-both.pem", "key": None},
    {"certificate": "client.p12", "key": None, "passphrase": PASSPHRASE}], ids=["key", "locked", "both", "p12"])
def test_a_key_that_others_can_read_is_not_used(stage, broker, certificates, tls_server, tmp_path, form):
    server = tls_server(client_authority=certificates / "ca.pem")
    credential = certificates.credential(**form)
    name = "privateKey" if "privateKey" in credential else "certificate"
    file = tmp_path / "copy"
    file.write_bytes(pathlib.Path(credential[name]).read_bytes())
    credential[name] = str(file)
    client, asked = asking(stage, broker, lambda challenge: {"action": "credential", "credential": credential})
    for mode in [0o644, 0o640, 0o602]:
        file.chmod(mode)
        reply = stage.client(broker=broker).fetch(server.url, tls={"certificate": credential})
        assert reply["error"]["data"]["kind"] == "clientCertificateRejected"
        assert f"chmod 600 '{file}'" in reply["error"]["message"], reply
    client.fetch(server.url)
    assert asked[1]["error"]["kind"] == "keyExposed"
    assert not server.peers
    file.chmod(0o600)
    assert stage.client(broker=broker).fetch(server.url, tls={"certificate": credential})["result"]["status"] == 200


@pytest.fixture
def replaceable(certificates, tmp_path):
    """The file `client.pem`, and a function that writes the certificate and key of another client into it."""
    path = tmp_path / "client.pem"

    def put(name):
        path.write_bytes((certificates / f"{name}.pem").read_bytes() + (certificates / f"{name}.key").read_bytes())
        path.chmod(0o600)
        return {"type": "certificate", "certificate": str(path)}

    return put


def test_a_replaced_file_is_not_the_certificate_of_the_session(stage, broker, certificates, tls_server, replaceable):
    server = tls_server(client_authority=certificates / "ca.pem")
    credential = replaceable("client")
    client, asked = asking(stage, broker, lambda challenge: {"action": "credential", "credential": credential})
    for _ in range(2):
        assert client.fetch(server.url)["result"]["status"] == 200
    assert len(asked) == 1
    replaceable("other-client")
    for _ in range(2):
        assert client.fetch(server.url)["result"]["status"] == 200
    assert [one["error"] and one["error"]["kind"] for one in asked] == [None, "certificateChanged"]
    assert list(server.peers.values()) == ["Alice Client", "Bob Client"]
    # A client that answers no challenges is not logged in as another user, either.
    replaceable("client")
    reply = stage.client(broker=broker).fetch(server.url)
    assert reply["error"]["data"]["kind"] == "clientCertificateRejected" and "replaced" in reply["error"]["message"]
    assert list(server.peers.values()) == ["Alice Client", "Bob Client"]


@pytest.mark.parametrize("protocol", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_certificates_through_a_tunnel(stage, broker, certificates, tls_server, protocol):
    server = tls_server(client_authority=certificates / "ca.pem", minimum=protocol, maximum=protocol)
    tunnel = {"url": stage.server(ForwardProxy()).url}

    def fetch(client, name=None):
        own = {"tls": {"certificate": certificates.credential(f"{name}.pem", f"{name}.key")}} if name else {}
        return client.fetch(server.url, proxy=tunnel, **own)

    reply = fetch(stage.client(broker=broker), "stranger")
    assert reply["error"]["data"]["kind"] == "clientCertificateRejected" and not server.requests
    assert fetch(stage.client(broker=broker), "other-client")["result"]["status"] == 200
    assert list(server.peers.values()) == ["Bob Client"]
    client, asked = asking(stage, broker, shown(certificates))
    assert fetch(client)["result"]["status"] == 200 and len(asked) == 1
    assert "Alice Client" in server.peers.values()


@pytest.mark.parametrize("protocol", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("way", ["no respondent", "own certificate", "without", "with a certificate"])
def test_a_post_is_sent_once_however_the_connection_ends(stage, certificates, protocol, way):
    server = stage.server(BreakingOff(
        certificates, client_authority=certificates / "ca.pem", minimum=protocol, maximum=protocol))
    broker, options = stage.broker("--ca-file", str(certificates / "ca.pem")), {"auth": {"interaction": "none"}}
    client = stage.client(broker=broker)
    if way == "own certificate":
        options["tls"] = {"certificate": certificates.credential()}
    elif way != "no respondent":
        names = iter([("client.pem", "client.key"), ("other-client.pem", "other-client.key")])
        answer = {"action": "continue"}
        client, _ = asking(stage, broker, lambda challenge: answer if way == "without" else shown(certificates, *next(names)))
        options = {}
    reply = client.fetch(server.url, method="POST", body={"type": "string", "value": "one order"}, **options)
    assert reply["error"]["data"]["kind"] == "connectionLost", reply
    assert [request.method for request in server.requests] == ["POST"]


def openssl(*words):
    return subprocess.run(["openssl", *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout


ROUNDS, MANY_ROUNDS = b"\x02\x03\x01\x00\x00", b"\x02\x03\x7f\xff\xff"


@pytest.mark.parametrize("way", ["pbkdf2", "pbes1", "scrypt", "pkcs12 mac", "pkcs12 certificate", "pkcs12 key"])
def test_a_file_that_takes_too_long_to_open_is_not_opened(stage, broker, certificates, tls_server, tmp_path, way):
    """OpenSSL cannot be interrupted while it derives a key. The iteration counts are patched into the file, so the test takes
    no time."""
    secret, key = ("-passout", f"pass:{PASSPHRASE}"), certificates / "client.key"
    if way.startswith("pkcs12"):
        mac = [] if way == "pkcs12 mac" else ["-nomac"]
        made = openssl("pkcs12", "-export", "-in", certificates / "client.pem", "-inkey", key, "-iter", "65536", *mac, *secret)
        start = {"pkcs12 mac": made.rfind(ROUNDS), "pkcs12 certificate": made.find(ROUNDS), "pkcs12 key": made.rfind(ROUNDS)}[way]
        (tmp_path / "client").write_bytes(made[:start] + made[start:].replace(ROUNDS, MANY_ROUNDS, 1))
        own = {"type": "certificate", "certificate": str(tmp_path / "client")}
    else:
        kind = {"pbkdf2": ["-v2", "aes-256-cbc"], "pbes1": ["-v1", "PBE-SHA1-3DES"], "scrypt": ["-scrypt"]}[way]
        made = openssl("pkcs8", "-topk8", "-in", key, "-iter", "65536", "-outform", "DER", *kind, *secret)
        few, many = (b"\x02\x01\x08\x02\x01\x01", b"\x02\x01\x08\x02\x01\x7f") if way == "scrypt" else (ROUNDS, MANY_ROUNDS)
        assert made.count(few) == 1
        text = base64.encodebytes(made.replace(few, many)).decode()
        (tmp_path / "key").write_text(f"-----BEGIN ENCRYPTED PRIVATE KEY-----\n{text}-----END ENCRYPTED PRIVATE KEY-----\n")
        own = {"type": "certificate", "certificate": str(certificates / "client.pem"), "privateKey": str(tmp_path / "key")}
    for file in tmp_path.iterdir():
        file.chmod(0o600)
    server = tls_server(client_authority=certificates / "ca.pem")
    before = broker.processor_seconds
    reply = stage.client(broker=broker).fetch(server.url, tls={"certificate": {**own, "passphrase": PASSPHRASE}})
    assert "too many rounds (limit 5000000)" in reply["error"]["message"], reply
    assert broker.processor_seconds - before < 1


class Resuming(TlsServer):
    """Lets clients resume TLS sessions. `resumed` says of each connection whether it was resumed."""

    def __init__(self, *words, **more):
        self.context, self.resumed = None, []
        super().__init__(*words, first=True, **more)

    def _context(self):
        self.context = self.context or super()._context()
        return self.context

    def _open(self, connection, number):
        opened = super()._open(connection, number)
        self.resumed.append(opened.session_reused)
        return opened


@pytest.mark.parametrize("protocol", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_rule_l3_no_tls_session_of_an_identity_is_resumed(stage, broker, certificates, protocol):
    server = stage.server(Resuming(certificates, client_authority=certificates / "ca.pem", minimum=protocol, maximum=protocol))
    own = certificates.credential()
    client = stage.client(broker=broker)
    for _ in range(3):
        assert client.fetch(server.url, tls={"certificate": own})["result"]["status"] == 200
    assert server.resumed == [False] * 3
    # Control: another client, which resumes its session.
    context, session = ssl.create_default_context(cafile=certificates / "ca.pem"), None
    context.load_cert_chain(certificates / "client.pem", certificates / "client.key")
    for _ in range(2):
        with context.wrap_socket(socket.create_connection(("127.0.0.1", server.port)), server_hostname="localhost", session=session) as other:
            other.sendall(b"GET / HTTP/1.1\r\n\r\n")
            while other.recv(1 << 16):
                pass
            session = other.session
    assert server.resumed[3:] == [False, True]


def asked_client(stage, broker, reply):
    """A client that is asked about connections, and its challenges."""
    client = stage.client(broker=broker, answer=reply)
    assert "result" in client.call("auth/subscribe", {"mode": "everything"})
    return client, client.asked


def listed(client, server=None):
    params = {"protectionSpace": {"protocol": "https", "host": "localhost", "port": server.port}} if server else None
    return client.call("credential/list", params)["result"]["credentials"]


def space(server, method):
    return {
        "protocol": "https", "host": "localhost", "port": server.port, "realm": None, "authenticationMethod": method,
        "isProxy": False}


@pytest.mark.parametrize("persistence", ["forSession", "permanent"])
def test_a_forgotten_exception_is_asked_about_again(stage, broker, tls_server, persistence):
    server, other = tls_server("self-signed"), tls_server("expired")
    client, asked = asked_client(stage, broker, lambda challenge: trust_answer(challenge, persistence))
    for one in [server, other, server]:
        assert client.fetch(one.url)["result"]["status"] == 200
    assert len(asked) == 2
    accepted = asked[0]["protectionSpace"]["serverTrust"]["chain"][0]["spkiSha256"]
    entry = listed(client, server)
    assert entry == [{
        "id": "trust:1", "type": "trust", "protectionSpace": space(server, "serverTrust"), "user": None,
        "spkiSha256": accepted, "persistence": persistence, "source": "session", "isDefault": False}]
    assert [change["change"] for change in heard(client, "credential/changed")] == ["stored", "stored"]
    assert client.call("credential/setDefault", {"id": "trust:1"})["error"]["data"]["kind"] == "invalidParams"
    assert client.call("credential/forget", {"id": "trust:1"})["result"] == {"removed": 1}
    assert client.call("credential/forget", {"id": "trust:1"})["error"]["data"]["kind"] == "unknownCredential"
    assert heard(client, "credential/changed") == [
        {"change": "forgotten", "source": "session", "protectionSpace": space(server, "serverTrust")}]
    assert listed(client, server) == [] and len(listed(client)) == 1
    # The connection that depends on it is no longer used: its server is asked about again, and the other server is not.
    assert stage.client(broker=broker).fetch(server.url)["error"]["data"]["kind"] == "serverNotTrusted"
    assert client.fetch(other.url)["result"]["status"] == 200 and len(asked) == 2
    assert client.fetch(server.url)["result"]["status"] == 200 and len(asked) == 3


def test_the_command_shows_and_forgets_them(stage, broker, tls_server):
    """`watchword credentials` shows the type and the id of each entry."""
    server, other, password, token = tls_server("self-signed"), tls_server("expired"), stage.secret(), stage.secret()
    shell = Shell(broker)
    client, asked = asked_client(
        stage, broker, lambda challenge: trust_answer(challenge, "forSession" if len(asked) == 1 else "permanent"))
    for one in [server, other]:
        assert client.fetch(one.url)["result"]["status"] == 200
    for credential in [
        {"type": "password", "user": "bob", "password": password, "persistence": "forSession"},
        {"type": "token", "token": token, "persistence": "forSession"},
    ]:
        method = "httpBasic" if credential["type"] == "password" else "bearer"
        params = {"protectionSpace": {"protocol": "https", "host": "h", "authenticationMethod": method}, "credential": credential}
        assert "result" in client.call("credential/store", params)
    shown = shell.run("credentials", "list").stdout.decode()
    rows = [line.split() for line in shown.splitlines()]
    key = asked[0]["protectionSpace"]["serverTrust"]["chain"][0]["spkiSha256"]
    assert rows[0] == ["ID", "TYPE", "USER", "SITE", "REALM", "SCHEME", "STORED", "DEFAULT", "CERTIFICATE"]
    assert [row[:2] for row in rows[1:]] == [
        ["session:1", "password"], ["session:2", "token"], ["trust:1", "trust"], ["trust:2", "trust"]]
    assert rows[3][2:] == [f"https://localhost:{server.port}", "session", "key", "SHA-256", key]
    assert rows[4][2:4] == [f"https://localhost:{other.port}", "forever"]
    raw = json.loads(shell.run("credentials", "list", "--json").stdout)
    assert [entry["type"] for entry in raw["credentials"]] == ["password", "token", "trust", "trust"]
    assert shell.run("credentials", "forget", "trust:1").stdout == b"1 credential forgotten\n"
    assert shell.run("credentials", "forget", "--site", other.url).stdout == b"1 credential forgotten\n"
    assert [entry["id"] for entry in listed(client)] == ["session:1", "session:2"]
    assert b"a password or a token" in shell.run("credentials", "default", "trust:1").stderr
    assert not any(secret.encode() in shell.printed for secret in stage.secrets)


def problems(asked):
    return [one["protectionSpace"]["serverTrust"]["problems"] for one in asked]


def test_a_permanent_exception_survives_the_broker_and_a_changed_key_is_asked_about(stage, broker, tls_server):
    server = tls_server("self-signed", first=True)
    client, asked = asked_client(stage, broker, lambda challenge: trust_answer(challenge, "permanent"))
    assert client.fetch(server.url)["result"]["status"] == 200 and problems(asked) == [["selfSigned"]]
    known = broker.home / ".local" / "state" / "watchword" / "known-certificates"
    eventually(known.exists, "the exception was not written")
    assert known.stat().st_mode & 0o777 == 0o600 and f"https://localhost:{server.port} " in known.read_text()

    client.close()
    assert broker.stop() == 0
    broker.start()
    client, asked = asked_client(stage, broker, lambda challenge: {"action": "default"})
    assert client.fetch(server.url)["result"]["status"] == 200 and not asked
    server.leaf = "expired"
    assert client.fetch(server.url)["error"]["data"]["kind"] == "serverNotTrusted"
    assert set(problems(asked)[0]) == {"expired", "changed"}
    # A certificate that verifies ends earlier exceptions: the old certificate is asked about again.
    server.leaf = "good"
    assert client.fetch(server.url)["result"]["status"] == 200 and len(asked) == 1
    server.leaf = "self-signed"
    assert client.fetch(server.url)["error"]["data"]["kind"] == "serverNotTrusted" and len(asked) == 2
    eventually(lambda: "https://" not in known.read_text(), "the exception was not removed")


def test_an_exception_that_stays_in_its_file_is_not_reported_as_forgotten(stage, broker, tls_server):
    server = tls_server("self-signed", first=True)
    client, _ = asked_client(stage, broker, lambda challenge: trust_answer(challenge, "permanent"))
    assert client.fetch(server.url)["result"]["status"] == 200
    known = broker.home / ".local" / "state" / "watchword" / "known-certificates"
    eventually(known.exists, "it is not written down")
    known.with_name("known-certificates.new").mkdir()
    failure = client.call("credential/forget", {"id": "trust:1"})["error"]
    assert failure["data"]["kind"] == "internalError" and str(known) in failure["data"]["detail"]
    assert "https://" in known.read_text()
