"""The broker with gnome-keyring: what it stores, what it finds, and what it never sends."""
import threading

import pytest

from rig.client import password_answer
from rig.keyring import SCHEMA, description, heard, settle
from rig.scripted import DigestCheck, ScriptedServer, basic, basic_server, response
from rig.terminal import Shell


def start_broker(stage, gnome):
    return stage.broker(environment=gnome.for_broker)


def protected(stage, user="bob", realm="Staff", **attributes):
    """A server, its password, and the attributes of its login in the keyring."""
    server, password = stage.protected(user, realm=realm)
    return server, password, description(server, user, **attributes)


def space(server, **more):
    return {"protocol": "http", "host": "127.0.0.1", "port": server.port, **more}


def store(client, server, user, password, **more):
    return client.store(server, user, password, persistence="permanent", **more)


def keyring_list(client, server=None):
    params = {"protectionSpace": space(server)} if server else None
    found = client.call("credential/list", params)["result"]["credentials"]
    return [credential for credential in found if credential["source"] == "keyring"]


def unasked(stage, broker, server):
    """Makes a fetch of a client that answers challenges, but must not receive one."""
    asked = []
    client = stage.client(broker=broker, answer=lambda params: asked.append(params) or {"action": "continue"})
    result = client.fetch(server.url)["result"]
    assert asked == []
    return result


# Storing

@pytest.mark.parametrize("how", ["prompt", "option"])
def test_keep_keyring_of_the_helper(stage, gnome, how):
    server, password, attributes = protected(stage)
    shell = Shell(start_broker(stage, gnome))
    if how == "option":
        done = shell.run("fetch", "--keep", "keyring", "-u", f"bob:{password}", server.url)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"welcome", b"")
    else:
        terminal = shell.at_terminal("fetch", "--keep", "keyring", server.url)
        terminal.answer({"User: ": "bob", "Password for bob: ": password})
        assert terminal.end() == 0 and b"keyring" not in terminal.shown
    ((found, secret),) = gnome.items()
    assert secret == password and attributes.items() <= found.items()
    # The login is stored, whichever command has stored it.
    assert shell.run("fetch", "--keep", "keyring", "-u", f"bob:{password}", server.url).returncode == 0


def test_keep_keyring_for_a_login_of_the_session(stage, gnome):
    server, password, _ = protected(stage)
    shell = Shell(start_broker(stage, gnome))
    assert shell.run("fetch", "-u", f"bob:{password}", server.url).returncode == 0
    done = shell.run("fetch", "--keep", "keyring", "-u", f"bob:{password}", server.url)
    assert (done.returncode, done.stdout) == (120, b"welcome") and b"the session already has it" in done.stderr
    # The login of another server, after a redirect.
    other = stage.server(lambda request: response(302, b"", f"Location: {server.url}"))
    assert shell.run("fetch", "-L", "--keep", "keyring", "-u", "eve:x", other.url).returncode == 0


def test_keep_keyring_for_a_login_that_the_broker_does_not_store(stage, gnome):
    """The keyring is usable, but a login for a realm without a name is stored for the session only."""
    password = stage.secret()
    login = basic("bob", password)
    refusal = response(401, b"", "WWW-Authenticate: Basic")
    server = stage.server(lambda request: response(200, b"welcome") if request.header("Authorization") == login else refusal)
    stage.allow(password, server)
    done = Shell(start_broker(stage, gnome)).run("fetch", "--keep", "keyring", "-u", f"bob:{password}", server.url)
    assert (done.returncode, done.stdout) == (120, b"welcome") and b"logins of this kind are not stored there" in done.stderr
    assert gnome.items() == []


@pytest.mark.parametrize("method", ["basic", "digest"])
def test_permanent_is_stored_when_the_server_has_accepted_it(stage, gnome, method):
    wrong, right = stage.secret(), stage.secret()
    server = stage.server(basic_server("bob", right) if method == "basic" else DigestCheck("bob", right, algorithm="SHA-256"))
    stage.allow(wrong, server), stage.allow(right, server)
    broker = start_broker(stage, gnome)
    client = stage.client()
    call = client.start("fetch/run", {"url": server.url})
    first = client.challenges.get(timeout=30)
    assert first["params"]["persistenceAllowed"] == ["none", "forSession", "permanent"]
    client.reply(first, password_answer("bob", wrong, persistence="permanent"))
    second = client.challenges.get(timeout=30)
    settle(client)
    assert len(server.requests) == 2 and gnome.items() == []
    client.reply(second, password_answer("bob", right, persistence="permanent"))
    assert client.wait(call)["result"]["status"] == 200
    settle(client)
    exactly = description(server, domain="Staff", authtype=method)
    assert gnome.lookup(**exactly) == right
    assert gnome.items() == [({**exactly, "xdg:schema": SCHEMA, "watchword-default": "1"}, right)]
    changes = [change for change in heard(client, "credential/changed") if change["source"] == "keyring"]
    assert [(change["change"], change["user"]) for change in changes] == [("stored", "bob")]
    broker.stop()
    fresh = start_broker(stage, gnome)
    result = unasked(stage, fresh, server)
    assert (result["status"], result["auth"]["source"], result["exchanges"]) == (200, "keyring", 2)
    assert server.requests[-2].authorization is None
    assert server.authorizations[-1].startswith("Digest " if method == "digest" else basic("bob", right))


