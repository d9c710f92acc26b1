"""Attacks and accidents found in a review, with certificates, proxies and stored credentials; and an answer reaches no other server than the
one in the question: a fetch steers only itself, by its proxy and its pinned key."""
import hashlib
import os
import ssl
import threading

import pytest
from cryptography.hazmat.primitives import serialization

from rig.bodies import Download, eventually
from rig.client import Client, password_answer, trust_answer
from rig.forwarding import ForwardProxy, Socks5Server, basic_check
from rig.scripted import ScriptedServer, basic, basic_server, response
from rig.tls import BreakingOff, TlsServer


def subscribed(stage, broker, reply, mode="everything"):
    client = stage.client(answer=reply, broker=broker)
    assert "result" in client.call("auth/subscribe", {"mode": mode})
    return client, client.asked


def trust_only(challenge):
    return trust_answer(challenge, "forSession") if "serverTrust" in challenge["protectionSpace"] else {"action": "continue"}


@pytest.fixture
def broker(stage, certificates):
    return stage.broker("--ca-file", str(certificates / "ca.pem"))


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
    assert client.fetch(server.url, tls={"certificate": certificates.credential()})["result"]["status"] == 200
    bob = certificates.credential("other-client.pem", "other-client.key")
    assert client.fetch(server.url, tls={"certificate": bob})["result"]["status"] == 200
    names = [name for name in server.peers.values() if name]
    assert names == ["Alice Client", "Bob Client"]


def test_rule_1_always_asks_each_client(stage, broker, tls_server):
    """With `always` the client is asked on every new connection, whatever another client answers."""
    server, is_open = tls_server("self-signed"), threading.Event()

    def slow(challenge):
        is_open.wait(30)
        return trust_answer(challenge)

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
    assert client.fetch(server.url, tls={"certificate": certificates.credential()})["result"]["status"] == 200
    assert client.fetch(server.url, auth={"methods": ["httpBasic"]})["result"]["status"] == 200
    assert list(server.peers.values())[-1] is None, server.peers


def test_the_proxys_password_survives_a_server_that_answers_407(stage):
    """A server behind a forwarding proxy could make the broker forget the proxy's password."""
    at_proxy = stage.secret()
    proxy = stage.server(ForwardProxy(basic_check("pat", at_proxy)))
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
    client, asked = subscribed(stage, broker, trust_answer)
    assert client.fetch(server.url + "/a")["result"]["status"] == 200
    assert len(asked) == 1, len(asked)


def test_a_certificate_answered_for_the_fetch_holds_after_a_redirect_to_the_same_server(stage, broker, certificates, tls_server):
    server = tls_server("good", lambda r: response(200, b"page") if r.target == "/b" else response(302, b"", "Location: /b"), client_authority=certificates / "ca.pem")
    client, asked = subscribed(stage, broker, {"action": "credential", "credential": certificates.credential(persistence="none")})
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
    other, asked = subscribed(stage, broker, trust_only)
    assert other.fetch(server.url + "/other")["result"]["status"] == 401
    server.gate.set()
    victim.wait(slow)
    assert [r.authorization for r in server.requests[before:]] == [None] * len(server.requests[before:]), [(r.target, r.authorization) for r in server.requests[before:]]


def test_407_inside_a_tunnel(stage, certificates, tls_server):
    pw = stage.secret()
    proxy = stage.server(ForwardProxy(basic_check("pat", pw)))
    stage.allow(pw, proxy)
    server = stage.server(TlsServer(certificates, "good", lambda r: response(407, b"inner", 'Proxy-Authenticate: Basic realm="gate"')))
    broker = stage.configured(f'[proxy]\nurl = "{proxy.url}"\n', "--ca-file", str(certificates / "ca.pem"))
    client = stage.client(answer=password_answer("pat", pw), broker=broker)
    r = client.fetch(server.url)["result"]
    assert (r["status"], r["body"]["value"], len(client.asked)) == (407, "inner", 1)
    assert client.fetch(server.url)["result"]["status"] == 407 and len(client.asked) == 1, "the proxy has forwarded it"


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
    assert victim.fetch(server.url, tls={"certificate": certificates.credential()})["result"]["status"] == 200
    server.leaf = "self-signed"
    server.peers.clear()
    server.held = server.connections + 1
    slow = victim.start("fetch/run", {"url": server.url + "/victim"})
    eventually(lambda: server.connections >= server.held, "the server is not connected to")
    other, _ = subscribed(stage, broker, trust_only)
    assert other.fetch(server.url + "/other")["result"]["status"] == 200
    server.gate.set()
    victim.wait(slow)
    assert not any(server.peers.values()), server.peers


