"""Attacks and accidents found in a review, with certificates, proxies and stored credentials."""
import ssl
import threading

import pytest
from rig.bodies import Download, eventually
from rig.client import password_answer
from rig.forwarding import ForwardProxy
from rig.scripted import ScriptedServer, basic, basic_server, response
from rig.tls import BreakingOff, TlsServer


def shown(certificates, certificate="client.pem", key="client.key", **more):
    credential = {"type": "certificate", "certificate": str(certificates / certificate), **more}
    if key:
        credential["privateKey"] = str(certificates / key)
    return credential


def subscribed(stage, broker, reply, mode="everything"):
    asked = []
    client = stage.client(answer=lambda challenge: asked.append(challenge) or reply(challenge), broker=broker)
    assert "result" in client.call("auth/subscribe", {"mode": mode})
    return client, asked


@pytest.fixture
def broker(stage, certificates):
    return stage.broker("--ca-file", str(certificates / "ca.pem"))


def trust(challenge, persistence="none"):
    leaf = challenge["protectionSpace"]["serverTrust"]["chain"][0]
    return {"action": "credential", "credential": {"type": "trust", "spkiSha256": leaf["spkiSha256"], "persistence": persistence}}


@pytest.mark.parametrize("rest", [b"", b"\x82\x05hello", response(200, b"inner")], ids=["nothing", "frames", "http"])
def test_an_unrequested_101_is_not_a_result(stage, rest):
    switching = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    server = stage.server(ScriptedServer(
        lambda request: switching + rest if request.target == "/101" else response(200, b"outer")))
    client = stage.client()
    for way in ["fetch/run", "fetch/start"]:
        assert client.fetch(server.url + "/")["result"]["body"]["value"] == "outer"
        if way == "fetch/run":
            error = client.fetch(server.url + "/101")["error"]
        else:
            error = Download(client, server.url + "/101").completed()["error"]
        assert error["data"]["kind"] == "malformedResponse" and "101" in error["message"], error
    assert client.fetch(server.url + "/")["result"]["body"]["value"] == "outer"
    # Nothing more is sent on these connections.
    for number, request in enumerate(server.requests):
        later = [other.connection for other in server.requests[number + 1:]]
        assert request.target != "/101" or request.connection not in later


def test_the_fetchs_own_certificate_comes_before_the_remembered_one(stage, broker, certificates, tls_server):
    server = tls_server(client_authority=certificates / "ca.pem", first=True)
    client = stage.client(broker=broker)
    assert client.fetch(server.url, tls={"certificate": shown(certificates)})["result"]["status"] == 200
    bob = shown(certificates, "other-client.pem", "other-client.key")
    assert client.fetch(server.url, tls={"certificate": bob})["result"]["status"] == 200
    names = [name for name in server.peers.values() if name]
    assert names == ["Alice Client", "Bob Client"]


def test_rule_1_always_asks_each_client(stage, broker, tls_server):
    """With `always` the client is asked on every new connection, whatever another client answers."""
    server, is_open = tls_server("self-signed"), threading.Event()

    def slow(challenge):
        is_open.wait(30)
        return trust(challenge)

    careless, first = subscribed(stage, broker, slow)
    strict, second = subscribed(stage, broker, lambda challenge: {"action": "cancel"})
    one = careless.start("fetch/run", {"url": server.url})
    eventually(lambda: first, "the first client is not asked")
    two = strict.start("fetch/run", {"url": server.url + "/strict", "tls": {"trust": "always"}})
    eventually(lambda: second, "the second client waits for the first one's answer")
    is_open.set()
    assert careless.wait(one)["result"]["status"] == 200
    assert strict.wait(two)["error"]["data"]["kind"] == "challengeCancelled"
    assert len(second) == 1 and len(server.requests) == 1


def test_a_fetch_that_may_not_use_certificates_shows_none(stage, broker, certificates, tls_server):
    server = stage.server(BreakingOff(certificates, client_authority=certificates / "ca.pem"))
    server._respond = lambda *words: ScriptedServer._respond(server, *words) or True
    client = stage.client(broker=broker)
    assert client.fetch(server.url, tls={"certificate": shown(certificates)})["result"]["status"] == 200
    assert client.fetch(server.url, auth={"methods": ["httpBasic"]})["result"]["status"] == 200
    assert list(server.peers.values())[-1] is None, server.peers


