"""Keyrings that are locked, silent, exiting, without encryption, or missing: no fetch fails, and none waits for long."""
import contextlib

import pytest
from jeepney import DBusAddress, new_method_call
from jeepney.io.blocking import open_dbus_connection

from rig.bodies import eventually
from rig.client import password_answer
from rig.keyring import SCHEMA, SERVICE, description, settle
from rig.scripted import basic

# The limits of a keyring call: long enough for a service that replies on a busy machine, and short for one that does not.
PATIENT, SHORT = 20, 1
FAULTS = {
    # The behaviour of the rig's service, and the state and kind that the broker reports.
    "locked": ("locked", "locked"),
    "dismiss": ("locked", "locked"),
    "stall": ("unavailable", "timedOut"),
    "mute": ("unavailable", "timedOut"),
    "die": ("unavailable", "lost"),
    "plain": ("unavailable", "plainOnly"),
}

# The calls that a service receives which does not reply, or only to the first one.
SILENT = {"mute": ["OpenSession"], "stall": ["OpenSession", "SearchItems"]}


def limit(seconds):
    return f"[keyring]\ncall-limit-ms = {seconds * 1000}\n"


def start_broker(stage, environment, lines=limit(PATIENT)):
    """Starts a broker with a configuration file at the path from the manual page."""
    folder = stage.folder / f"config{len(stage.brokers)}" / "watchword"
    folder.mkdir(parents=True, mode=0o700)
    file = folder / "config.toml"
    file.touch(mode=0o600)
    file.write_text(lines)
    return stage.broker(environment={**environment, "XDG_CONFIG_HOME": str(folder.parent)})


def asked_once(stage, broker, server, password, **more):
    """Makes a fetch that is challenged once and then succeeds. Returns the challenge."""
    asked = []
    client = stage.client(
        broker=broker, answer=lambda params: asked.append(params) or password_answer("bob", password, **more))
    assert client.fetch(server.url)["result"]["auth"]["source"] == "client"
    settle(client)
    assert len(asked) == 1
    assert server.authorizations[-2:] == [None, basic("bob", password)]
    return asked[0]


def calls_so_far(keyring):
    """Returns the calls that the rig's service had received when it received one of the test, which waits for no reply."""
    mark = new_method_call(DBusAddress("/", SERVICE, "org.example.Test"), "Mark")
    count = keyring.calls.count("Mark")
    with contextlib.closing(open_dbus_connection(keyring.address)) as connection:
        connection.send(mark)
        eventually(lambda: keyring.calls.count("Mark") > count, "the service does not receive the call")
    return [call for call in keyring.calls if call != "Mark"]


def state(stage, broker):
    status = stage.client(broker=broker, delivery=None).call("server/status")["result"]["keyring"]
    return status["state"], status.get("kind"), status.get("reason")


@pytest.mark.parametrize("holds", ["something", "nothing"])
@pytest.mark.parametrize("fault", FAULTS)
def test_without_a_usable_keyring_the_client_is_asked(stage, fault, holds):
    server, password = stage.protected()
    stored = stage.secret()
    items = [({"xdg:schema": SCHEMA, **description(server)}, stored)] if holds == "something" else []
    keyring = stage.keyring().start_rig(fault, *items)
    broker = start_broker(stage, keyring.for_broker, limit(SHORT if fault in SILENT else PATIENT))
    client = stage.client()
    call = client.start("fetch/run", {"url": server.url})
    challenge = client.challenges.get(timeout=25)
    # This must precede any other keyring call: a service that has exited reports nothing more.
    told = state(stage, broker)
    assert told[:2] == FAULTS[fault]
    assert len(told[2].split()) > 2, told[2]
    assert challenge["params"]["persistenceAllowed"] == ["none", "forSession"]
    client.reply(challenge, password_answer("bob", password, persistence="permanent"))
    assert client.wait(call)["result"]["status"] == 200
    assert server.authorizations == [None, basic("bob", password)]
    assert broker.stop() == 0
    calls = keyring.calls if fault == "die" else calls_so_far(keyring)
    # Storing is not tried if it was not offered: no prompt opens.
    assert {"Unlock", "Prompt", "CreateItem"}.isdisjoint(calls)
    # The broker does not wait for a silent service again.
    if fault in SILENT:
        assert calls == SILENT[fault]


@pytest.mark.parametrize("bus", ["none", "gone", "without a keyring", "not in use"])
def test_without_a_keyring(stage, bus):
    server, password = stage.protected()
    lines = "[keyring]\nenabled = false\n" if bus == "not in use" else ""
    if bus == "none":
        environment = {}
    elif bus == "gone":
        environment = {"DBUS_SESSION_BUS_ADDRESS": f"unix:path={stage.folder}/no-bus"}
    else:
        keyring = stage.keyring()
        environment = keyring.for_broker
        if bus == "not in use":
            keyring.start_rig(None, ({"xdg:schema": SCHEMA, **description(server)}, stage.secret()))
    broker = start_broker(stage, environment, lines)
    assert asked_once(stage, broker, server, password, persistence="permanent")["persistenceAllowed"] == ["none", "forSession"]
    assert state(stage, broker)[:2] == ("unavailable", "disabled" if bus == "not in use" else "absent")
    client = stage.client()
    listed = client.call("credential/list")["result"]
    assert [one["source"] for one in listed["credentials"]] == ["session"]
    assert listed["keyring"]["state"] == "unavailable"
    if bus == "not in use":
        assert keyring.calls == []