BASIC = 'WWW-Authenticate: Basic realm="R"'


def wants(answer):
    return lambda request: response(200, b"page") if request.authorization == answer else response(401, b"", BASIC)


def pin(pair):
    key = pair.key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return {"type": "trust", "spkiSha256": hashlib.sha256(key).hexdigest(), "persistence": "none"}


class Diversion(Socks5Server):
    """A proxy that connects to `port` of this machine, whatever it is asked for."""

    def __init__(self, port):
        self.target = port
        super().__init__()

    def destination(self, host, port):
        return self.target


class Case:
    """A genuine server, one of the program's own with another certificate, and a program on one connection."""

    def __init__(self, stage, certificates, path, **servers):
        self.broker = stage.broker("--ca-file", str(certificates / "ca.pem"))
        self.genuine = stage.server(TlsServer(certificates, "good", first=True, **servers))
        self.own = stage.server(TlsServer(certificates, "self-signed", **servers))
        self.proxy = stage.server(Diversion(self.own.port))
        self.agent = stage.agent(broker=self.broker, name="agent")
        self.program = stage.client(at=path, delivery=None)
        self.auth = {"interaction": "agent", "useStorage": False}
        self.steered = {"proxy": {"url": f"socks5h://127.0.0.1:{self.proxy.port}"},
                        "tls": {"pin": pin(certificates.pairs["self-signed"])}}

    def start(self, **more):
        return self.program.start("fetch/run", {"url": self.genuine.url, "auth": self.auth, **more})


PATHS = pytest.mark.parametrize("path", ["socket", "restricted"])


@PATHS
def test_rule_20_an_answer_is_not_shared_with_a_fetch_that_steers_itself(stage, certificates, path):
    case = Case(stage, certificates, path)
    password = stage.secret(case.genuine)
    case.genuine.handler = case.own.handler = wants(basic("bob", password))
    first = case.start()
    question = case.agent.challenges.get(timeout=30)
    assert "certificateException" not in question["params"] and "namedProxy" not in question["params"]
    second = case.start(**case.steered)
    other = case.agent.challenges.get(timeout=30)
    space = other["params"]["protectionSpace"]
    assert other["params"]["certificateException"] == case.steered["tls"]["pin"]["spkiSha256"]
    assert other["params"]["namedProxy"] == case.steered["proxy"]["url"]
    assert space["port"] == case.genuine.port and space["receivesCredentialSecurely"] is False
    case.agent.reply(question, password_answer("bob", password, persistence="none"))
    assert case.program.wait(first)["result"]["status"] == 200
    case.agent.reply(other, {"action": "continue"})
    assert case.program.wait(second)["result"]["status"] == 401
    assert [one.authorization for one in case.genuine.requests if one.authorization] == [basic("bob", password)]
    assert not [one.authorization for one in case.own.requests if one.authorization]


@PATHS
@pytest.mark.parametrize("kind", ["password", "certificate"])
def test_rule_24_an_answer_is_dropped_if_the_client_excepts_the_certificate_afterwards(stage, certificates, path, kind):
    more = {"client_authority": str(certificates / "ca.pem")} if kind == "certificate" else {}
    case = Case(stage, certificates, path, **more)
    password = stage.secret()
    case.genuine.handler = lambda request: response(401, b"", BASIC)
    program = stage.client(at=path)
    assert "result" in program.call("auth/subscribe", {"methods": ["serverTrust"], "mode": "everything"})
    call = program.start("fetch/run", {"url": case.genuine.url, "auth": {"useStorage": False}})
    question = case.agent.challenges.get(timeout=30)
    assert "certificateException" not in question["params"]
    case.genuine.leaf = "self-signed"
    pair = certificates.pairs["client"]
    certificate = {"type": "certificate", "certificate": (pair.certificate_pem + pair.key_pem()).decode(), "persistence": "none"}
    answer = {"action": "credential", "credential": certificate} if kind == "certificate" else password_answer(
        "bob", password, persistence="none")
    case.agent.reply(question, answer)
    trust = program.challenges.get(timeout=30)
    assert trust["params"]["protectionSpace"]["authenticationMethod"] == "serverTrust"
    program.reply(trust, {"action": "credential", "credential": pin(certificates.pairs["self-signed"])})
    again = case.agent.challenges.get(timeout=30)
    assert again["params"]["certificateException"] == pin(certificates.pairs["self-signed"])["spkiSha256"]
    case.agent.reply(again, {"action": "cancel"})
    assert program.wait(call)["error"]["data"]["kind"] == "challengeCancelled"
    assert not any(case.genuine.peers.values()) and not any(one.authorization for one in case.genuine.requests)


