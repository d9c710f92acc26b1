"""The agent's windows and its manager with real servers, gnome-keyring and a real display, operated with the keyboard."""
import json
import os
import pathlib

import pytest

from rig import audit
from rig.bodies import eventually
from rig.broker import program
from rig.keyring import SCHEMA, description
from rig.scripted import basic_server, response
from rig.tls import PASSPHRASE
from test_client_certificates import broker_with_token  # noqa: F401

pytestmark = pytest.mark.tier3("windows")


@pytest.fixture
def started(stage, desktop, start_agent):
    """`started(broker)` starts an agent that is registered with the broker."""
    return lambda broker=None, **more: start_agent(broker or stage.broker(), desktop, **more).wait_until_registered()


def ask(client, url, **params):
    return client.start("fetch/run", {"url": url, "auth": {"interaction": "agent"}, **params})


def two_logins(stage, gnome):
    """A server with the user alice, and two logins for it in the keyring, neither of which is the default."""
    server, password = stage.protected("alice")
    for user, secret in (("bob", stage.secret()), ("alice", password)):
        gnome.put(secret, **description(server, user))
    return server, password


@pytest.fixture
def asked(stage, started):
    """`asked(url, title)` starts an agent and a fetch, and waits for the window with the title; returns agent, client and fetch."""
    def begin(url, title, broker=None, params={}, **more):
        agent, client = started(broker, **more), stage.client(delivery=None)
        fetch = ask(client, url, **params)
        agent.window(title)
        return agent, client, fetch

    return begin


def test_a_password_is_typed_refused_and_typed_again(stage, asked, desktop, nginx, account):
    """nginx with Basic, operated with the keyboard only."""
    user, password = account
    stage.watch(nginx)
    agent, client, fetch = asked(f"http://127.0.0.1:{nginx.port}/staff/page.txt", "Log In")
    desktop.hear("The server says: “Staff”")
    desktop.hear("Not encrypted (http), but the password stays on this machine unless a proxy is used")
    desktop.hear("For this session: until it is unused for 10 minutes or the computer sleeps, at most 2 hours.")
    assert not any(f"process {os.getpid()}" in one["name"] for one in desktop.heard()), "only in the details"
    agent.open_details()
    desktop.hear_all(f"process {os.getpid()}", "Scheme: Basic: the password itself is sent")
    desktop.key("alt+u")
    desktop.fill({"User": user, "Password": "wrong-one"})
    agent.press("Log In", "Return")
    desktop.hear("The last password was refused. Attempt 2.")
    # The user is already filled in.
    desktop.fill({"Password": password})
    agent.press("Log In", "Return")
    result = client.wait(fetch)["result"]
    assert (result["status"], result["body"]["value"]) == (200, "staff page\n")
    assert result["auth"] == {"authenticationMethod": "httpBasic", "source": "agent", "user": user}
    agent.no_window("Log In")
    again = ask(client, f"http://127.0.0.1:{nginx.port}/staff/page.txt")
    assert client.wait(again)["result"]["auth"]["source"] == "session", "stored by default"
    assert password not in agent.log


def test_the_questions_of_a_program_are_stopped(stage, asked, desktop):
    first, second, third = (stage.server(basic_server("bob", stage.secret(), realm)) for realm in ("One", "Two", "Three"))
    agent, client, fetch = asked(first.url, "Log In")
    desktop.hear("The server says: “One”")
    assert not any("Stop Asking" in one["name"] for one in desktop.heard()), "not at the first question"
    agent.press("Cancel")
    assert client.wait(fetch)["error"]["data"]["kind"] == "challengeCancelled"
    agent.no_window("Log In")
    fetch = ask(client, second.url)
    agent.window("Log In")
    desktop.hear("The server says: “Two”")
    desktop.picture("stop-asking")
    agent.press("Stop Asking for This Program")
    assert client.wait(fetch)["error"]["data"]["kind"] == "challengeCancelled"
    agent.no_window("Log In")
    result = client.wait(ask(client, third.url))["result"]
    assert result["status"] == 401 and result["noRespondent"] == "stopped"
    [stopped] = client.call("prompt/list")["result"]["stopped"]
    assert client.call("prompt/resume", {"subject": stopped["subject"]})["result"]["resumed"] == 1
    fetch = ask(client, third.url)
    agent.window("Log In")
    desktop.hear("The server says: “Three”")
    agent.press("Cancel")
    client.wait(fetch)


