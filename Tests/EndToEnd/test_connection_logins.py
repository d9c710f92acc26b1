"""NTLM and Negotiate: connection-level logins. The servers' own records show which user each request was served to."""
import os
import subprocess

import pytest
from rig.bodies import eventually
from rig.scripted import response
from rig.broker import program
from rig.servers import marked


@pytest.fixture
def broker(stage):
    return stage.configured('[schemes]\nntlm = ["127.0.0.1", "localhost"]\n')


def as_user(user, password, **more):
    return {"type": "password", "user": user, "password": password, "persistence": "none", **more}


def asking(stage, broker, reply):
    asked = []
    return stage.client(answer=lambda challenge: asked.append(challenge) or reply(challenge), broker=broker), asked


def never(challenge):
    pytest.fail("unexpected challenge")


def test_rule_l2_logins_that_do_not_authenticate_the_connection_share_one(stage):
    server = stage.server(lambda request: response(200 if request.authorization else 401, b"", 'WWW-Authenticate: Basic realm="Staff"'))
    for user in ["alice", "bob"]:
        result = stage.client().fetch(server.url, credential=as_user(user, stage.secret(server)))["result"]
        assert result["auth"]["user"] == user
    assert stage.client(delivery=None).fetch(server.url)["result"]["status"] == 401
    assert len(server.requests) == 5 and server.connections == 1


def test_rule_l2_no_state_of_libcurl_is_shared_between_handles():
    """With CURLSH, connections, cookies and TLS sessions would be."""
    found = subprocess.run(["readelf", "--dyn-syms", "--wide", program("watchwordd")], capture_output=True, text=True, check=True).stdout
    assert "curl_multi_init" in found and "curl_share_" not in found


# NTLM


def test_rule_l2_after_a_login_an_anonymous_fetch_and_one_as_another_are_served_as_what_they_are(stage, broker, ntlm, ntlm_users):
    client, asked = asking(stage, broker, lambda challenge: {"action": "continue"})
    for user in ["alice", "bob", "alice"]:
        own = as_user(f"TESTDOM\\{user}", ntlm_users[user])
        assert client.fetch(f"{ntlm.url}/{user}", credential=own)["result"]["body"]["value"] == f"hello TESTDOM\\{user}\n"
        assert client.fetch(ntlm.url + "/anonymous")["result"]["status"] == 401
        assert stage.client(delivery=None, broker=broker).fetch(ntlm.url + "/anonymous")["result"]["status"] == 401
    assert all(target == f"/{user.split(chr(92))[1]}" for _, target, user in ntlm.handler.served)
    assert len({(connection, user) for connection, _, user in ntlm.handler.served}) == len({one[0] for one in ntlm.handler.served})


# Negotiate

KERBEROS = '[schemes]\nnegotiate = ["localhost"]\n'
PAGE = "/kerberos/page.txt"


def with_tickets(stage, realm, kerberos_users, user="alice", text=KERBEROS, *options):
    return stage.configured(text, *options, environment=realm.log_in(user, kerberos_users[user]))


def test_requests_carry_the_ticket_of_their_user(stage, realm, kerberos_users, kerberos_apache):
    anonymous = stage.configured(KERBEROS, environment=realm.environment())
    for user in ["alice", "bob"]:
        broker, own, open_page = with_tickets(stage, realm, kerberos_users, user), marked(PAGE), marked("/open.txt")
        client = stage.client(broker=broker)
        assert client.fetch(kerberos_apache.url + own)["result"]["status"] == 200
        # Without storage, no credential of the user is sent.
        assert client.fetch(kerberos_apache.url + PAGE, auth={"useStorage": False})["result"]["status"] == 401
        assert client.fetch(kerberos_apache.url + open_page)["result"]["status"] == 200
        assert stage.client(broker=anonymous).fetch(kerberos_apache.url + PAGE)["result"]["status"] == 401
        assert [line.split()[1] for line in kerberos_apache.lines(own, 2)] == ["-", f"{user}@WATCHWORD.TEST"]
        assert [line.split()[1] for line in kerberos_apache.lines(open_page)] == ["-"]


def test_rule_n6_tickets_are_delegated_to_a_listed_host(stage, realm, kerberos_users, kerberos_apache):
    broker = with_tickets(stage, realm, kerberos_users, "alice", KERBEROS + 'delegate = ["localhost"]\n')
    assert stage.client(broker=broker).fetch(kerberos_apache.url + PAGE)["result"]["status"] == 200
    assert [path.name for path in kerberos_apache.delegated.iterdir()] == ["alice@WATCHWORD.TEST"]
    kerberos_apache.forget_delegated()


def test_rule_l2_a_connection_with_a_ticket_serves_no_other_user(stage, realm, kerberos_users):
    server = stage.server(lambda request: response(
        401 if request.authorization is None and request.target == "/login" else 200, b"", "WWW-Authenticate: Negotiate"))
    client = stage.client(broker=with_tickets(stage, realm, kerberos_users))
    url = server.url.replace("127.0.0.1", "localhost")
    for target in ["/login", "/open", "/login", "/open"]:
        assert client.fetch(url + target)["result"]["status"] == 200
    logged_in = {request.connection for request in server.requests if request.authorization}
    assert len(logged_in) == 1
    assert all(request.authorization for request in server.requests if request.connection in logged_in)


def test_rule_n5_the_service_is_not_chosen_by_a_reverse_lookup(stage, realm, kerberos_users, tmp_path):
    """For this configuration, the library's own names of services are those of a reverse lookup."""
    text = realm.configuration.read_text()
    for option in ["rdns", "dns_canonicalize_hostname"]:
        assert f"{option} = false" in text
        text = text.replace(f"{option} = false", f"{option} = true")
    (tmp_path / "krb5.conf").write_text(text)
    environment = {**realm.log_in("alice", kerberos_users["alice"], "reverse"), "KRB5_CONFIG": str(tmp_path / "krb5.conf")}
    looked_up = subprocess.run(
        ["kvno", "-S", "HTTP", "127.0.0.1"], env={**os.environ, **environment}, capture_output=True, text=True, timeout=30)
    assert looked_up.stdout.startswith(f"HTTP/localhost@{realm.name}: "), looked_up
    broker = stage.configured('[schemes]\nnegotiate = ["127.0.0.1"]\n', environment=environment)
    server = stage.server(lambda request: response(401, b"", "WWW-Authenticate: Negotiate"))
    client, asked = asking(stage, broker, never)
    assert client.fetch(server.url)["result"]["status"] == 401
    assert server.authorizations == [None]
    eventually(lambda: f"HTTP/127.0.0.1@{realm.name}" in (realm.folder / "kdc.log").read_text(), "no ticket was asked for")