def test_rule_20_cancelling_a_question_about_a_steered_fetch_cancels_no_other(stage, certificates):
    case = Case(stage, certificates, "socket")
    case.genuine.handler = case.own.handler = wants(basic("bob", "pw"))
    victim = stage.client(broker=case.broker, delivery=None)
    params = {"url": case.genuine.url, "auth": {"interaction": "agent"}}
    first, question = victim.start("fetch/run", params), case.agent.challenges.get(timeout=30)
    steered = case.start(**case.steered)
    case.agent.reply(case.agent.challenges.get(timeout=30), {"action": "cancel"})
    assert case.program.wait(steered)["error"]["data"]["kind"] == "challengeCancelled"
    case.agent.reply(question, password_answer("bob", "pw", persistence="none"))
    assert victim.wait(first)["result"]["status"] == 200
    second = victim.start("fetch/run", params)
    case.agent.reply(case.agent.challenges.get(timeout=30), password_answer("bob", "pw", persistence="none"))
    assert victim.wait(second)["result"]["status"] == 200


@PATHS
def test_rule_20_a_client_certificate_is_not_shared_with_a_fetch_that_steers_itself(stage, certificates, path):
    case = Case(stage, certificates, path, client_authority=str(certificates / "ca.pem"))
    first = case.start()
    question = case.agent.challenges.get(timeout=30)
    second = case.start(**case.steered)
    other = case.agent.challenges.get(timeout=30)
    assert other["params"]["certificateException"] and "certificateException" not in question["params"]
    pair = certificates.pairs["client"]
    text = (pair.certificate_pem + pair.key_pem()).decode()
    case.agent.reply(question, {"action": "credential", "credential": {"type": "certificate", "certificate": text, "persistence": "none"}})
    case.program.wait(first)
    case.agent.reply(other, {"action": "cancel"})
    case.program.wait(second)
    assert "Alice Client" in case.genuine.peers.values() and not any(case.own.peers.values())


@pytest.mark.parametrize("steers", [True, False])
def test_rule_24_a_refusal_by_a_server_of_the_fetch_itself_forgets_no_client_certificate(stage, certificates, steers):
    case = Case(stage, certificates, "socket", client_authority=str(certificates / "ca.pem"))
    pair = certificates.pairs["client"]
    text = (pair.certificate_pem + pair.key_pem()).decode()
    certificate = {"type": "certificate", "certificate": text, "persistence": "forSession"}
    call = case.start(auth={"interaction": "agent"})
    case.agent.reply(case.agent.challenges.get(timeout=30), {"action": "credential", "credential": certificate})
    assert case.program.wait(call)["result"]["status"] == 200
    refusing = case.own if steers else case.genuine
    refusing.client_authority = str(certificates / "self-signed.pem")
    steering = case.steered if steers else {"tls": {}}
    tls = {**steering["tls"], "certificate": {"type": "certificate", "certificate": text}}
    assert "error" in case.program.wait(case.start(**{**steering, "tls": tls, "auth": {"interaction": "none"}}))
    case.genuine.client_authority = str(certificates / "ca.pem")
    again = case.start(auth={"interaction": "none"})
    assert case.program.wait(again).get("result", {}).get("status") == (200 if steers else None)