def test_do_not_save_and_user_of_the_url(stage, started, desktop):
    server, password = stage.protected()
    agent, client = started(), stage.client(delivery=None)
    for _ in range(2):
        fetch = ask(client, server.url.replace("http://", "http://bob@"))
        agent.window("Log In")
        desktop.fill({"Password": password})
        agent.press("Do Not Save")
        desktop.hear("Do Not Save", role="push button", pressed=True)
        agent.press("Log In")
        assert client.wait(fetch)["result"]["status"] == 200
        agent.no_window("Log In")


def test_save_in_the_keyring_and_forget_in_the_list(stage, asked, desktop, gnome, start_agent):
    server, password = stage.protected()
    broker = stage.broker(environment=gnome.for_broker)
    agent, client, fetch = asked(server.url, "Log In", broker)
    desktop.fill({"User": "bob", "Password": password})
    agent.press("In the Keyring")
    desktop.hear("In the Keyring", role="push button", pressed=True)
    agent.press("Log In")
    assert client.wait(fetch)["result"]["status"] == 200

    def listed():
        return {one["source"] for one in client.call("credential/list")["result"]["credentials"]}

    eventually(lambda: listed() == {"session", "keyring"}, "the logins are not in session and keyring")
    eventually(lambda: "credentialUsed" in audit.kinds(broker), "no audit record")
    listing = start_agent(broker, desktop, "--list")
    listing.window("Saved Logins")
    desktop.hear(f"http://127.0.0.1:{server.port}: “bob”, saved in the keyring · the server says “Staff”")
    forget = f"Forget “bob” at http://127.0.0.1:{server.port}"
    desktop.hear(forget, role="push button")
    desktop.picture("saved")
    listing.press(forget)
    desktop.hear("Forget This Login?")
    desktop.hear("Cancel", focused=True)
    desktop.key("Tab")
    desktop.hear("Forget", role="push button", focused=True)
    desktop.key("space")
    eventually(lambda: len(listed()) == 1, "the login was not forgotten")
    eventually(lambda: desktop.key("alt+r") or "Login at" in str(desktop.summary()), lambda: desktop.summary())
    desktop.hear(f"Login at http://127.0.0.1:{server.port} as “bob”")
    desktop.hear(f"Forgot a login for http://127.0.0.1:{server.port} as “bob”")
    eventually(lambda: desktop.key("Escape") or listing.process.poll() is not None, "the list does not close")
    assert listing.process.returncode == 0


def test_a_client_certificate_is_named(stage, asked, desktop, certificates, client_nginx):
    server = client_nginx()
    broker = stage.broker("--ca-file", str(certificates / "ca.pem"))
    agent, client, fetch = asked(f"{server.url}/page.txt", "Client Certificate", broker)
    desktop.hear("Accepts certificates from: CN=")
    desktop.type("elsewhere.pem")
    agent.press("Use Certificate", "Return")
    desktop.hear("elsewhere.pem is not a full path: begin with / or ~/")
    desktop.key("ctrl+a")
    desktop.type(str(certificates / "client.pem"))
    agent.go("Private key, if it is in another file")
    desktop.type(str(certificates / "client-locked.key"))
    agent.go("Passphrase or PIN, if there is one")
    desktop.type("not it")
    agent.press("Use Certificate", "Return")
    desktop.hear("The passphrase or PIN is wrong or missing. Attempt 2.")
    # Certificate and key are already filled in.
    desktop.fill({"Passphrase or PIN": PASSPHRASE})
    agent.press("Use Certificate", "Return")
    assert client.wait(fetch)["result"]["body"]["value"] == "page for you\n"


