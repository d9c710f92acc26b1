"""The broker with gnome-keyring, what it stores, finds, and never sends; passwords and changes of other programs; and keyrings that are
locked, silent, exiting, without encryption, or missing: no fetch fails, and none waits for long. libsecret and GLib are loaded on the
first use of the keyring."""
import contextlib
import os
import platform
import subprocess
import threading

import pytest
import secretstorage
from jeepney import DBusAddress, new_method_call
from jeepney.io.blocking import open_dbus_connection

from rig.bodies import eventually
from rig.broker import program
from rig.client import password_answer
from rig.keyring import SCHEMA, SERVICE, Keyring, description, heard, lock, settle
from rig.scripted import DigestCheck, ScriptedServer, basic, basic_server, response
from rig.servers import private
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
    client = stage.client(broker=broker, answer={"action": "continue"})
    result = client.fetch(server.url)["result"]
    assert client.asked == []
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


SET = "import keyring, sys; keyring.set_password(sys.argv[1], sys.argv[2], sys.stdin.read())"


@pytest.fixture
def server(stage):
    server, server.password = stage.protected()
    return server


def git(gnome, helper, action, **lines):
    """Passes text to the helper as git does; returns its output as pairs."""
    said = gnome.run(helper, action, text="".join(f"{name}={value}\n" for name, value in lines.items()) + "\n")
    return dict(line.split("=", 1) for line in said.splitlines())


def port(server):
    return f"127.0.0.1:{server.port}"


@pytest.mark.parametrize("service", ["127.0.0.1:{}", "http://127.0.0.1:{}", "http://127.0.0.1:{}/", "git"])
def test_a_password_that_pythons_keyring_or_git_has_stored_is_used(stage, gnome, server, git_helper, service):
    if service == "git":
        git(gnome, git_helper, "store", protocol="http", host=port(server), username="bob", password=server.password)
    else:
        gnome.run("/usr/bin/python3", "-c", SET, service.format(server.port), "bob", text=server.password,
                  PYTHON_KEYRING_BACKEND="keyring.backends.SecretService.Keyring")
    assert [secret for _, secret in gnome.items()] == [server.password]
    result = unasked(stage, start_broker(stage, gnome), server)
    assert (result["status"], result["auth"]["source"]) == (200, "keyring")
    assert server.authorizations == [None, basic("bob", server.password)]


@pytest.mark.parametrize("way", ["challenge", "by hand", "by hand, with the realm"])
def test_git_reads_and_erases_what_we_have_stored(stage, gnome, server, git_helper, way):
    broker = stage.broker(environment=gnome.for_broker)
    client = stage.client(answer=lambda params: password_answer("bob", server.password, persistence="permanent"))
    if way == "challenge":
        assert client.fetch(server.url)["result"]["status"] == 200
    else:
        realm = {"realm": "Staff", "authenticationMethod": "httpBasic"} if "realm" in way else {}
        store(client, server, "bob", server.password, **realm)
    settle(client)
    found = git(gnome, git_helper, "get", protocol="http", host=port(server))
    assert (found["username"], found["password"]) == ("bob", server.password)
    assert git(gnome, git_helper, "get", protocol="https", host=port(server)) == {}
    git(gnome, git_helper, "erase", protocol="http", host=port(server), username="bob", password=server.password)
    assert gnome.items() == []
    broker.stop()


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
    with contextlib.closing(open_dbus_connection(gnome.address)) as connection:
        item = next(secretstorage.search_items(connection, {"user": "bob"}))
        item.set_attributes({**item.get_attributes(), "port": "8443"})
    assert next_change(watcher) == [{**STORED, "protectionSpace": {**STORED["protectionSpace"], "port": 8443}}]
    gnome.run("secret-tool", "clear", "server", "h.example")
    assert next_change(watcher) == [FORGOTTEN]


def test_locking_and_unlocking_changes_nothing(stage, gnome, watcher):
    gnome.put(stage.secret(), **attributes())
    assert next_change(watcher) == [STORED]
    lock(gnome, Keyring.start_gnome)
    assert watcher.call("keyring/status")["result"]["state"] == "locked" and after(watcher) == []
    with gnome.collection() as found:
        session = secretstorage.util.open_session(found.connection)
        service = DBusAddress("/org/freedesktop/secrets", SERVICE, "org.gnome.keyring.InternalUnsupportedGuiltRiddenInterface")
        given = (found.collection_path, secretstorage.util.format_secret(session, b"rig", "text/plain"))
        found.connection.send_and_get_reply(new_method_call(service, "UnlockWithMasterPassword", "o(oayays)", given))
    assert watcher.call("keyring/status")["result"]["state"] == "usable" and after(watcher) == []


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