@pytest.mark.parametrize("place", ["server", "proxy"])
def test_rule_l2_a_connection_that_an_unknown_scheme_may_authenticate_is_not_reused(stage, place):
    authenticated, field = set(), "Proxy-Authorization" if place == "proxy" else "Authorization"

    def respond(request):
        if (request.header(field) or "").startswith("Kerberos "):
            authenticated.add(request.connection)
        if request.connection in authenticated:
            return response(200, b"page of alice")
        return response(407, b"", "Proxy-Authenticate: Kerberos") if place == "proxy" else response(
            401, b"", "WWW-Authenticate: Kerberos")

    server = stage.server(respond)
    broker = stage.configured(f'[proxy]\nurl = "http://127.0.0.1:{server.port}"\n' if place == "proxy" else "")
    url = "http://one.test/" if place == "proxy" else server.url + "/"
    answer = {"action": "credential", "credential": {"type": "header", "scheme": "Kerberos", "value": "dG9rZW4="}}
    alice = stage.client(broker=broker, answer=lambda challenge: answer)
    assert alice.fetch(url)["result"]["status"] == 200
    for one in [stage.client(at=path, delivery=None) for path in ["socket", "restricted"]]:
        result = one.fetch(url + "private", auth={"interaction": "none"}).get("result")
        assert result["status"] in (401, 407) and "alice" not in str(result["body"])
    assert alice.fetch(url + "again")["result"]["status"] == 200, "alice logs in again"
    assert len({one.connection for one in server.requests}) >= 3


def test_rule_l2_two_logins_with_an_unknown_scheme_do_not_share_a_connection(stage):
    server = stage.server(lambda request: response(401, b"", "WWW-Authenticate: Kerberos " + ("Ng==" if request.authorization else "")))
    clients = [stage.client(), stage.client()]
    calls, seconds = [], []
    for client, value in zip(clients, ["YWxpY2U=", "Ym9i"]):
        calls.append(client.start("fetch/run", {"url": server.url, "auth": {"useStorage": False}}))
        first = client.challenges.get(timeout=30)
        client.reply(first, {"action": "credential", "credential": {"type": "header", "scheme": "Kerberos", "value": value, "state": "1"}})
        # The next round is left open, so that the connection is idle.
        seconds.append(client.challenges.get(timeout=30))
    used = {one.authorization: one.connection for one in server.requests if one.authorization}
    assert len(used) == 2 and len(set(used.values())) == 2
    for client, call, second in zip(clients, calls, seconds):
        client.reply(second, {"action": "continue"})
        assert client.wait(call)["result"]["status"] == 401


def test_rule_27_a_waiting_fetch_answers_no_weaker_challenge_unasked(stage):
    strong = 'WWW-Authenticate: Digest realm="R", nonce="n", algorithm=SHA-256, qop="auth"'
    weak = 'WWW-Authenticate: Digest realm="R", nonce="m"'

    def respond(request):
        return response(200, b"") if request.authorization else response(401, b"", strong if request.target == "/a" else weak)

    server = stage.server(respond)
    client = stage.client()
    first = client.start("fetch/run", {"url": f"{server.url}/a"})
    question = client.challenges.get(timeout=30)
    second = client.start("fetch/run", {"url": f"{server.url}/b", "notify": ["waiting"], "auth": {"preemptive": False}})
    assert client.notifications.get(timeout=30)["method"] == "fetch/waiting"
    client.reply(question, password_answer("bob", "secret", persistence="none"))
    assert client.wait(first)["result"]["status"] == 200
    other = client.challenges.get(timeout=30)
    assert other["params"]["downgrade"] is True and other["params"]["offers"][0]["weak"] == ["noQop"]
    client.reply(other, {"action": "continue"})
    assert client.wait(second)["result"]["status"] == 401
    assert [one.authorization for one in server.requests if one.target == "/b"] == [None]


def test_rule_27_the_configuration_can_refuse_weak_challenges(stage):
    challenges = [f"WWW-Authenticate: {one}" for one in ("Basic", 'Digest realm="old", nonce="n"', "Basic realm=x")]
    server = stage.server(lambda request: response(401, b"", *challenges))
    for config, questions in [("[schemes]\nweak = false\n", 0), ("", 1)]:
        client = stage.client(broker=stage.configured(config), answer={"action": "continue"})
        assert client.fetch(server.url)["result"]["status"] == 401 and len(client.asked) == questions
    assert server.authorizations == [None, None]
