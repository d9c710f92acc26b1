"""The agent's manager with a real broker, gnome-keyring and a real display, operated with the keyboard."""
import os
import pathlib

import pytest

from rig.bodies import eventually
from rig.broker import program
from rig.keyring import SCHEMA
from rig.subjects import Consenter

pytestmark = pytest.mark.tier3("windows")

SPACE = {"protocol": "https", "host": "intranet.example", "port": 443, "realm": "Staff", "authenticationMethod": "httpBasic"}


@pytest.fixture
def opened(desktop, start_agent):
    """`opened(broker)` opens the manager."""
    def start(broker):
        path = f"{pathlib.Path(program('watchword')).parent}:{os.environ['PATH']}"
        manager = start_agent(broker, desktop, "--list", environment={"PATH": path})
        manager.window("Saved Logins")
        desktop.has_keyboard("Saved Logins")
        return manager

    return start


def store(client, user, password, realm="Staff", persistence="permanent"):
    credential = {"type": "password", "user": user, "password": password, "persistence": persistence}
    reply = client.call("credential/store", {"protectionSpace": {**SPACE, "realm": realm}, "credential": credential})
    assert "result" in reply, reply


def listed(client):
    return client.call("credential/list")["result"]["credentials"]


def rows(desktop, title):
    """Returns the texts of the rows with this title."""
    return [one["name"] for one in desktop.heard() if one["role"] == "list item" and one["name"].startswith(title)]


def test_a_login_is_added_to_the_keyring_and_used(stage, opened, desktop, gnome):
    server, password = stage.protected()
    broker = stage.broker(environment=gnome.for_broker)
    client, manager = stage.client(delivery=None), opened(broker)
    desktop.hear("No Saved Logins")
    desktop.hear("Add Login", role="push button", sensitive=True)
    desktop.key("ctrl+n")
    manager.window("Add Login")
    desktop.hear("Address: a host or a URL", role="text", focused=True)
    desktop.type(f"http://127.0.0.1:{server.port}/page")
    warning = "The password would be readable on the network: http is not encrypted"
    assert not any(one["name"] == warning for one in desktop.heard()), "not for this machine"
    desktop.key("alt+u")
    desktop.fill({"User": "bob"})
    assert desktop.hear("Add", role="push button", sensitive=False)
    desktop.key("Tab")
    desktop.fill({"Password": password})
    desktop.hear("In the Keyring", pressed=True)
    desktop.picture("add-login")
    desktop.key("Return")
    manager.no_window("Add Login")
    desktop.hear(f"http://127.0.0.1:{server.port}: “bob”, saved in the keyring")
    assert [text for _, text in gnome.items()] == [password]
    result = client.fetch(server.url, auth={"interaction": "none"})["result"]
    assert result["status"] == 200 and result["auth"]["source"] == "keyring"
    assert password not in manager.log


def test_a_mistyped_address_is_explained_and_nothing_is_stored(stage, opened, desktop):
    client, manager = stage.client(delivery=None), None
    manager = opened(stage.brokers[0])
    desktop.hear("Add Login", role="push button", sensitive=True)
    desktop.key("ctrl+n")
    manager.window("Add Login")
    for field, text in [("Address: a host or a URL", "ftp://intranet.example"), ("User", "bob"), ("Password", "not stored")]:
        desktop.hear(field, focused=True)
        desktop.type(text)
        desktop.key("Tab")
    desktop.key("alt+d")
    desktop.hear("ftp is not supported: type an address with https or http")
    desktop.hear("Address: a host or a URL", focused=True)
    desktop.key("ctrl+a")
    desktop.type("http://intranet.example")
    desktop.hear("The password would be readable on the network: http is not encrypted")
    desktop.key("Escape")
    manager.no_window("Add Login")
    assert listed(client) == [] and manager.process.poll() is None


def test_the_list_is_searched_and_the_default_set(stage, opened, desktop):
    client = stage.client(delivery=None)
    for user, realm in [("alice", "Staff"), ("bob", "Staff"), ("carol", "Board")]:
        store(client, user, stage.secret(), realm, "forSession")
    manager = opened(stage.brokers[0])
    eventually(lambda: len(rows(desktop, "https://intranet.example")) == 3, desktop.summary)
    assert [name for name in rows(desktop, "https") if "by default" in name] == [
        "https://intranet.example: “alice”, saved for this session · the server says “Staff” · used by default"]
    desktop.key("ctrl+f")
    desktop.hear("Host, user or realm", focused=True)
    desktop.type("STAFF bob")
    eventually(lambda: ["bob" in name for name in rows(desktop, "https")] == [True], desktop.summary)
    desktop.picture("search")
    manager.press("Use “bob” at https://intranet.example by default")
    eventually(lambda: {one["user"]: one["isDefault"] for one in listed(client)} == {"alice": False, "bob": True, "carol": True},
               lambda: listed(client))
    # The list follows the change, and the search continues.
    eventually(lambda: rows(desktop, "https") == [
        "https://intranet.example: “bob”, saved for this session · the server says “Staff” · used by default"], desktop.summary)
    # Escape ends the search first.
    desktop.key("Escape")
    eventually(lambda: len(rows(desktop, "https://intranet.example")) == 3, desktop.summary)
    assert manager.process.poll() is None