def test_a_used_certificate_is_listed_afterwards(stage, started, desktop, certificates, client_nginx):
    """The certificate is selected although another one was used later, because its issuer is accepted."""
    server = client_nginx()
    broker = stage.broker("--ca-file", str(certificates / "ca.pem"))
    agent, client = started(broker), stage.client(delivery=None)
    remembered = audit.state(broker) / "agent-certificates.json"
    remembered.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    remembered.write_text(json.dumps([
        {"certificate": str(certificates / "stranger.pem"), "privateKey": str(certificates / "stranger.key")},
        {"certificate": str(certificates / "client.pem"), "privateKey": str(certificates / "client-locked.key")}]))
    fetch = ask(client, f"{server.url}/page.txt")
    agent.window("Client Certificate")
    desktop.hear("Alice Client, Issued by Test authority · valid until ", role="list item", focused=True)
    assert not any(one["name"] == "Certificate: PEM, PKCS#12 or pkcs11: URI" for one in desktop.heard()), "only for other files"
    desktop.key("Down")
    desktop.hear("Stranger Client, Issued by Another authority", role="list item", focused=True)
    desktop.key("Up")
    desktop.hear("Alice Client", role="list item", focused=True)
    desktop.hear("Use Certificate", role="push button", sensitive=True)
    desktop.picture("certificate-list")
    desktop.key("Return")
    desktop.fill({"Passphrase or PIN": PASSPHRASE})
    desktop.key("Return")
    assert client.wait(fetch)["result"]["body"]["value"] == "page for you\n"
    eventually(lambda: "client.pem" in json.loads(remembered.read_text())[0]["certificate"], remembered.read_text)
    assert remembered.stat().st_mode & 0o777 == 0o600 and PASSPHRASE not in remembered.read_text()


def test_a_certificate_on_a_token_is_chosen_with_the_keyboard(stage, started, desktop, broker_with_token, client_nginx, token):
    server = client_nginx("on", "TLSv1.2")
    agent, client = started(broker_with_token, environment=token.environment), stage.client(delivery=None)
    fetch = ask(client, f"{server.url}/page.txt")
    for pin in ("000000", token.pin):
        agent.window("Client Certificate")
        desktop.hear("On the token “watchword”", role="list item", focused=pin != token.pin)
        if pin != token.pin:
            desktop.key("Return")
        else:
            desktop.hear("The passphrase or PIN is wrong or missing. Attempt 2.")
        desktop.fill({"Passphrase or PIN": pin})
        agent.press("Use Certificate", "Return")
    assert client.wait(fetch)["result"]["status"] == 200


def test_a_server_is_trusted_by_the_button_and_not_by_enter(asked, desktop, tls_server, certificates):
    server = tls_server("wrong-name")
    agent, client, fetch = asked(server.url, "Server Identity")
    desktop.hear_all("It was issued for another name: elsewhere.test.", "Its issuer is not trusted by this machine.")
    shown = desktop.hear("SHA-256 fingerprint: ")["name"].partition(": ")[2]
    assert shown.replace(":", "").replace("\n", "").lower() == certificates.fingerprint("wrong-name")
    desktop.hear("Cancel", role="push button", focused=True)
    desktop.picture("trust")
    desktop.hear("Trust", role="push button", sensitive=True)
    desktop.key("Return")
    assert client.wait(fetch)["error"]["data"]["kind"] == "serverNotTrusted"
    agent.no_window("Server Identity")
    fetch = ask(client, server.url)
    agent.window("Server Identity")
    desktop.hear("This Time", pressed=True)
    agent.press("Trust")
    assert client.wait(fetch)["result"]["status"] == 200


