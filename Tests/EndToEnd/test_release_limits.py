"""`credential/get` releases no password where the program could be made to reveal it."""
import os
import sys

import pytest

PLACE = {"protocol": "http", "host": "intranet.example", "port": 80}
HAND_OUT = f'[credentials]\nhand-out = ["{os.path.realpath(sys.executable)} intranet.example"]\n'


def store(client, space, user, secret, **more):
    login = {"type": "password", "user": user, "password": secret, "persistence": "forSession", **more}
    assert "result" in client.call("credential/store", {"protectionSpace": space, "credential": login})


def get(client, space, **more):
    """Returns the released password; `None` if there is none."""
    reply = client.call("credential/get", {"protectionSpace": space, **more})
    if "error" in reply:
        assert reply["error"]["data"]["kind"] in ("unknownCredential", "keyringUnavailable"), reply
        return None
    return reply["result"]["credential"]["password"]


@pytest.mark.parametrize("method", ["httpDigest", "ntlm"])
@pytest.mark.parametrize("protocol", ["http", "https"])
def test_rule_25_over_http_only_what_is_stored_for_basic_is_released(stage, method, protocol):
    client = stage.client(broker=stage.configured(HAND_OUT))
    place = {**PLACE, "protocol": protocol}
    store(client, {**place, "authenticationMethod": method}, "bob", "of-one-method")
    assert get(client, place) == ("of-one-method" if protocol == "https" else None)
    store(client, place, "amy", "of-any-method")
    assert get(client, place, user="amy") == "of-any-method"


@pytest.mark.parametrize("kind", [{}, {"authtype": "basic"}, {"authtype": "digest"}, {"authtype": "ntlm"}], ids=lambda kind: kind.get("authtype", "any"))
def test_rule_25_the_same_is_true_for_the_keyring(stage, kind):
    keyring = stage.keyring()
    keyring.start_rig(None, ({
        "xdg:schema": "org.gnome.keyring.NetworkPassword", "server": "intranet.example", "protocol": "http", "port": "80", "user": "bob",
        "domain": "Staff", **kind}, "of-the-keyring"))
    client = stage.client(broker=stage.configured(HAND_OUT, environment=keyring.for_broker))
    assert get(client, PLACE) == ("of-the-keyring" if kind.get("authtype") in (None, "basic") else None)


@pytest.mark.parametrize("path, is_covered", [
    ("/team1/x", True), ("/team1", True), ("/team1/a/../x", True), ("/team1/./x", True), ("/team2", False), ("/team1/../mallory/x", False),
    ("/team1/./../mallory", False), ("/team1/%2e%2e/mallory", False), ("/team1/.%2E/mallory", False), ("/team1/..%2fmallory", False)])
def test_rule_18_the_path_of_a_released_password_is_resolved_first(stage, path, is_covered):
    client = stage.client(broker=stage.configured(HAND_OUT))
    place = {**PLACE, "protocol": "https", "port": 443}
    store(client, place, "team", "of-the-team", path="/team1")
    assert get(client, place, path=path) == ("of-the-team" if is_covered else None)
