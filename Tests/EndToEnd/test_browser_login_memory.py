"""Codes and tokens of a login are not in the broker's memory any more after their last use."""
import time

import pytest

from rig import memory
from rig.login_sites import client, forgotten, logged_in, site  # noqa: F401


def remaining(broker, secret, seconds=30):
    """Searches the memory after a moment: the broker is still cleaning up when the client receives the end of its fetch."""
    end = time.monotonic() + seconds
    while (found := memory.places(broker.process.pid, secret)) and time.monotonic() < end:
        time.sleep(0.1)
    return found


def test_no_copy_of_the_code_remains_after_the_login(stage, site, client):
    logged_in(client, site)
    form = site.token_requests()[0].form
    assert form["code"] and form["code_verifier"]
    assert remaining(stage.brokers[0], form["code"]) == []
    assert remaining(stage.brokers[0], form["code_verifier"]) == []


@pytest.mark.parametrize("method", ["session/clear", "broker/lock"])
def test_no_copy_of_a_token_remains_after_the_session(stage, site, client, method):
    logged_in(client, site)
    tokens = [site.server.access_tokens[0].value, site.server.refresh_tokens[0].value]
    assert all(memory.places(stage.brokers[0].process.pid, token) for token in tokens), "the scan does not find the tokens"
    assert "result" in client.call(method, {})
    assert [remaining(stage.brokers[0], token) for token in tokens] == [[], []]
    client.call("broker/unlock")
    assert forgotten(client, site)


def test_no_copy_of_a_token_remains_after_the_time_of_the_session(stage, site):
    """Without a keyring, the refresh token belongs to the session, too."""
    client = stage.client(broker=site.broker(text="[limits]\nsession-idle-s = 1\n"))
    logged_in(client, site)
    tokens = [site.server.access_tokens[0].value, site.server.refresh_tokens[0].value]
    assert [remaining(stage.brokers[0], token) for token in tokens] == [[], []]
    assert forgotten(client, site)


def test_no_copy_of_a_token_remains_after_its_renewal(stage, site, client):
    logged_in(client, site)
    tokens = [site.server.access_tokens[0].value, site.server.refresh_tokens[0].value]
    site.server.revoke_access()
    assert client.fetch(site.url)["result"]["status"] == 200
    assert [remaining(stage.brokers[0], token) for token in tokens] == [[], []]
