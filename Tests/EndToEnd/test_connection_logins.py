"""Logins over the real socket: challenges with each answer, Bearer, Digest, and NTLM and Negotiate, which log in a connection and are bound
to the certificate of a server (`tls-server-end-point`)."""
import base64
import hashlib
import itertools
import os
import subprocess

import gssapi
import pytest

from rig.bodies import eventually
from rig.broker import program
from rig.client import password_answer
from rig.scripted import DigestCheck, basic, bearer_server, response, rounds_server
from rig.servers import marked


@pytest.fixture
def broker(stage):
    return stage.configured('[schemes]\nntlm = ["127.0.0.1", "localhost"]\n')


def as_user(user, password, **more):
    return {"type": "password", "user": user, "password": password, "persistence": "none", **more}


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


def test_rule_l2_after_a_login_an_anonymous_fetch_and_one_as_another_are_served_as_what_they_are(stage, broker, ntlm, ntlm_users):
    client = stage.client(answer={"action": "continue"}, broker=broker)
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
    kerberos_apache.forget_delegated()
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
    assert stage.client(answer=never, broker=broker).fetch(server.url)["result"]["status"] == 401
    assert server.authorizations == [None]
    eventually(lambda: f"HTTP/127.0.0.1@{realm.name}" in (realm.folder / "kdc.log").read_text(), "no ticket was asked for")


ASKS = response(401, b"please log in", "WWW-Authenticate: Negotiate")


class Service:
    """Accepts logins that are bound to the certificate `der`; `seen` contains the outcome of each."""

    def __init__(self, realm, der, function):
        self.credentials = gssapi.Credentials(usage="accept", store={"keytab": f"FILE:{realm.keytab}"})
        name = b"tls-server-end-point:" + hashlib.new(function, der).digest()
        self.binding, self.seen = gssapi.raw.ChannelBindings(application_data=name), []

    def __call__(self, request):
        if request.authorization is None:
            return ASKS
        token = base64.b64decode(request.authorization.removeprefix("Negotiate "))
        try:
            login = gssapi.raw.accept_sec_context(token, self.credentials, channel_bindings=self.binding)
        except gssapi.exceptions.BadChannelBindingsError:
            self.seen.append("bound to something else")
            return ASKS
        self.seen.append(gssapi.raw.display_name(login.initiator_name, False).name.decode())
        return response(200, b"welcome", f"WWW-Authenticate: Negotiate {base64.b64encode(login.token).decode()}")


@pytest.fixture
def accepting(monkeypatch, realm, certificates):
    for name in ["KRB5_CONFIG", "KRB5RCACHENAME"]:
        monkeypatch.setenv(name, realm.service_environment[name])
    return lambda kind, function="sha256": Service(realm, certificates.pairs[kind].der, function)


@pytest.fixture
def client(stage, realm, kerberos_users, certificates):
    stage.configured(KERBEROS, "--ca-file", str(certificates / "ca.pem"), environment=realm.log_in("alice", kerberos_users["alice"]))
    return stage.client(answer=lambda challenge: {"action": "continue"})


ALICE, ELSEWHERE = "alice@WATCHWORD.TEST", "bound to something else"


@pytest.mark.parametrize("first, later, bound, function, seen", [
    ("good", "good", "good", "sha256", ALICE), ("sha384", "sha384", "sha384", "sha384", ALICE),
    # A server of a farm, which checks its own certificate.
    ("good", "other-good", "other-good", "sha256", ALICE),
    # An attacker with another certificate for the name, who relays the login to the real server, also after the first connection.
    ("other-good", "other-good", "good", "sha256", ELSEWHERE), ("good", "other-good", "good", "sha256", ELSEWHERE)])
def test_a_login_is_bound_to_the_certificate_of_the_server(client, accepting, tls_server, first, later, bound, function, seen):
    service = accepting(bound, function)

    def handle(request):
        server.leaf = later
        return service(request)

    server = tls_server(first, handle)
    for number in range(3 if first == bound == later else 1):
        result = client.fetch(f"{server.url}/{number}")["result"]
        assert result["status"] == (200 if seen == ALICE else 401)
        assert seen != ALICE or result["auth"]["source"] == "ambient"
    assert service.seen == [seen] * (number + 1)


