"""NTLM and Negotiate: connection-level logins. The servers' own records show which user each request was served to."""
import os
import subprocess

import pytest
from rig.bodies import eventually
from rig.client import password_answer
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

@pytest.mark.parametrize("name", [{"user": "TESTDOM\\alice"}, {"user": "alice", "domain": "TESTDOM"}])
def test_ntlm(stage, broker, ntlm, ntlm_users, name):
    stage.watch(ntlm)
    client, asked = asking(stage, broker, lambda challenge: password_answer(
        name["user"], ntlm_users["alice"], **{key: name[key] for key in name if key != "user"}))
    result = client.fetch(ntlm.url + "/one")["result"]
    assert (result["status"], result["body"]["value"]) == (200, "hello TESTDOM\\alice\n")
    assert result["auth"] == {"authenticationMethod": "ntlm", "source": "client", "user": name["user"]}
    assert result["httpVersion"] == "1.1" and asked[0]["accepts"] == ["password"] and len(asked) == 1
    # The session logs in again without a question, on the same connection.
    assert client.fetch(ntlm.url + "/two")["result"]["auth"]["source"] == "session"
    assert len({connection for connection, _, _ in ntlm.handler.served}) == 1 and len(asked) == 1


def test_ntlm_wrong_then_right(stage, broker, ntlm, ntlm_users):
    answers = [password_answer("TESTDOM\\alice", "wrong"), password_answer("TESTDOM\\alice", ntlm_users["alice"])]
    client, asked = asking(stage, broker, lambda challenge: answers.pop(0))
    assert client.fetch(ntlm.url)["result"]["status"] == 200
    assert [one["previousFailureCount"] for one in asked] == [0, 1], "its rounds are not failures"
    assert len(ntlm.handler.refused) == 1


def test_rule_l2_after_a_login_an_anonymous_fetch_and_one_as_another_are_served_as_what_they_are(stage, broker, ntlm, ntlm_users):
    client, asked = asking(stage, broker, lambda challenge: {"action": "continue"})
    for user in ["alice", "bob", "alice"]:
        own = as_user(f"TESTDOM\\{user}", ntlm_users[user])
        assert client.fetch(f"{ntlm.url}/{user}", credential=own)["result"]["body"]["value"] == f"hello TESTDOM\\{user}\n"
        assert client.fetch(ntlm.url + "/anonymous")["result"]["status"] == 401
        assert stage.client(delivery=None, broker=broker).fetch(ntlm.url + "/anonymous")["result"]["status"] == 401
    assert all(target == f"/{user.split(chr(92))[1]}" for _, target, user in ntlm.handler.served)
    assert len({(connection, user) for connection, _, user in ntlm.handler.served}) == len({one[0] for one in ntlm.handler.served})


def test_ntlm_over_plain_http_elsewhere_is_only_for_listed_hosts(stage, ntlm):
    client, asked = asking(stage, stage.configured('[schemes]\nntlm = ["elsewhere.test"]\n'), never)
    assert client.fetch(ntlm.url)["result"]["status"] == 401 and not asked


@pytest.mark.parametrize("target", ["http", "https"])
def test_a_proxy_that_demands_ntlm(stage, ntlm_proxy, ntlm_users, nginx, nginx_tls, tls, target):
    broker = stage.configured('[schemes]\nntlm = ["127.0.0.1"]\n', "--ca-file", str(tls / "ca.pem"))
    url = f"http://127.0.0.1:{nginx.port}/open.txt" if target == "http" else f"https://localhost:{nginx_tls.port}/open.txt"
    answers = [password_answer("TESTDOM\\alice", "wrong"), password_answer("TESTDOM\\alice", ntlm_users["alice"])]
    client, asked = asking(stage, broker, lambda challenge: answers.pop(0))
    result = client.fetch(url, proxy={"url": ntlm_proxy.url})["result"]
    assert (result["status"], result["body"]["value"]) == (200, "open page\n")
    assert [(one["protectionSpace"]["isProxy"], one["previousFailureCount"]) for one in asked] == [(True, 0), (True, 1)]
    assert [user for _, _, user in ntlm_proxy.handler.served] == ["TESTDOM\\alice"]
    stranger, asked = asking(stage, broker, lambda challenge: {"action": "continue"})
    assert stranger.fetch(url, proxy={"url": ntlm_proxy.url})["result"]["status"] == 407


# Negotiate

KERBEROS = '[schemes]\nnegotiate = ["localhost"]\n'
PAGE = "/kerberos/page.txt"


def with_tickets(stage, realm, kerberos_users, user="alice", text=KERBEROS, *options):
    return stage.configured(text, *options, environment=realm.log_in(user, kerberos_users[user]))


@pytest.mark.parametrize("way", ["http", "https"])
def test_rule_n6_tickets_are_used_without_delegation(stage, realm, kerberos_users, kerberos_apache, tls, way):
    broker = with_tickets(stage, realm, kerberos_users, "alice", KERBEROS, "--ca-file", str(tls / "ca.pem"))
    url = kerberos_apache.url if way == "http" else kerberos_apache.tls_url
    client, asked = asking(stage, broker, never)
    kerberos_apache.forget_delegated()
    for _ in range(2):
        result = client.fetch(f"{url}{PAGE}?{way}")["result"]
        assert (result["status"], result["body"]["value"]) == (200, "kerberos page\n")
        assert result["auth"] == {"authenticationMethod": "negotiate", "source": "ambient", "user": None}
    assert not asked and not list(kerberos_apache.delegated.iterdir())