def test_keys_typed_for_another_window_do_not_trust(stage, started, desktop, tls_server):
    """The key is pressed while the window appears: only keys pressed after the initial delay count."""
    server = tls_server("self-signed")
    started()
    client = stage.client(delivery=None)
    fetch = ask(client, server.url)
    eventually(lambda: desktop.key(*["alt+t"] * 5) or fetch in client.replies, "the fetch got no answer")
    assert client.wait(fetch)["result"]["timingsMs"]["challenge"] >= 400


def test_rule_g5_consent_is_asked_for_and_given(stage, started, desktop):
    server, password = stage.protected()
    broker = stage.broker()
    agent, friend = started(broker), stage.client(delivery=None)
    friend.store(server, "bob", password, realm="Staff", authenticationMethod="httpBasic")
    sandbox = stage.sandbox(broker)
    sandbox.send({"id": 1, "method": "fetch/run", "params": {"url": server.url, "auth": {"interaction": "agent"}}})
    agent.window("Permission")
    desktop.hear_all(
        "Let “org.example.Maps” use your login?", "Verified: other programs cannot use this name",
        "Login: “bob”, saved for this session", f"At: http://127.0.0.1:{server.port}", "Server says: “Staff”")
    desktop.hear("No", role="push button", focused=True)
    agent.press("For This Session")
    desktop.hear("For This Session", pressed=True)
    agent.press("Allow")
    assert sandbox.read()["result"]["status"] == 200
    agent.no_window("Permission")
    friend.call("grant/revoke", {"id": friend.call("grant/list")["result"]["grants"][0]["id"]})
    sandbox.send({"id": 2, "method": "fetch/run", "params": {"url": server.url, "auth": {"interaction": "agent"}}})
    agent.window("Permission")
    desktop.hear("Allow", role="push button", sensitive=True)
    desktop.key("Return")
    # After the refusal, no login is requested for this program.
    assert sandbox.read()["result"]["noRespondent"] == "consentDenied"
    agent.no_window("Permission")


def test_a_question_cancelled_elsewhere_closes_its_window(stage, asked, desktop):
    server = stage.server(basic_server("bob", "not-needed"))
    agent, client, first = asked(server.url, "Log In")
    desktop.hear("Log in to 127.0.0.1")
    second = ask(client, f"http://localhost:{server.port}/")
    client.cancel(first)
    desktop.hear(f"Log in to localhost:{server.port}")
    client.close()
    agent.no_window("Log In")
    assert second not in client.replies


def test_the_agent_outlives_the_broker(stage, asked, desktop):
    server, password = stage.protected()
    broker = stage.broker()
    agent, _, _ = asked(server.url, "Log In", broker)
    broker.kill()
    agent.no_window("Log In")
    broker.start()
    agent.wait_until_registered(times=2)
    client = stage.client(delivery=None)
    fetch = ask(client, server.url)
    agent.window("Log In")
    desktop.fill({"User": "bob", "Password": password})
    agent.press("Log In", "Return")
    assert client.wait(fetch)["result"]["status"] == 200


def test_a_second_agent_reports_the_running_one(started):
    agent = started()
    second = agent.second()
    assert second.returncode == 3
    assert f"another watchword-agent runs in this session (process {agent.process.pid})" in second.stderr
    agent.end()
    agent.start().wait_until_registered(times=2)


HOSTILE = "<b>Bank</b>\u202e&amp;\u200b" + "x" * 500


def test_text_of_a_server_is_quoted_and_escaped(stage, asked, desktop):
    realm = HOSTILE.encode().decode("latin-1")
    server = stage.server(lambda request: response(401, b"no", f'WWW-Authenticate: Basic realm="{realm}"'))
    agent, client, fetch = asked(server.url, "Log In")
    shown = desktop.hear("The server says: ")["name"]
    assert shown.startswith("The server says: “<b>Bank</b>‹U+202E›&amp;‹U+200B›xxx")
    assert shown.endswith("xxx”") and "x…x" in shown and len(shown) < 110
    desktop.picture("hostile")
    agent.open_details()
    agent.press("Continue Without Logging In")
    assert client.wait(fetch)["result"]["status"] == 401


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
    return [one["name"] for one in desktop.heard() if one["role"] == "list item" and one["name"].startswith(title)]