def test_an_endlessly_changing_farm_ends_the_attempts(client, accepting, tls_server):
    service = accepting("good")
    server = tls_server("good", service)
    shown = itertools.cycle(["other-good", "good"])
    context = server._context

    def changing():
        server.leaf = next(shown)
        return context()

    server._context = changing
    failure = client.fetch(server.url)
    assert failure["error"]["data"]["kind"] == "cannotConnect" and "a different certificate" in failure["error"]["message"], failure
    assert service.seen == []


@pytest.mark.parametrize("field", ['Basic realm="x", Negotiate', "NTLM, Negotiate", ", Negotiate"])
def test_the_form_of_the_challenge_does_not_disable_the_binding(client, accepting, tls_server, field):
    service = accepting("good")
    asks = response(401, b"please log in", f"WWW-Authenticate: {field}")
    client.fetch(tls_server("other-good", lambda request: service(request) if request.authorization else asks).url)
    assert service.seen == ["bound to something else"]


@pytest.mark.parametrize("framing", ["lines", "headers"])
def test_a_credential_is_asked_for_once_and_remembered(stage, framing):
    server, password = stage.protected("bob")
    client = stage.client(answer=password_answer("bob", password), framing=framing)
    first = client.fetch(server.url + "/a/one")["result"]
    second = client.fetch(server.url + "/a/two")["result"]
    assert (first["status"], first["exchanges"], first["auth"]["source"]) == (200, 2, "client")
    assert (second["status"], second["exchanges"], second["auth"]["source"]) == (200, 1, "session")
    assert first["body"] == {"type": "string", "value": "welcome"}
    assert server.authorizations == [None, basic("bob", password), basic("bob", password)]
    assert server.connections == 1
    assert len(client.asked) == 1
    assert client.asked[0]["protectionSpace"] == {
        "protocol": "http", "host": "127.0.0.1", "port": server.port, "realm": "Staff", "authenticationMethod": "httpBasic",
        "isProxy": False, "receivesCredentialSecurely": False}
    assert client.asked[0]["requester"]["name"] == "rig"


def test_rule_k1_a_token_is_sent_in_the_authorization_field_only(stage):
    secret = stage.secret()
    server = stage.server(bearer_server(secret))
    stage.allow(secret, server)
    client = stage.client(answer={"action": "credential", "credential": {"type": "token", "token": secret}})
    result = client.fetch(server.url)["result"]
    assert result["status"] == 200
    assert result["auth"] == {"authenticationMethod": "bearer", "source": "client", "user": None}
    assert client.asked[0]["accepts"] == ["token"] and client.asked[0]["protectionSpace"]["realm"] == "api"
    assert client.asked[0]["persistenceAllowed"] == ["none", "forSession"]
    # Stored for the session, sent before a challenge, and never listed.
    assert client.fetch(server.url)["result"]["exchanges"] == 1
    listed = client.call("credential/list")["result"]["credentials"]
    assert [(one["user"], one["protectionSpace"]["authenticationMethod"]) for one in listed] == [(None, "bearer")]
    assert not any(secret in request.target or secret.encode() in request.body for request in server.requests)


def test_a_scheme_in_several_rounds(stage):
    """The server's next round is a challenge for the client, with the state from its answer."""
    first, second = stage.secret(), stage.secret()
    server = stage.server(rounds_server([('challenge="1"', f'response="{first}"'), ('challenge="2"', f'response="{second}"')]))
    for secret in [first, second]:
        stage.allow(secret, server)

    def reply(challenge):
        number = challenge["offers"][0]["params"]["challenge"]
        value = f'response="{first if number == "1" else second}"'
        return {"action": "credential", "credential": {"type": "header", "scheme": "hoba", "value": value, "state": f"round {number}"}}

    client = stage.client(answer=reply)
    result = client.fetch(server.url)["result"]
    assert result["status"] == 200 and result["body"]["value"] == "after all rounds\n"
    assert [one["protectionSpace"]["authenticationMethod"] for one in client.asked] == ["other", "other"]
    assert [one.get("state") for one in client.asked] == [None, "round 1"]
    assert [one["previousFailureCount"] for one in client.asked] == [0, 0] and client.asked[0]["accepts"] == ["header"]
    assert client.fetch(server.url)["result"]["exchanges"] == 3, "nothing of it is stored"


ALGORITHMS = ["MD5", "MD5-sess", "SHA-256", "SHA-256-sess", "SHA-512-256", "SHA-512-256-sess"]