def test_rule_n3_tickets_are_for_listed_hosts_only(stage, realm, kerberos_users, kerberos_apache):
    broker = with_tickets(stage, realm, kerberos_users, "alice", '[schemes]\nnegotiate = ["elsewhere.test"]\n')
    client, asked = asking(stage, broker, never)
    page = marked(PAGE)
    assert client.fetch(kerberos_apache.url + page)["result"]["status"] == 401
    assert [line.split()[:2] for line in kerberos_apache.lines(page)] == [["401", "-"]]


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


def test_rule_15_tickets_are_not_used_for_a_fetch_that_names_a_user(stage, realm, kerberos_users):
    broker = with_tickets(stage, realm, kerberos_users)
    server = stage.server(lambda request: response(200 if request.authorization else 401, b"", "WWW-Authenticate: Negotiate"))
    client, asked = asking(stage, broker, never)
    url = server.url.replace("127.0.0.1", "localhost")
    assert client.fetch(url.replace("//", "//bob@"))["result"]["status"] == 401
    assert server.authorizations == [None]
    assert client.fetch(url)["result"]["auth"]["source"] == "ambient"


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


def test_rule_o2_without_a_ticket_the_weaker_scheme_raises_a_challenge(stage, realm, kerberos_users, kerberos_apache):
    """The session has a Basic password that the server would accept."""
    password, url = kerberos_users["bob"], kerberos_apache.url + "/either/page.txt"
    broker = stage.configured(KERBEROS, environment=realm.environment())
    own = {"type": "password", "user": "bob", "password": password}
    client, asked = asking(stage, broker, lambda challenge: {"action": "continue"})
    result = client.fetch(url, credential=own)["result"]
    assert result["status"] == 200 and result["auth"]["authenticationMethod"] == "httpBasic", "tickets are not used for a named user"
    assert client.fetch(url, auth={"preemptive": False})["result"]["status"] == 401
    assert [one["protectionSpace"]["authenticationMethod"] for one in asked] == ["httpBasic"]
    assert asked[0]["proposedCredential"]["source"] == "session"


@pytest.mark.parametrize("has_ticket", [True, False])
def test_rule_n7_ntlm_inside_negotiate_is_never_sent(stage, realm, kerberos_users, ntlm_in_disguise, has_ticket):
    environment = realm.log_in("alice", kerberos_users["alice"]) if has_ticket else realm.environment()
    client, asked = asking(stage, stage.configured(KERBEROS, environment=environment), never)
    url = ntlm_in_disguise.url.replace("127.0.0.1", "localhost")
    assert client.fetch(url)["result"]["status"] == 401
    assert b"NTLMSSP" not in ntlm_in_disguise.wire and b"TlRMTVNTUA" not in ntlm_in_disguise.wire


def test_a_kdc_that_does_not_answer_stalls_no_other_fetch(stage, realm, kerberos_users, kerberos_apache, silent_kdc, nginx):
    realm.log_in("alice", kerberos_users["alice"], "unused")
    broker = stage.configured(KERBEROS, environment=silent_kdc.environment(realm, "unused"))
    waiting = stage.client(broker=broker)
    call = waiting.start("fetch/run", {"url": kerberos_apache.url + PAGE})
    eventually(lambda: silent_kdc.asked, "the KDC is not asked", 20)
    others = stage.client(broker=broker)
    for number in range(20):
        assert others.fetch(f"http://127.0.0.1:{nginx.port}/open.txt?{number}")["result"]["status"] == 200
    assert call not in waiting.replies
    waiting.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": call}})
    assert waiting.wait(call, 20)["error"]["code"] == -32800


@pytest.mark.parametrize("way", ["negotiate", "tls-negotiate"])
@pytest.mark.parametrize("target", ["http", "https"])
def test_a_proxy_that_demands_kerberos(stage, realm, kerberos_users, squid, nginx, nginx_tls, tls, way, target):
    options = ["--ca-file", str(tls / "ca.pem")]
    url = f"http://127.0.0.1:{nginx.port}" if target == "http" else f"https://localhost:{nginx_tls.port}"
    text = f'{KERBEROS}[proxy]\nurl = "{squid.url(way)}"\n'
    broker = with_tickets(stage, realm, kerberos_users, "alice", text, *options)
    client, asked = asking(stage, broker, never)
    line = f" alice@WATCHWORD.TEST port={squid.ports[way]} "
    before = squid.log.count(line)
    result = client.fetch(url + "/open.txt")["result"]
    assert result["status"] == 200 and result["proxyAuth"]["authenticationMethod"] == "negotiate"
    # squid writes the line of a tunnel when the tunnel has ended.
    broker.stop()
    squid.wait_for_log(line, before + 1)
    # SEMANTICS rule 24: no ticket is sent to a proxy that the fetch has named itself.
    quiet, asked = asking(stage, with_tickets(stage, realm, kerberos_users, "alice", KERBEROS, *options), never)
    assert quiet.fetch(url + "/open.txt", proxy={"url": squid.url(way)})["result"]["status"] == 407