def start_configured(stage, environment, lines=limit(PATIENT)):
    """Starts a broker with a configuration file at the path from the manual page."""
    folder = stage.folder / f"config{len(stage.brokers)}"
    (folder / "watchword").mkdir(parents=True, mode=0o700)
    private(folder / "watchword" / "config.toml", lines)
    return stage.broker(environment={**environment, "XDG_CONFIG_HOME": str(folder)})


def asked_once(stage, broker, server, password, **more):
    """Makes a fetch that is challenged once and then succeeds. Returns the challenge."""
    client = stage.client(
        broker=broker, answer=password_answer("bob", password, **more))
    assert client.fetch(server.url)["result"]["auth"]["source"] == "client"
    settle(client)
    assert len(client.asked) == 1
    assert server.authorizations[-2:] == [None, basic("bob", password)]
    return client.asked[0]


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
    broker = start_configured(stage, keyring.for_broker, limit(SHORT if fault in SILENT else PATIENT))
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
    broker = start_configured(stage, environment, lines)
    assert asked_once(stage, broker, server, password, persistence="permanent")["persistenceAllowed"] == ["none", "forSession"]
    assert state(stage, broker)[:2] == ("unavailable", "disabled" if bus == "not in use" else "absent")
    listed = stage.client().call("credential/list")["result"]
    assert [one["source"] for one in listed["credentials"]] == ["session"]
    assert listed["keyring"]["state"] == "unavailable"
    if bus == "not in use":
        assert keyring.calls == []


KEYRING = ("libsecret-1.so", "libglib-2.0.so", "libgobject-2.0.so", "libgio-2.0.so")
# On other systems the linker binds the functions.
has_table = pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="no table of functions for this processor")


def loaded(broker):
    """Returns which of the keyring's libraries the broker has loaded."""
    with open(f"/proc/{broker.process.pid}/maps") as maps:
        text = maps.read()
    return [name for name in KEYRING if name in text]


@has_table
@pytest.mark.parametrize("name", ["watchword", "watchwordd"])
def test_no_program_is_linked_with_them(name):
    """A function that Sources/CSecretLoader/functions.h does not list would link its library again."""
    found = subprocess.run(["readelf", "--dynamic", "--wide", program(name)], capture_output=True, text=True, check=True).stdout
    needed = [line for line in found.splitlines() if "(NEEDED)" in line]
    assert needed and not [line for line in needed if any(library in line for library in KEYRING)]


@has_table
@pytest.mark.skipif(os.geteuid() != 0, reason="only root sees what a broker has loaded")
def test_the_first_use_loads_them(stage, gnome):
    broker = stage.broker(environment=gnome.for_broker)
    client = stage.client(broker=broker)
    assert loaded(broker) == []
    client.call("credential/list", None)
    assert loaded(broker) == list(KEYRING)
    assert client.call("server/status")["result"]["keyring"]["state"] == "usable"


@has_table
def test_a_library_that_cannot_be_loaded(stage, gnome, tmp_path):
    """Only the keyring is unavailable, and the reason names the library. A netrc file is not used instead of the keyring, which
    may contain another login. The library may become available later."""
    library = tmp_path / "libsecret-1.so.0"
    library.write_text("no library")
    server, password = stage.protected()
    netrc = private(stage.folder / "logins.netrc", f"machine 127.0.0.1:{server.port} login eve password wrong\n")
    broker = stage.configured(
        f'[credentials]\nnetrc = "{netrc}"\n', environment={**gnome.for_broker, "LD_LIBRARY_PATH": str(tmp_path)})
    client = stage.client(broker=broker, answer=lambda challenge: password_answer("bob", password))
    for _ in range(2):
        assert client.call("credential/list", None)["result"]["keyring"]["state"] == "unavailable"
        status = client.call("server/status")["result"]["keyring"]
        assert status["kind"] == "refused" and "libsecret-1" in status["reason"]
    assert client.fetch(server.url)["result"]["status"] == 200
    assert len(server.authorizations) == 2, "the netrc file was not used"
    library.unlink()
    assert client.call("credential/list", None)["result"]["keyring"]["state"] != "unavailable"
    assert broker.stop() == 0


@has_table
def test_without_a_bus_there_is_no_keyring_to_load_a_library_for(stage, tmp_path):
    (tmp_path / "libsecret-1.so.0").write_text("no library")
    server, password = stage.protected()
    netrc = private(stage.folder / "logins.netrc", f"machine 127.0.0.1:{server.port} login bob password {password}\n")
    broker = stage.configured(f'[credentials]\nnetrc = "{netrc}"\n', environment={"LD_LIBRARY_PATH": str(tmp_path)})
    result = stage.client(broker=broker, answer=lambda challenge: pytest.fail("unexpected challenge")).fetch(server.url)["result"]
    assert (result["status"], result["auth"]["source"]) == (200, "netrc")
