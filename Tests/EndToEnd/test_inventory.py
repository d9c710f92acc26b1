"""The list of all stored credentials: logins, tokens, accepted certificates of servers, and client certificates."""
import json

import pytest

from rig.keyring import heard
from rig.terminal import Shell


def trust(challenge, persistence):
    leaf = challenge["protectionSpace"]["serverTrust"]["chain"][0]
    return {"action": "credential", "credential": {"type": "trust", "spkiSha256": leaf["spkiSha256"], "persistence": persistence}}


@pytest.fixture
def broker(stage, certificates):
    return stage.broker("--ca-file", str(certificates / "ca.pem"))


def asked_client(stage, broker, reply):
    """A client that is asked about connections, and its challenges."""
    asked = []
    client = stage.client(broker=broker, answer=lambda challenge: asked.append(challenge) or reply(challenge))
    assert "result" in client.call("auth/subscribe", {"mode": "everything"})
    return client, asked


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
    client, asked = asked_client(stage, broker, lambda challenge: trust(challenge, persistence))
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
        stage, broker, lambda challenge: trust(challenge, "forSession" if len(asked) == 1 else "permanent"))
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
