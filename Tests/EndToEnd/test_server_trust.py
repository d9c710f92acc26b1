"""Certificates that do not verify: which respondent is asked, the effect of each answer, and the scope of an exception."""

import pytest
from rig.bodies import eventually
from rig.scripted import basic_server, response


def trust(challenge, persistence="none"):
    leaf = challenge["protectionSpace"]["serverTrust"]["chain"][0]
    return {"action": "credential", "credential": {"type": "trust", "spkiSha256": leaf["spkiSha256"], "persistence": persistence}}


class Asked(list):
    """The handler of a client, which answers with `reply(challenge)` and records its challenges."""

    def __init__(self, reply):
        super().__init__()
        self.reply = reply

    def __call__(self, challenge):
        self.append(challenge)
        return self.reply(challenge)

    @property
    def problems(self):
        return [one["protectionSpace"]["serverTrust"]["problems"] for one in self]


def pinning(stage, reply, broker=None, mode="everything"):
    """A client that is asked about connections."""
    asked = Asked(reply)
    client = stage.client(answer=asked, broker=broker)
    assert "result" in client.call("auth/subscribe", {"mode": mode})
    return client, asked


@pytest.fixture
def broker(stage, certificates):
    return stage.broker("--ca-file", str(certificates / "ca.pem"))


@pytest.mark.parametrize("kind, problems", [
    ("self-signed", {"selfSigned"}), ("expired", {"expired"}), ("not-yet-valid", {"notYetValid"}),
    ("wrong-name", {"hostMismatch"}), ("unknown-issuer", {"untrustedIssuer"}), ("weak-key", {"weakKey"}),
    ("incomplete-chain", {"untrustedIssuer"}),
])
def test_each_problem_has_its_name_and_can_be_accepted(stage, broker, certificates, tls_server, kind, problems):
    server = tls_server(kind)
    client, asked = pinning(stage, trust, broker)
    result = client.fetch(server.url)["result"]
    assert (result["status"], result["body"]["value"]) == (200, "secure page\n")
    assert set(asked.problems[0]) == problems and len(asked) == 1
    space = asked[0]["protectionSpace"]
    assert space["authenticationMethod"] == "serverTrust" and space["port"] == server.port
    leaf = space["serverTrust"]["chain"][0]
    assert leaf["sha256"] == certificates.fingerprint(kind).replace(":", "").lower()
    assert leaf["pem"].startswith("-----BEGIN CERTIFICATE-----") and leaf["subject"] and leaf["notAfter"].endswith("Z")
    assert asked[0]["accepts"] == ["trust"] and asked[0]["persistenceAllowed"] == ["none", "forSession", "permanent"]


def test_rule_l2_an_exception_of_one_fetch_is_of_no_use_to_another(stage, broker, tls_server):
    server = tls_server("self-signed")
    client, asked = pinning(stage, trust, broker)
    for count in [1, 2]:
        assert client.fetch(server.url)["result"]["status"] == 200 and len(asked) == count
    strict = stage.client(broker=broker)
    assert strict.fetch(server.url)["error"]["data"]["kind"] == "serverNotTrusted"
    assert len(server.requests) == 2


def test_an_exception_for_the_session(stage, broker, tls_server):
    server, other = tls_server("self-signed"), tls_server("self-signed")
    client, asked = pinning(stage, lambda challenge: trust(challenge, "forSession"), broker)
    assert client.fetch(server.url)["result"]["status"] == 200 and len(asked) == 1
    strict = stage.client(broker=broker)
    assert strict.fetch(server.url)["result"]["status"] == 200
    # The exception is for that host and that port only.
    assert strict.fetch(other.url)["error"]["data"]["kind"] == "serverNotTrusted"
    assert strict.fetch(server.url.replace("localhost", "127.0.0.1"))["error"]["data"]["kind"] == "serverNotTrusted"
    assert strict.call("session/clear")["result"]
    assert strict.fetch(server.url)["error"]["data"]["kind"] == "serverNotTrusted"


