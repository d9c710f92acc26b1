"""Logins of which something ends early: the client, the session, the keyring, or the patience of the person."""
import contextlib
import os
import signal

import pytest

from rig import tiny_browser
from rig.bodies import eventually
from rig.broker import program
from rig.client import Client
from rig.login_sites import forgotten, logged_in, login_url, site  # noqa: F401
from rig.oauth_answers import json_answer

CLIENT = '[sharing]\nsession = "client"\n'
PYTHON = os.path.realpath("/usr/bin/python3")
RELEASED = f'[credentials]\nhand-out = ["{os.path.realpath(program("watchword"))} 127.0.0.1", "{PYTHON} 127.0.0.1"]\n'


def questions(client, url, **params):
    """Fetches the page, with a login for each question; returns the number of the questions and the reply."""
    call, count = client.start("fetch/run", {"url": url, **params}), 0
    while call not in client.replies:
        eventually(lambda: call in client.replies or not client.challenges.empty(), "a reply or a question")
        if not client.challenges.empty():
            count += 1
            assert count < 6, "one question after the other"
            tiny_browser.open_login(login_url(client.challenges.get()))
    return count, client.replies[call]


def connections(client):
    return client.call("server/status")["result"]["connections"]


def used(site):
    return [request.form["refresh_token"] for request in site.token_requests() if "refresh_token" in request.form]


# A renewal without a waiting fetch


@pytest.mark.parametrize("sharing", ["", CLIENT], ids=["user", "client"])
def test_a_client_that_leaves_during_a_renewal_leaves_the_login(stage, site, gnome, sharing):
    broker = site.broker(text=sharing, environment=gnome.for_broker)
    watcher, first, second, third = (stage.client(broker=broker) for _ in range(4))
    logged_in(first, site)
    first.call("session/clear")
    with site.server.held("/token"):
        second.start("fetch/run", {"url": site.url})
        site.server.wait_for("/token", 2)
        call = third.start("fetch/run", {"url": site.url})
        before = connections(watcher)
        second.close()
        eventually(lambda: connections(watcher) == before - 1, "the broker has noticed it")
        assert len(used(site)) == 1, "the refresh token is not sent a second time"
    assert third.wait(call)["result"]["status"] == 200
    assert len(used(site)) == len(set(used(site))) and not forgotten(third, site)


@pytest.mark.parametrize("how", ["session/clear", "broker/lock", "reload", "stop"])
def test_the_end_of_the_session_during_a_renewal_leaves_the_login(stage, site, gnome, how):
    broker = site.broker(environment=gnome.for_broker)
    first, second = stage.client(broker=broker), stage.client(broker=broker)
    logged_in(first, site)
    first.call("session/clear")
    with site.server.held("/token"):
        call = second.start("fetch/run", {"url": site.url})
        site.server.wait_for("/token", 2)
        if how == "reload":
            broker.reload(site.configuration(scopes=["read"]))
        elif how == "stop":
            broker.process.send_signal(signal.SIGTERM)
            eventually(lambda: "shutting down" in broker.log, "the broker is stopping")
        else:
            first.call(how)
        if how != "stop":
            # While the broker is locked, the client is asked for a token instead.
            eventually(lambda: call in second.replies or not second.challenges.empty(), "the end of the wait")
            assert "result" not in second.replies.get(call, {})
    if how == "stop":
        broker.process.wait(30)
        broker.start()
        first = stage.client(broker=broker)
    if how == "broker/lock":
        first.call("broker/unlock")
    assert not forgotten(first, site)
    assert len(used(site)) == len(set(used(site))) and len(site.server.authorizations) == 1


# The keyring


def test_a_login_is_forgotten_by_its_id_after_the_keyring_has_failed(stage, site, gnome):
    client = stage.client(broker=site.broker(environment=gnome.for_broker, text="[keyring]\ncall-limit-ms = 1000\n"))
    logged_in(client, site)
    (login,) = [one for one in client.call("credential/list", {})["result"]["credentials"] if one["source"] == "keyring"]
    os.kill(gnome.processes[-1].pid, signal.SIGSTOP)
    client.call("credential/list", {}, 40)
    os.kill(gnome.processes[-1].pid, signal.SIGCONT)
    assert client.call("credential/forget", {"id": login["id"]}, 40)["result"]["removed"] == 1
    site.server.wait_for("/revoke", 2)
    assert forgotten(client, site)


# Tables inside each other


def test_a_table_that_is_added_inside_another_gets_no_token_of_it(stage, site, gnome):
    broker = site.broker(environment=gnome.for_broker)
    client = stage.client(broker=broker)
    logged_in(client, site)
    outer = site.server.access_tokens[0].value
    site.server.client("another")
    inner = site.configuration().replace('"]\n', '/api/in"]\n', 1).replace('"watchword"', '"another"')
    broker.reload(site.configuration() + inner)
    count, reply = questions(client, site.url + "/in")
    assert count == 1 and reply["result"]["status"] == 200
    assert not any(outer in (request.authorization or "") for request in site.resource.requests_to("/api/in"))
    assert client.fetch(site.url)["result"]["status"] == 200 and client.challenges.empty()


# Tokens for other programs


def test_a_client_with_a_session_of_its_own_can_use_its_login(stage, site):
    broker = site.broker(text=CLIENT + RELEASED)
    other = stage.client(broker=broker)
    place = {"protectionSpace": site.space(authenticationMethod="bearer"), "path": "/api"}
    # Not a client of the stage, which must not receive a token.
    with contextlib.closing(Client(broker.socket)) as client:
        logged_in(client, site)
        first = client.call("credential/get", place)["result"]["credential"]["token"]
        second = client.call("credential/get", {**place, "refusedToken": first})["result"]["credential"]["token"]
        assert [first, second] == [token.value for token in site.server.access_tokens]
        assert other.call("credential/get", place)["error"]["data"]["kind"] == "unknownCredential"


def test_a_server_out_of_order_does_not_keep_a_login(stage, site, gnome):
    """A refused revocation leaves nothing behind here."""
    client = stage.client(broker=site.broker(environment=gnome.for_broker))
    logged_in(client, site)
    site.server.fail("/revoke", json_answer(503, {}))
    assert client.call("credential/forget", {"protectionSpace": site.space()})["result"]["removed"] >= 1
    assert not gnome.items() and forgotten(client, site)
