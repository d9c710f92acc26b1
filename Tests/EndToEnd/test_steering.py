"""An answer reaches no other server than the one in the question: a fetch steers only itself, by its proxy and its pinned key."""
import hashlib
import os

import pytest
from cryptography.hazmat.primitives import serialization

from rig.client import Client, password_answer
from rig.forwarding import Socks5Server
from rig.scripted import basic, response
from rig.tls import TlsServer

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
        self.agent = stage.client(broker=self.broker, name="agent")
        assert "result" in self.agent.call("agent/register", {"name": "tests"})
        self.program = Client(os.path.join(os.path.dirname(self.broker.socket), path), delivery=None)
        stage.clients.append(self.program)
        self.auth = {"interaction": "agent", "useStorage": False}
        self.steered = {"proxy": {"url": f"socks5h://127.0.0.1:{self.proxy.port}"},
                        "tls": {"pin": pin(certificates.pairs["self-signed"])}}

    def start(self, **more):
        return self.program.start("fetch/run", {"url": self.genuine.url, "auth": self.auth, **more})


PATHS = pytest.mark.parametrize("path", ["broker.sock", "restricted.sock"])


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
    stage.clients.append(program := Client(os.path.join(os.path.dirname(case.broker.socket), path)))
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
    case = Case(stage, certificates, "broker.sock")
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
    case = Case(stage, certificates, "broker.sock", client_authority=str(certificates / "ca.pem"))
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
    others = [Client(os.path.join(os.path.dirname(broker.socket), path), delivery=None) for path in ["broker.sock", "restricted.sock"]]
    stage.clients += others
    for one in others:
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