def test_saved_logins_are_locked_and_unlocked_with_a_passphrase(stage, opened, desktop):
    client, passphrase = stage.client(delivery=None), "tower and moat"
    store(client, "bob", stage.secret(), persistence="forSession")
    manager = opened(stage.brokers[0])
    desktop.hear("“bob”, saved for this session")
    desktop.key("ctrl+l")
    manager.window("Lock Saved Logins?")
    desktop.hear("Passphrase to unlock, if you want one", role="password text", focused=True)
    desktop.type(passphrase)
    desktop.picture("lock")
    desktop.key("Return")
    manager.no_window("Lock Saved Logins?")
    desktop.hear("No program can use a saved login, and none is added.")
    assert client.call("credential/list")["error"]["data"]["kind"] == "locked"
    assert not desktop.hear("Add Login", role="push button")["sensitive"]
    manager.press("Unlock")
    manager.window("Unlock Saved Logins")
    desktop.hear("The passphrase of the lock is needed.")
    desktop.hear("Passphrase", role="password text", focused=True)
    desktop.type("not it")
    desktop.key("Return")
    desktop.hear("The passphrase is wrong. Wait a few seconds before you try again.")
    desktop.key("Escape")
    manager.no_window("Unlock Saved Logins")
    # The broker accepts no passphrase in the first second after a wrong one.
    eventually(lambda: "result" in client.call("broker/unlock", {"passphrase": passphrase}), "still locked")
    desktop.hear("No Saved Logins")
    client.call("broker/lock", {"passphrase": passphrase})
    desktop.hear("No program can use a saved login, and none is added.")
    manager.press("Unlock")
    desktop.hear("Passphrase", role="password text", focused=True)
    desktop.type(passphrase)
    desktop.key("Return")
    eventually(lambda: "result" in client.call("credential/list"), desktop.summary)
    desktop.hear("No Saved Logins")


def test_a_locked_keyring_is_unlocked(stage, opened, desktop):
    """With the rig's keyring, whose own window is answered at once."""
    item = ({"xdg:schema": SCHEMA, "server": "intranet.example", "protocol": "https", "user": "bob"}, stage.secret())
    broker = stage.broker(environment=stage.keyring().start_rig("ask", item).for_broker)
    manager = opened(broker)
    desktop.hear("The keyring cannot be used: ")
    desktop.picture("locked-keyring")
    manager.press("Unlock Keyring")
    desktop.hear("https://intranet.example: “bob”, saved in the keyring", role="list item")
    assert not any("Unlock Keyring" in one["name"] for one in desktop.heard())


def test_a_permission_is_revoked(stage, opened, desktop):
    """The sandboxed program is asked about by a scripted agent, because only the manager's windows are tested here."""
    server, password = stage.protected()
    broker = stage.broker()
    client = stage.client(delivery=None)
    stage.clients.append(Consenter(broker.socket, "session"))
    client.store(server, "bob", password, realm="Staff", authenticationMethod="httpBasic")
    sandbox = stage.sandbox(broker)
    manager = opened(broker)
    desktop.hear("No Permissions")
    sandbox.send({"id": 1, "method": "fetch/run", "params": {"url": server.url, "auth": {"interaction": "agent"}}})
    assert sandbox.read()["result"]["status"] == 200
    # The page follows the decision.
    desktop.hear(f"org.example.Maps: “bob” at http://127.0.0.1:{server.port} · allowed for this session")
    desktop.key("alt+p")
    desktop.picture("permissions")
    manager.press(f"Revoke the decision about org.example.Maps: “bob” at http://127.0.0.1:{server.port}")
    eventually(lambda: client.call("grant/list")["result"]["grants"] == [], desktop.summary)
    desktop.hear_all("No Permissions", "Revoked. You will be asked again.")


CONFIGURATION = "# mine\n[sharing]\nsession = \"user\" # all\n"


def test_a_setting_is_written_and_the_broker_reads_it(stage, opened, desktop):
    broker = stage.configured(CONFIGURATION)
    path = pathlib.Path(broker.options[-1])
    manager = opened(broker)
    desktop.hear(f"These settings are in {path}")
    desktop.key("alt+t")
    desktop.picture("settings")
    manager.go("Use the keyring")
    desktop.key("space")
    eventually(lambda: path.read_text() == f"{CONFIGURATION}\n[keyring]\nenabled = false\n", path.read_text)
    eventually(lambda: "configuration reloaded" in broker.log, lambda: broker.log)
    manager.go("Forget unused logins after: choose")
    desktop.key("space")
    desktop.hear("1 minute", role="list item")
    desktop.key("Home", "Return")
    eventually(lambda: path.read_text().endswith("\n[limits]\nsession-idle-s = 60\n"), path.read_text)
    eventually(lambda: broker.log.count("configuration reloaded") == 2, lambda: broker.log)
    assert manager.process.poll() is None


def test_an_error_in_the_configuration_is_shown_and_nothing_is_written(stage, opened, desktop):
    broker = stage.configured(CONFIGURATION)
    path = pathlib.Path(broker.options[-1])
    manager = opened(broker)
    desktop.hear(f"These settings are in {path}")
    desktop.key("alt+t")
    desktop.hear("Use the keyring", role="check box")
    broken = CONFIGURATION.replace("user", "everyone")
    path.write_text(broken)
    manager.go("Use the keyring")
    desktop.key("space")
    desktop.hear("Another program has changed the file meanwhile. Try again.")
    manager.go("Use the keyring")
    desktop.key("space")
    desktop.hear("The configuration would be invalid: line 3: sharing.session: ")
    desktop.picture("settings-error")
    assert path.read_text() == broken and "configuration reloaded" not in broker.log