def test_a_login_is_added_to_the_keyring_and_used(stage, opened, desktop, gnome):
    server, password = stage.protected()
    broker = stage.broker(environment=gnome.for_broker)
    client, manager = stage.client(delivery=None), opened(broker)
    desktop.hear("No Saved Logins")
    desktop.hear("Add Login", role="push button", sensitive=True)
    desktop.key("ctrl+n")
    manager.window("Add Login")
    desktop.fill({"Address: a host or a URL": f"http://127.0.0.1:{server.port}/page"})
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
    client, manager = stage.client(delivery=None), opened(stage.brokers[0])
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
    desktop.fill({"Passphrase to unlock, if you want one": passphrase})
    desktop.picture("lock")
    desktop.key("Return")
    manager.no_window("Lock Saved Logins?")
    desktop.hear("No program can use a saved login, and none is added.")
    assert client.call("credential/list")["error"]["data"]["kind"] == "locked"
    assert not desktop.hear("Add Login", role="push button")["sensitive"]
    manager.press("Unlock")
    manager.window("Unlock Saved Logins")
    desktop.hear("The passphrase of the lock is needed.")
    desktop.fill({"Passphrase": "not it"})
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
    desktop.fill({"Passphrase": passphrase})
    desktop.key("Return")
    eventually(lambda: "result" in client.call("credential/list"), desktop.summary)
    desktop.hear("No Saved Logins")


def test_a_locked_keyring_is_unlocked(stage, opened, desktop):
    """With the rig's keyring, whose own window is answered at once."""
    item = ({"xdg:schema": SCHEMA, "server": "intranet.example", "protocol": "https", "user": "bob"}, stage.secret())
    manager = opened(stage.broker(environment=stage.keyring().start_rig("ask", item).for_broker))
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
    stage.consenter(broker, "session")
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


@pytest.fixture
def settings(stage, opened, desktop):
    """A broker, the file with its configuration, and the manager, which shows the settings."""
    broker = stage.configured(CONFIGURATION)
    path, manager = pathlib.Path(broker.options[-1]), opened(broker)
    desktop.hear(f"These settings are in {path}")
    desktop.key("alt+t")
    return broker, path, manager


def test_a_setting_is_written_and_the_broker_reads_it(settings, desktop):
    broker, path, manager = settings
    desktop.picture("settings")
    manager.go("Use the keyring", "space")
    eventually(lambda: path.read_text() == f"{CONFIGURATION}\n[keyring]\nenabled = false\n", path.read_text)
    eventually(lambda: "configuration reloaded" in broker.log, lambda: broker.log)
    manager.go("Forget unused logins after: choose", "space")
    desktop.hear("1 minute", role="list item")
    desktop.key("Home", "Return")
    eventually(lambda: path.read_text().endswith("\n[limits]\nsession-idle-s = 60\n"), path.read_text)
    eventually(lambda: broker.log.count("configuration reloaded") == 2, lambda: broker.log)
    assert manager.process.poll() is None


def test_an_error_in_the_configuration_is_shown_and_nothing_is_written(settings, desktop):
    broker, path, manager = settings
    desktop.hear("Use the keyring", role="check box")
    broken = CONFIGURATION.replace("user", "everyone")
    path.write_text(broken)
    manager.go("Use the keyring", "space")
    desktop.hear("Another program has changed the file meanwhile. Try again.")
    manager.go("Use the keyring", "space")
    desktop.hear("The configuration would be invalid: line 3: sharing.session: ")
    desktop.picture("settings-error")
    assert path.read_text() == broken and "configuration reloaded" not in broker.log
