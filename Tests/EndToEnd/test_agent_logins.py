"""The agent's windows for less common logins: NTLM's domain, tokens, proxies, stored logins, keys on a token."""

import pytest

from rig.bodies import eventually
from rig.keyring import description
from rig.ntlm import DOMAIN
from rig.scripted import basic, basic_server, bearer_server
from rig.tls import PASSPHRASE
from test_agent_windows import ask, asked, started  # noqa: F401

pytestmark = pytest.mark.tier3("windows")


def test_ntlm_asks_for_the_domain_too(stage, asked, desktop, ntlm, ntlm_users):
    stage.watch(ntlm)
    agent, client, fetch = asked(ntlm.url, "Log In", stage.configured('[schemes]\nntlm = ["127.0.0.1"]\n'))
    agent.open_details()
    desktop.hear("NTLM: a hash is sent, which can be relayed")
    desktop.key("alt+u")
    desktop.fill({"User": "alice", "Password": ntlm_users["alice"]})
    desktop.key("alt+m")
    desktop.fill({"Domain": DOMAIN})
    desktop.picture("ntlm")
    agent.press("Log In", "Return")
    assert client.wait(fetch)["result"]["status"] == 200
    assert ntlm.handler.served[-1][2] == f"{DOMAIN}\\alice"


def test_a_token_is_typed_refused_and_typed_again(stage, asked, desktop):
    token = stage.secret()
    server = stage.server(bearer_server(token))
    stage.allow(token, server)
    agent, client, fetch = asked(server.url, "Token")
    agent.open_details()
    desktop.hear("Bearer: the token itself is sent")
    desktop.key("alt+t")
    desktop.hear("Token", role="password text", focused=True)
    desktop.hear("Cancel", role="push button")
    desktop.key("Return")
    desktop.type("not-it")
    agent.press("Send", "Return")
    desktop.hear("The last token was refused. Attempt 2.")
    desktop.hear("Token", role="password text", focused=True)
    desktop.picture("token")
    desktop.type(token)
    agent.press("Send", "Return")
    assert client.wait(fetch)["result"]["body"]["value"] == "for the bearer\n"


@pytest.mark.parametrize("scheme", ["basic", "digest"])
def test_a_proxy_is_named_as_a_proxy(stage, asked, desktop, squid, nginx, account, scheme):
    user, password = account
    stage.watch(squid, nginx)
    broker = stage.configured(f'[proxy]\nurl = "{squid.url(scheme)}"\n')
    agent, client, fetch = asked(f"http://127.0.0.1:{nginx.port}/open.txt", "Log In", broker)
    desktop.hear_all(f"Log in to the proxy localhost:{squid.ports[scheme]}", "The proxy says: “Proxy”")
    desktop.fill({"User": user, "Password": password})
    desktop.picture(f"proxy-{scheme}")
    agent.press("Log In", "Return")
    result = client.wait(fetch)["result"]
    assert (result["status"], result["proxyAuth"]["source"]) == (200, "agent")


def test_an_empty_password_is_sent_by_the_button_and_not_by_enter(stage, asked, desktop):
    server = stage.server(basic_server("a-token-as-user", ""))
    agent, client, fetch = asked(server.url, "Log In")
    desktop.fill({"User": "a-token-as-user"})
    desktop.hear("Log In", role="push button", sensitive=True)
    for _ in range(3):
        desktop.key("Return")
    # Keys are handled in order: once this one has had its effect, so have the others.
    desktop.hear("Password", role="password text", focused=True)
    desktop.key("shift+Tab")
    desktop.hear("User", role="text", focused=True)
    assert server.authorizations == [None], "nothing was sent"
    agent.press("Log In", "alt+l")
    assert client.wait(fetch)["result"]["status"] == 200


