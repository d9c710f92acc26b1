"""The broker with KeePassXC and KWallet: they store, find, replace and forget logins as gnome-keyring does."""
import pytest

from rig.bodies import eventually
from rig.client import password_answer
from rig.keyring import KEYRINGS, SCHEMA, lock, settle, start_kwallet, wait_until_saved
from test_keyring import keyring_list, protected, start_broker, store, unasked

pytestmark = pytest.mark.tier3("starts other desktops' programs, about a minute")

#: The protection space of the servers, as the broker stores it after a login.
EXACTLY = {"realm": "Staff", "authenticationMethod": "httpBasic"}


@pytest.fixture(params=KEYRINGS)
def start(request):
    return KEYRINGS[request.param]


@pytest.fixture
def other(stage, start):
    return start(stage.keyring())


def stored(keyring):
    """Returns the user and the secret of each item; KeePassXC adds attributes of its own."""
    return [(attributes.get("user"), secret) for attributes, secret in keyring.items()]


def test_an_accepted_login_is_stored_and_found_after_a_restart(stage, start, other):
    server, password, attributes = protected(stage)
    broker = start_broker(stage, other)
    client = stage.client(answer=lambda params: password_answer("bob", password, persistence="permanent"))
    assert client.fetch(server.url)["result"]["status"] == 200
    assert settle(client)["state"] == "usable"
    assert other.lookup(**attributes, domain="Staff", authtype="basic") == password
    [(found, secret)] = other.items()
    assert secret == password and {**attributes, "watchword-default": "1"}.items() <= found.items()
    assert found.get("xdg:schema", SCHEMA) == SCHEMA
    broker.stop()
    wait_until_saved(other, start, "watchword-default")
    other.end_service()
    start(other)
    eventually(lambda: other.lookup(**attributes) == password, "the keyring has lost the login")
    result = unasked(stage, start_broker(stage, other), server)
    assert (result["status"], result["auth"]["source"]) == (200, "keyring")


def test_a_login_of_another_program_is_found(stage, other):
    server, password, attributes = protected(stage)
    other.put(password, **attributes)
    assert unasked(stage, start_broker(stage, other), server)["auth"]["source"] == "keyring"


def test_a_login_that_is_stored_again_replaces_the_first(stage, other):
    server, password, _ = protected(stage)
    old = stage.secret()
    start_broker(stage, other)
    client = stage.client()
    store(client, server, "bob", old, **EXACTLY)
    store(client, server, "bob", password, **EXACTLY)
    assert stored(other) == [("bob", password)]


def test_a_refused_login_is_replaced(stage, other):
    server, password, attributes = protected(stage)
    old = stage.secret(server)
    start_broker(stage, other)
    client = stage.client(answer=lambda params: password_answer("bob", password, persistence="permanent"))
    store(client, server, "bob", old, **EXACTLY)
    assert client.fetch(server.url)["result"]["status"] == 200
    settle(client)
    assert stored(other) == [("bob", password)]


def test_a_login_is_forgotten_and_only_that(stage, other):
    server, password, _ = protected(stage)
    second = stage.secret()
    start_broker(stage, other)
    client = stage.client()
    first = store(client, server, "bob", password)
    store(client, server, "alice", second)
    assert sorted(one["user"] for one in keyring_list(client, server)) == ["alice", "bob"]
    forgotten = client.call("credential/forget", {"id": first})
    settle(client)
    assert "result" in forgotten and stored(other) == [("alice", second)], forgotten


def test_a_locked_keyring_is_reported_and_not_used(stage, start, other):
    server, password, attributes = protected(stage)
    other.put(password, **attributes)
    start_broker(stage, other)
    client = stage.client(answer=lambda params: password_answer("bob", password, persistence="forSession"))
    lock(other, start)
    assert client.call("keyring/status")["result"]["state"] in ("locked", "unavailable")
    assert client.fetch(server.url)["result"]["auth"]["source"] == "client"


def test_kwallet_is_unlocked_by_the_broker_without_a_dialogue(stage):
    other = start_kwallet(stage.keyring(), is_unlocked=False)
    start_broker(stage, other)
    client = stage.client()
    assert client.call("keyring/status")["result"]["state"] == "locked"
    assert client.call("keyring/unlock")["result"] == {"state": "usable"}