def test_the_proxys_password_survives_a_server_that_answers_407(stage):
    """A server behind a forwarding proxy could make the broker forget the proxy's password."""
    at_proxy = stage.secret()
    right = basic("pat", at_proxy)
    proxy = stage.server(ForwardProxy(lambda r: None if r.header("Proxy-Authorization") == right else response(407, b"", 'Proxy-Authenticate: Basic realm="gate"')))
    stage.allow(at_proxy, proxy)
    good = stage.server(lambda r: response(200, b"page"))
    evil = stage.server(lambda r: response(407, b"", 'Proxy-Authenticate: Basic realm="gate"'))
    asked = []
    def answer(ch):
        asked.append(ch)
        return password_answer("pat", at_proxy) if len(asked) == 1 else {"action": "continue"}
    client = stage.client(answer=answer, broker=stage.configured(f'[proxy]\nurl = "{proxy.url}"\n'))
    assert client.fetch(good.url)["result"]["status"] == 200
    assert client.fetch(evil.url)["result"]["status"] == 407
    assert client.fetch(good.url)["result"]["status"] == 200


def test_a_decision_for_the_fetch_holds_after_a_redirect_to_the_same_server(stage, broker, certificates, tls_server):
    server = tls_server("self-signed", lambda r: response(200, b"page") if r.target == "/b" else response(302, b"", "Location: /b"))
    client, asked = subscribed(stage, broker, trust)
    assert client.fetch(server.url + "/a")["result"]["status"] == 200
    assert len(asked) == 1, len(asked)


def test_a_certificate_answered_for_the_fetch_holds_after_a_redirect_to_the_same_server(stage, broker, certificates, tls_server):
    server = tls_server("good", lambda r: response(200, b"page") if r.target == "/b" else response(302, b"", "Location: /b"), client_authority=certificates / "ca.pem")
    client, asked = subscribed(stage, broker, lambda ch: {"action": "credential", "credential": shown(certificates, persistence="none")})
    assert client.fetch(server.url + "/a")["result"]["status"] == 200
    assert len(asked) == 1, len(asked)


class AskingTlsServer(TlsServer):
    """Requests a certificate, continues without one, and responds."""

    def _context(self):
        context = super()._context()
        context.verify_mode = ssl.CERT_OPTIONAL
        return context


class GatedServer(TlsServer):
    """Delays the handshake of the connection `held` until `gate` is set."""

    def __init__(self, *words, **more):
        self.gate, self.held = threading.Event(), None
        super().__init__(*words, **more)

    def _open(self, connection, number):
        if number == self.held:
            self.gate.wait(30)
        return super()._open(connection, number)


def test_rule_24_no_stored_credential_is_sent_over_an_exception_made_during_the_handshake(stage, certificates):
    """The handshake of a fetch with a stored credential is open when another client makes an exception for a bad certificate."""
    password = stage.secret()
    server = stage.server(GatedServer(certificates, "good", basic_server("bob", password).handler, first=True))
    stage.allow(password, server)
    broker = stage.broker("--ca-file", str(certificates / "ca.pem"))
    victim = stage.client(answer=lambda challenge: {"action": "default"}, broker=broker)
    assert victim.fetch(server.url, credential={"type": "password", "user": "bob", "password": password})["result"]["status"] == 200
    assert victim.fetch(server.url)["result"]["exchanges"] == 1
    server.leaf, before = "self-signed", len(server.requests)
    server.held = server.connections + 1
    slow = victim.start("fetch/run", {"url": server.url + "/victim"})
    eventually(lambda: server.connections >= server.held, "the server is not connected to")
    other, asked = subscribed(stage, broker, lambda ch: trust(ch, "forSession") if "serverTrust" in ch["protectionSpace"] else {"action": "continue"})
    assert other.fetch(server.url + "/other")["result"]["status"] == 401
    server.gate.set()
    victim.wait(slow)
    assert [r.authorization for r in server.requests[before:]] == [None] * len(server.requests[before:]), [(r.target, r.authorization) for r in server.requests[before:]]