def test_a_stored_login_is_offered_and_used(stage, started, desktop, kerberos_users, kerberos_apache, realm):
    """Without a ticket, the weaker scheme must be asked about."""
    broker = stage.configured('[schemes]\nnegotiate = ["localhost"]\n', environment=realm.environment())
    agent, client = started(broker), stage.client(delivery=None)
    url = kerberos_apache.url + "/either/page.txt"
    own = {"type": "password", "user": "bob", "password": kerberos_users["bob"]}
    assert client.fetch(url, credential=own)["result"]["status"] == 200
    fetch = ask(client, url, auth={"interaction": "agent", "preemptive": False})
    agent.window("Log In")
    desktop.hear("Use the Saved Login of bob", role="push button")
    desktop.picture("stored")
    desktop.hear("Log In", role="push button", sensitive=True)
    agent.press("Use the Saved Login of bob", "alt+e")
    assert client.wait(fetch)["result"]["status"] == 200


def two_logins(stage, gnome):
    """A server with the user alice, and two logins for it in the keyring, neither of which is the default."""
    server, password = stage.protected("alice")
    for user, secret in (("bob", stage.secret()), ("alice", password)):
        gnome.put(secret, **description(server, user))
    return server, password


def test_one_of_several_saved_logins_is_picked(stage, asked, desktop, gnome):
    server, password = two_logins(stage, gnome)
    agent, client, fetch = asked(server.url, "Log In", stage.broker(environment=gnome.for_broker))
    # The list is enabled after the initial delay.
    desktop.hear("Saved logins: choose one, or type another", role="list", sensitive=True)
    desktop.hear("“alice”, saved in the keyring", role="list item")
    desktop.hear("“bob”, saved in the keyring", role="list item")
    desktop.hear("User", role="text", focused=True)
    desktop.key("alt+a")
    if not desktop.hear("saved in the keyring", role="list item", focused=True)["name"].startswith("“alice”"):
        desktop.key("Down")
    desktop.hear("“alice”, saved in the keyring", role="list item", focused=True)
    desktop.hear("Cancel", role="push button")
    desktop.picture("known")
    desktop.key("Return")
    result = client.wait(fetch)["result"]
    assert (result["status"], result["auth"]["source"], result["auth"]["user"]) == (200, "keyring", "alice")
    assert server.authorizations == [None, basic("alice", password)]
    agent.no_window("Log In")


def test_another_name_than_those_listed_is_a_login(stage, asked, desktop, gnome):
    server, _ = two_logins(stage, gnome)
    agent, client, fetch = asked(server.url, "Log In", stage.broker(environment=gnome.for_broker))
    desktop.fill({"User": "carol", "Password": "carols-own"})
    agent.press("Log In", "Return")
    desktop.hear("The last password was refused. Attempt 2.")
    assert server.authorizations == [None, basic("carol", "carols-own")]
    desktop.hear("“alice”, saved in the keyring", role="list item")
    desktop.key("Escape")
    assert client.wait(fetch)["error"]["data"]["kind"] == "challengeCancelled"


def test_a_certificate_is_chosen_among_the_files(stage, asked, desktop, certificates, client_nginx):
    server = client_nginx()
    agent, client, fetch = asked(f"{server.url}/page.txt", "Client Certificate", stage.broker("--ca-file", str(certificates / "ca.pem")))
    agent.go("Choose the certificate")
    desktop.key("space")
    eventually(lambda: "Choose the certificate" in desktop.windows().values(), lambda: desktop.windows())
    # A slash begins a path.
    desktop.type(str(certificates / "client.p12"))
    desktop.picture("chooser")
    desktop.key("Return")
    eventually(lambda: "Choose the certificate" not in desktop.windows().values(), lambda: desktop.windows())
    desktop.hear("Certificate: PEM", role="text", focused=True)
    agent.go("Passphrase or PIN, if there is one")
    desktop.type(PASSPHRASE)
    desktop.picture("certificate")
    agent.press("Use Certificate", "Return")
    assert client.wait(fetch)["result"]["body"]["value"] == "page for you\n"
