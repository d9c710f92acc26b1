"""Negotiate over TLS is bound to the server's certificate (`tls-server-end-point`). The server checks the binding with another
GSS-API implementation; a login that an attacker relays to another server is useless there."""
import base64
import hashlib
import itertools

import gssapi
import pytest

from rig.scripted import response

KERBEROS = '[schemes]\nnegotiate = ["localhost"]\n'
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


@pytest.mark.parametrize("kind, function", [("good", "sha256"), ("sha384", "sha384")])
def test_a_login_is_bound_to_the_certificate_of_the_server(client, accepting, tls_server, kind, function):
    service = accepting(kind, function)
    server = tls_server(kind, service)
    for number in range(3):
        result = client.fetch(f"{server.url}/{number}")["result"]
        assert result["status"] == 200 and result["auth"]["source"] == "ambient"
    assert service.seen == ["alice@WATCHWORD.TEST"] * 3


def test_a_relayed_login_is_refused(client, accepting, tls_server):
    """An attacker with another certificate for the name, who relays the login to the real server."""
    service = accepting("good")
    server = tls_server("other-good", service)
    assert client.fetch(server.url)["result"]["status"] == 401
    assert service.seen == ["bound to something else"]


@pytest.mark.parametrize("bound, status, seen", [
    ("other-good", 200, ["alice@WATCHWORD.TEST"]), ("good", 401, ["bound to something else"])])
def test_another_certificate_on_the_second_connection(client, accepting, tls_server, bound, status, seen):
    """A server of a farm, which checks its own certificate; and an attacker who lets only the first connection through."""
    service = accepting(bound)

    def handle(request):
        server.leaf = "other-good"
        return service(request)

    server = tls_server("good", handle)
    assert client.fetch(server.url)["result"]["status"] == status
    assert service.seen == seen


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
    server = tls_server("other-good", lambda request: service(request) if request.authorization else asks)
    client.fetch(server.url)
    assert service.seen == ["bound to something else"]
