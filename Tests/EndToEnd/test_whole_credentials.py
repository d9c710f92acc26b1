"""A credential is one unit: user, domain, path, expiry and refresh token go together through answers, session and keyring."""
import pytest
from rig.client import password_answer
from rig.keyring import SCHEMA, description, settle


# The Windows domain

@pytest.fixture
def ntlm_broker(stage, gnome):
    return lambda: stage.configured('[schemes]\nntlm = ["127.0.0.1"]\n', environment=gnome.for_broker)


def never(challenge):
    pytest.fail("asked")


def served_as(server):
    return [user for _, _, user in server.handler.served]


def test_the_domain_of_an_ntlm_login_is_kept_in_the_keyring(stage, gnome, ntlm_broker, ntlm, ntlm_users):
    stage.watch(ntlm)
    broker = ntlm_broker()
    client = stage.client(broker=broker, answer=lambda challenge: password_answer(
        "alice", ntlm_users["alice"], domain="TESTDOM", persistence="permanent"))
    assert client.fetch(ntlm.url)["result"]["status"] == 200
    settle(client)
    exactly = description(ntlm, "alice", authtype="ntlm", domain="TESTDOM")
    assert gnome.items() == [({**exactly, "xdg:schema": SCHEMA, "watchword-default": "1"}, ntlm_users["alice"])]
    broker.stop()
    fresh = stage.client(broker=ntlm_broker(), answer=never)
    result = fresh.fetch(ntlm.url)["result"]
    assert (result["status"], result["auth"]["source"]) == (200, "keyring")
    assert served_as(ntlm) == ["TESTDOM\\alice"] * 2 and ntlm.handler.refused == []
    listed = fresh.call("credential/list", {})["result"]["credentials"]
    assert {(one["source"], one["user"], one["domain"], one["protectionSpace"]["realm"]) for one in listed} == {
        ("session", "alice", "TESTDOM", None), ("keyring", "alice", "TESTDOM", None)}


def test_an_item_that_lost_its_domain_is_completed_and_not_deleted(stage, gnome, ntlm_broker, ntlm, ntlm_users):
    stage.watch(ntlm)
    password, without = ntlm_users["alice"], description(ntlm, "alice", authtype="ntlm")
    gnome.put(password, schema=SCHEMA, **without, **{"watchword-default": "1"})
    answers = [{"action": "continue"}, password_answer("alice", password, domain="TESTDOM", persistence="permanent")]
    client = stage.client(broker=ntlm_broker(), answer=lambda challenge: answers.pop(0))
    assert client.fetch(ntlm.url)["result"]["status"] == 401
    settle(client)
    assert len(ntlm.handler.refused) == 1 and [secret for _, secret in gnome.items()] == [password]
    assert client.fetch(ntlm.url)["result"]["status"] == 200
    settle(client)
    assert gnome.items() == [({**without, "domain": "TESTDOM", "xdg:schema": SCHEMA, "watchword-default": "1"}, password)]


@pytest.mark.parametrize("persistence", ["forSession", "permanent"])
def test_one_user_name_in_two_domains_is_two_accounts(stage, gnome, ntlm_broker, ntlm, ntlm_users, persistence):
    stage.watch(ntlm)
    client = stage.client(broker=ntlm_broker(), answer=never)
    space = {"protocol": "http", "host": "127.0.0.1", "port": ntlm.port, "authenticationMethod": "ntlm"}
    for domain, password in [("TESTDOM", ntlm_users["alice"]), ("OTHER", stage.secret())]:
        credential = {"type": "password", "user": "alice", "domain": domain, "password": password, "persistence": persistence}
        assert "result" in client.call("credential/store", {"protectionSpace": space, "credential": credential})
    listed = client.call("credential/list", {})["result"]["credentials"]
    assert [(one["user"], one["domain"], one["isDefault"]) for one in sorted(listed, key=lambda one: one["domain"], reverse=True)] == [
        ("alice", "TESTDOM", True), ("alice", "OTHER", False)]
    assert client.fetch(ntlm.url)["result"]["status"] == 200
    assert served_as(ntlm) == ["TESTDOM\\alice"] and ntlm.handler.refused == []