def test_a_permanent_exception_survives_the_broker_and_a_changed_key_is_asked_about(stage, certificates, tls_server):
    server = tls_server("self-signed", first=True)
    broker = stage.broker("--ca-file", str(certificates / "ca.pem"))
    client, asked = pinning(stage, lambda challenge: trust(challenge, "permanent"), broker)
    assert client.fetch(server.url)["result"]["status"] == 200 and asked.problems == [["selfSigned"]]
    known = broker.home / ".local" / "state" / "watchword" / "known-certificates"
    eventually(known.exists, "the exception was not written")
    assert known.stat().st_mode & 0o777 == 0o600 and f"https://localhost:{server.port} " in known.read_text()

    client.close()
    assert broker.stop() == 0
    broker.start()
    client, asked = pinning(stage, lambda challenge: {"action": "default"}, broker)
    assert client.fetch(server.url)["result"]["status"] == 200 and not asked
    server.leaf = "expired"
    assert client.fetch(server.url)["error"]["data"]["kind"] == "serverNotTrusted"
    assert set(asked.problems[0]) == {"expired", "changed"}
    # A certificate that verifies ends earlier exceptions: the old certificate is asked about again.
    server.leaf = "good"
    assert client.fetch(server.url)["result"]["status"] == 200 and len(asked) == 1
    server.leaf = "self-signed"
    assert client.fetch(server.url)["error"]["data"]["kind"] == "serverNotTrusted" and len(asked) == 2
    eventually(lambda: "https://" not in known.read_text(), "the exception was not removed")


def test_an_exception_that_stays_in_its_file_is_not_reported_as_forgotten(stage, certificates, tls_server):
    server = tls_server("self-signed", first=True)
    broker = stage.broker("--ca-file", str(certificates / "ca.pem"))
    client, _ = pinning(stage, lambda challenge: trust(challenge, "permanent"), broker)
    assert client.fetch(server.url)["result"]["status"] == 200
    known = broker.home / ".local" / "state" / "watchword" / "known-certificates"
    eventually(known.exists, "it is not written down")
    known.with_name("known-certificates.new").mkdir()
    failure = client.call("credential/forget", {"id": "trust:1"})["error"]
    assert failure["data"]["kind"] == "internalError" and str(known) in failure["data"]["detail"]
    assert "https://" in known.read_text()


def test_rule_24_no_stored_credential_is_sent_over_an_exception(stage, certificates, tls_server):
    password = stage.secret()
    server = tls_server("good", basic_server("bob", password).handler, first=True)
    stage.watch(server)
    stage.allow(password, server)
    broker = stage.broker("--ca-file", str(certificates / "ca.pem"))
    credential = {"type": "password", "user": "bob", "password": password}

    def reply(challenge):
        if challenge["protectionSpace"]["authenticationMethod"] == "serverTrust":
            return trust(challenge, "forSession")
        proposed = challenge["proposedCredential"]
        return {"action": "credential", "credential": {"type": "proposed"}} if proposed else {"action": "continue"}

    client, asked = pinning(stage, reply, broker)
    assert client.fetch(server.url, credential=credential)["result"]["status"] == 200
    assert stage.client(broker=broker).fetch(server.url)["result"]["auth"]["source"] == "session"
    before = len(server.requests)
    server.leaf = "self-signed"
    assert client.fetch(server.url)["result"]["status"] == 401
    assert [request.authorization for request in server.requests[before:]] == [None]
    assert asked[-1]["proposedCredential"] is None and asked[-1]["persistenceAllowed"] == ["none"]
    # The credential of the request is for this server, whichever certificate it presents.
    assert client.fetch(server.url, credential=credential)["result"]["status"] == 200


def test_agents_are_asked_for_clients_that_cannot_be(stage, broker, tls_server):
    server, asked = tls_server("self-signed"), Asked(trust)
    agent = stage.client(answer=asked, broker=broker, delivery=None)
    assert "result" in agent.call("agent/register", {"name": "desktop"})
    plain = stage.client(delivery=None, broker=broker)
    assert plain.fetch(server.url)["result"]["status"] == 200
    assert asked.problems == [["selfSigned"]]


def test_redirects_are_decided_again(stage, broker, tls_server):
    second = tls_server("expired")
    first = tls_server("self-signed", lambda request: response(302, b"", f"Location: {second.url}/"))
    client, asked = pinning(stage, trust, broker)
    assert client.fetch(first.url)["result"]["status"] == 200
    assert asked.problems == [["selfSigned"], ["expired"]]
