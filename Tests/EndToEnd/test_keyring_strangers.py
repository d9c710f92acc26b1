"""Passwords that other programs have stored, and other programs that read ours: Python's keyring, and git's helper."""

import pytest

from rig.client import password_answer
from rig.keyring import settle
from rig.scripted import basic

SET = "import keyring, sys; keyring.set_password(sys.argv[1], sys.argv[2], sys.stdin.read())"


@pytest.fixture
def server(stage):
    server, server.password = stage.protected()
    return server


def python_keyring(gnome, program, *arguments, text=""):
    backend = {"PYTHON_KEYRING_BACKEND": "keyring.backends.SecretService.Keyring"}
    return gnome.run("/usr/bin/python3", "-c", program, *arguments, text=text, **backend)


def fetch_unasked(stage, gnome, server):
    broker = stage.broker(environment=gnome.for_broker)
    asked = []
    client = stage.client(broker=broker, answer=lambda params: asked.append(params) or {"action": "continue"})
    result = client.fetch(server.url)["result"]
    return result["status"], result["auth"] and result["auth"]["source"], len(asked)


def git(gnome, helper, action, **lines):
    """Passes text to the helper as git does; returns its output as pairs."""
    said = gnome.run(helper, action, text="".join(f"{name}={value}\n" for name, value in lines.items()) + "\n")
    return dict(line.split("=", 1) for line in said.splitlines())


def port(server):
    return f"127.0.0.1:{server.port}"


@pytest.mark.parametrize("service", ["127.0.0.1:{}", "http://127.0.0.1:{}", "http://127.0.0.1:{}/"])
def test_a_password_of_pythons_keyring_is_used(stage, gnome, server, service):
    python_keyring(gnome, SET, service.format(server.port), "bob", text=server.password)
    assert [secret for _, secret in gnome.items()] == [server.password]
    assert fetch_unasked(stage, gnome, server) == (200, "keyring", 0)
    assert server.authorizations == [None, basic("bob", server.password)]


def test_an_item_stored_by_git_is_used(stage, gnome, server, git_helper):
    git(gnome, git_helper, "store", protocol="http", host=port(server), username="bob", password=server.password)
    assert [secret for _, secret in gnome.items()] == [server.password]
    assert fetch_unasked(stage, gnome, server) == (200, "keyring", 0)
    assert server.authorizations == [None, basic("bob", server.password)]


@pytest.mark.parametrize("way", ["challenge", "by hand", "by hand, with the realm"])
def test_git_reads_and_erases_what_we_have_stored(stage, gnome, server, git_helper, way):
    broker = stage.broker(environment=gnome.for_broker)
    client = stage.client(answer=lambda params: password_answer("bob", server.password, persistence="permanent"))
    if way == "challenge":
        assert client.fetch(server.url)["result"]["status"] == 200
    else:
        realm = {"realm": "Staff", "authenticationMethod": "httpBasic"} if "realm" in way else {}
        assert "result" in client.call("credential/store", {
            "protectionSpace": {"protocol": "http", "host": "127.0.0.1", "port": server.port, **realm},
            "credential": {"type": "password", "user": "bob", "password": server.password, "persistence": "permanent"}})
    settle(client)
    found = git(gnome, git_helper, "get", protocol="http", host=port(server))
    assert (found["username"], found["password"]) == ("bob", server.password)
    assert git(gnome, git_helper, "get", protocol="https", host=port(server)) == {}
    git(gnome, git_helper, "erase", protocol="http", host=port(server), username="bob", password=server.password)
    assert gnome.items() == []
    broker.stop()