class Site:
    """One server, and one client that answers its challenges."""

    def __init__(self, stage, user="bob", password=None, **more):
        password = password or stage.secret()
        self.check = DigestCheck(user, password, **more)
        self.server = stage.server(self.check)
        self.client = stage.client(answer=lambda params: password_answer(user, password))

    def fetch(self, path="/x", **more):
        return self.client.fetch(self.server.url + path, **more)

    def statuses(self, paths, **more):
        replies = [self.fetch(path, **more)["result"] for path in paths]
        assert self.check.problems == []
        return [(reply["status"], reply["exchanges"]) for reply in replies]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("body", [None, "", "Grüße\r\n" * 1000])
def test_rule_d4_auth_int_covers_the_body(stage, algorithm, body):
    place = Site(stage, algorithm=algorithm, qop="auth-int")
    more = {} if body is None else {"method": "POST", "body": {"type": "string", "value": body}}
    assert place.statuses(["/a?b=c", "/a?b=d"], **more) == [(200, 2), (200, 1)]
    assert [request.body for request in place.server.requests] == [(body or "").encode()] * 3


def test_rule_d7_a_proxy_sees_the_whole_url_and_the_server_the_path(stage):
    password = stage.secret()
    # A forwarding proxy sends the server the origin form (RFC 9112 section 3.2.1).
    check = DigestCheck("bob", password)
    targets = []

    def forward(request):
        targets.append(request.target)
        request.target = request.target.removeprefix("http://elsewhere.example")
        return check(request)

    proxy = stage.server(forward)
    client = stage.client(answer=lambda params: password_answer("bob", password), broker=stage.configured(f'[proxy]\nurl = "{proxy.url}"\n'))
    assert client.fetch("http://elsewhere.example:80/a/../b?c=%22d")["result"]["status"] == 200
    assert check.problems == []
    assert targets == ["http://elsewhere.example/b?c=%22d"] * 2
    assert 'uri="/b?c=%22d"' in proxy.authorizations[-1]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("charset", ["UTF-8", None])
@pytest.mark.parametrize("userhash", [False, True])
def test_rule_d10_and_d11_users_and_passwords_beyond_ascii_are_accepted(stage, algorithm, charset, userhash):
    place = Site(stage, user="Jäsøn Doe", password="Sécret, or nöt?", algorithm=algorithm, charset=charset, userhash=userhash)
    assert place.statuses(["/x", "/y"]) == [(200, 2), (200, 1)]


@pytest.mark.parametrize("charset", ["UTF-8", None])
@pytest.mark.parametrize("user, password", [("Łukasz \"日\"", "€uro"), ("bob", "€uro"), ("日", "Grüße"), ("Zoë", "€")])
def test_rule_d11_users_and_passwords_beyond_iso_8859_1_are_sent_as_utf_8(stage, charset, user, password):
    place = Site(stage, user=user, password=password, charset=charset)
    assert place.statuses(["/x", "/y"]) == [(200, 2), (200, 1)]


def test_rule_d11_a_listed_host_gets_latin_1(stage):
    check = DigestCheck("Zoë", "geheim§ç", encoding="latin-1")
    server = stage.server(check)
    client = stage.client(broker=stage.configured('[schemes]\nlatin1 = ["127.0.0.1"]'), answer=lambda _: password_answer("Zoë", "geheim§ç"))
    assert [client.fetch(server.url + "/x")["result"]["exchanges"] for _ in range(2)] == [2, 1] and check.problems == []


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("qop", ["auth", "auth-int"])
def test_rule_d15_a_right_proof_is_accepted(stage, algorithm, qop):
    place = Site(stage, algorithm=algorithm, qop=qop, proof="right", announces=True, user="é", charset="UTF-8")
    assert place.statuses(["/x", "/y"]) == [(200, 2), (200, 1)]


def test_rule_d15_the_shell_helper_reports_a_wrong_proof_and_exits_with_67(stage, shell):
    password = stage.secret()
    server = stage.server(DigestCheck("bob", password, proof="wrong"))
    store = ["credentials", "store", server.url, "--user", "bob", "--password-stdin"]
    assert shell.run(*store, input=password.encode()).returncode == 0
    done = shell.run("fetch", server.url)
    assert (done.returncode, done.stdout) == (67, b"")
    assert b"rspauth" in done.stderr