def test_a_session_credential_can_be_made_permanent(stage, gnome):
    server, password, _ = protected(stage)
    start_broker(stage, gnome)
    persistence = ["forSession", "permanent"]
    client = stage.client(answer=lambda params: password_answer("bob", password, persistence=persistence.pop(0)))
    client.call("auth/subscribe", {"mode": "everything"})
    assert [client.fetch(server.url, auth={"preemptive": False})["result"]["status"] for _ in range(2)] == [200, 200]
    assert persistence == []
    settle(client)
    assert gnome.lookup(**description(server, domain="Staff", authtype="basic")) == password


# credential/store

def test_stored_by_hand_and_by_another_program(stage, gnome):
    ours, password, _ = protected(stage)
    theirs, other, attributes = protected(stage, "alice")
    broker = start_broker(stage, gnome)
    client, watcher = stage.client(), stage.client()
    identifier = store(client, ours, "bob", password, realm="Staff", authenticationMethod="httpBasic")
    assert heard(client, "credential/changed") == [
        {"change": "stored", "source": "keyring", "user": "bob", "protectionSpace": {
            **space(ours, realm="Staff"), "authenticationMethod": "httpBasic", "isProxy": False}}]
    assert gnome.lookup(**description(ours, domain="Staff", authtype="basic")) == password
    assert ours.requests == []
    gnome.put(other, schema=SCHEMA, **attributes)
    assert unasked(stage, broker, ours)["auth"]["source"] == "keyring"
    assert unasked(stage, broker, theirs)["auth"]["source"] == "keyring"
    assert ours.authorizations == [None, basic("bob", password)]
    assert theirs.authorizations == [None, basic("alice", other)]
    listed = keyring_list(client)
    assert {(one["user"], one["protectionSpace"]["port"], one["persistence"]) for one in listed} == {
        ("bob", ours.port, "permanent"), ("alice", theirs.port, "permanent")}
    assert [one["user"] for one in keyring_list(client, theirs)] == ["alice"]
    assert client.call("credential/forget", {"id": identifier})["result"] == {"removed": 1}
    # After this reply, the client has received all notifications so far.
    watcher.call("ping")
    assert heard(watcher, "credential/changed")[-1] == {"change": "forgotten", "source": "keyring"}
    assert [(item["user"], secret) for item, secret in gnome.items()] == [("alice", other)]
    assert client.call("credential/forget", {"id": identifier})["error"]["data"]["kind"] == "unknownCredential"
    # The session has a login for this server, too.
    assert client.call("credential/forget", {"protectionSpace": space(theirs)})["result"] == {"removed": 2}
    assert gnome.items() == []


# Refusals

def gated(handle):
    """A server that delays its response to each credential until the test continues."""
    arrived, gate = threading.Event(), threading.Event()

    def handler(request):
        if request.authorization:
            arrived.set()
            assert gate.wait(30)
        return handle(request)

    return ScriptedServer(handler), arrived, gate


def test_a_newer_item_stored_meanwhile_is_not_removed(stage, gnome):
    right, wrong = stage.secret(), stage.secret()
    server, arrived, gate = gated(basic_server("bob", right).handler)
    stage.server(server)
    stage.allow(right, server), stage.allow(wrong, server)
    exactly = {"schema": SCHEMA, **description(server, domain="Staff", authtype="basic")}
    gnome.put(wrong, **exactly)
    broker = start_broker(stage, gnome)
    client = stage.client()
    call = client.start("fetch/run", {"url": server.url})
    assert arrived.wait(30)
    gnome.put(right, **exactly)
    gate.set()
    client.reply(client.challenges.get(timeout=30), {"action": "continue"})
    assert client.wait(call)["result"]["status"] == 401
    settle(client)
    assert [secret for _, secret in gnome.items()] == [right]
    # The item of the other program.
    assert [change["change"] for change in heard(client, "credential/changed")] == ["stored"]
    assert unasked(stage, broker, server)["status"] == 200
    assert server.authorizations == [None, basic("bob", wrong), None, basic("bob", right)]