def test_407_inside_a_tunnel(stage, certificates, tls_server):
    pw = stage.secret()
    right = basic("pat", pw)
    proxy = stage.server(ForwardProxy(lambda r: None if r.header("Proxy-Authorization") == right else response(407, b"", 'Proxy-Authenticate: Basic realm="gate"')))
    stage.allow(pw, proxy)
    server = stage.server(TlsServer(certificates, "good", lambda r: response(407, b"inner", 'Proxy-Authenticate: Basic realm="gate"')))
    broker = stage.configured(f'[proxy]\nurl = "{proxy.url}"\n', "--ca-file", str(certificates / "ca.pem"))
    asked = []
    client = stage.client(answer=lambda ch: asked.append(ch) or password_answer("pat", pw), broker=broker)
    r = client.fetch(server.url)["result"]
    assert (r["status"], r["body"]["value"], len(asked)) == (407, "inner", 1)
    assert client.fetch(server.url)["result"]["status"] == 407 and len(asked) == 1, "the proxy has forwarded it"


def test_a_proxys_url_without_a_host_is_not_quoted(stage):
    client, password = stage.client(), stage.secret()
    assert client.fetch("http://localhost:9/", proxy={"url": f"http://u:{password}"})["error"]["data"]["kind"] == "badURL"


def test_rule_k2_a_token_for_a_loopback_server_does_not_go_to_a_proxy_in_the_clear(stage):
    """A request to http://localhost through a proxy may leave the machine, and is not https (RFC 6750 section 5.3)."""
    token = stage.secret()
    server = stage.server(lambda request: response(401, b"", 'WWW-Authenticate: Bearer realm="api"'))
    proxy = stage.server(ForwardProxy())
    stage.allow(token, server)
    client = stage.client(answer=lambda challenge: {"action": "continue"})
    client.fetch(server.url, proxy={"url": proxy.url}, credential={"type": "token", "token": token})
    assert proxy.requests and not any(request.authorization for request in proxy.requests)


def test_rule_25_a_credential_stored_for_a_loopback_server_does_not_go_to_a_proxy_in_the_clear(stage):
    password = stage.secret()
    server, proxy = stage.server(basic_server("bob", password)), stage.server(ForwardProxy())
    stage.allow(password, server)
    client = stage.client(
        answer=lambda challenge: {"action": "default"}, broker=stage.configured(f'[proxy]\nurl = "{proxy.url}"\n'))
    own = {"type": "password", "user": "bob", "password": password}
    assert client.fetch(server.url, proxy="none", credential=own)["result"]["status"] == 200, "accepted without a proxy, because the host is loopback"
    client.fetch(server.url)
    assert proxy.requests and not any(request.authorization for request in proxy.requests)


def test_rule_24_no_remembered_certificate_is_sent_over_an_exception_made_during_the_handshake(stage, certificates):
    class Server(GatedServer, AskingTlsServer):
        pass

    server = stage.server(Server(certificates, "good", client_authority=certificates / "ca.pem", first=True))
    broker = stage.broker("--ca-file", str(certificates / "ca.pem"))
    victim = stage.client(answer=lambda challenge: {"action": "default"}, broker=broker)
    assert victim.fetch(server.url, tls={"certificate": shown(certificates)})["result"]["status"] == 200
    server.leaf = "self-signed"
    server.peers.clear()
    server.held = server.connections + 1
    slow = victim.start("fetch/run", {"url": server.url + "/victim"})
    eventually(lambda: server.connections >= server.held, "the server is not connected to")
    other, _ = subscribed(
        stage, broker, lambda challenge: trust(challenge, "forSession") if "serverTrust" in challenge["protectionSpace"] else {"action": "continue"})
    assert other.fetch(server.url + "/other")["result"]["status"] == 200
    server.gate.set()
    victim.wait(slow)
    assert not any(server.peers.values()), server.peers
