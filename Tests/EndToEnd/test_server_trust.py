"""Certificates that do not verify: which respondent is asked, the effect of each answer, and the scope of an exception."""

import pytest
from rig.bodies import eventually


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
