"""Changes that other programs make in the keyring are reported like the broker's own: each once."""
import contextlib

import pytest
import secretstorage
from jeepney.io.blocking import open_dbus_connection

from rig.bodies import eventually
from rig.keyring import SCHEMA, heard, settle


@pytest.fixture
def watcher(stage, gnome):
    """A client whose broker has used the keyring, and knows its items."""
    stage.broker(environment=gnome.for_broker)
    client = stage.client()
    client.call("credential/list")
    settle(client)
    return client


def attributes(**more):
    return {"schema": SCHEMA, "server": "h.example", "protocol": "https", "port": "443", "user": "bob", **more}


def own(gnome, **more):
    """The item with these attributes, as another program sees it."""
    wanted = {key: value for key, value in {"user": "bob", **more}.items()}
    connection = open_dbus_connection(gnome.address)
    return contextlib.closing(connection), next(secretstorage.search_items(connection, wanted))


def next_change(client):
    """Returns the next notification; no other follows it."""
    found = []
    eventually(lambda: found.extend(heard(client, "credential/changed")) or found, "no notification of a change")
    return found + after(client)


def after(client):
    """Returns the notifications until the keyring has completed all pending calls, twice."""
    settle(client)
    return heard(client, "credential/changed")


STORED = {
    "change": "stored", "source": "keyring", "user": "bob", "protectionSpace": {
        "protocol": "https", "host": "h.example", "port": 443, "realm": None, "authenticationMethod": None, "isProxy": False}}
FORGOTTEN = {"change": "forgotten", "source": "keyring"}


def test_each_change_of_another_program_is_notified_once(stage, gnome, watcher):
    gnome.put(stage.secret(), **attributes())
    assert next_change(watcher) == [STORED]
    gnome.put(stage.secret(), **attributes())
    assert next_change(watcher) == [STORED]
    closing, item = own(gnome)
    with closing:
        item.set_attributes({**item.get_attributes(), "port": "8443"})
    assert next_change(watcher) == [{**STORED, "protectionSpace": {**STORED["protectionSpace"], "port": 8443}}]
    gnome.run("secret-tool", "clear", "server", "h.example")
    assert next_change(watcher) == [FORGOTTEN]


def test_the_brokers_own_changes_are_notified_once(stage, gnome, watcher):
    space = {"protocol": "https", "host": "h.example"}
    for _ in range(2):
        credential = {"type": "password", "user": "bob", "password": stage.secret(), "persistence": "permanent"}
        identifier = watcher.call("credential/store", {"protectionSpace": space, "credential": credential})["result"]["id"]
        assert next_change(watcher) == [STORED]
    other = {**credential, "user": "carol"}
    second = watcher.call("credential/store", {"protectionSpace": space, "credential": other})["result"]["id"]
    assert next_change(watcher) == [{**STORED, "user": "carol"}]
    assert watcher.call("credential/setDefault", {"id": second})["result"] == {}
    assert [change["change"] for change in next_change(watcher)] == ["defaultChanged"]
    assert watcher.call("credential/forget", {"id": identifier})["result"] == {"removed": 1}
    assert next_change(watcher) == [FORGOTTEN]
    # The next change of another program is still reported.
    gnome.run("secret-tool", "clear", "user", "carol")
    assert next_change(watcher) == [FORGOTTEN]


def test_the_watch_is_restored_by_the_next_use(stage, gnome, watcher):
    gnome.put(stage.secret(), **attributes())
    assert next_change(watcher) == [STORED]
    gnome.restart_gnome()
    assert watcher.call("keyring/status")["result"]["state"] == "usable"
    assert after(watcher) == []
    gnome.run("secret-tool", "clear", "server", "h.example")
    assert next_change(watcher) == [FORGOTTEN]
