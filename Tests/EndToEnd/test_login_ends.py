"""Logins in a browser and on other devices while something else happens or ends: other programs, answers, locks, reloads, restarts, the
client, the session, the keyring."""
import contextlib
import os
import signal
import socket
import subprocess
import threading

import pytest

from rig import leaks, tiny_browser
from rig.bodies import eventually
from rig.broker import program
from rig.client import Client
from rig.login_sites import (  # noqa: F401
    Site, client, failure, forgotten, held_login, is_asked, log_in, logged_in, login_url, site, started, statuses, stranger, user)
from rig.oauth_answers import dated, json_answer, redirect
from rig.servers import free_port
from rig.terminal import Shell

CLIENT = '[sharing]\nsession = "client"\n'
PYTHON = os.path.realpath("/usr/bin/python3")
RELEASED = f'[credentials]\nhand-out = ["{os.path.realpath(program("watchword"))} 127.0.0.1", "{PYTHON} 127.0.0.1"]\n'


def questions(client, url, **params):
    """Fetches the page, with a login for each question; returns the number of the questions and the reply."""
    call, count = client.start("fetch/run", {"url": url, **params}), 0
    while is_asked(client, call):
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
            is_asked(second, call)
            assert "result" not in second.replies.get(call, {})
    if how == "stop":
        broker.process.wait(30)
        broker.start()
        first = stage.client(broker=broker)
    if how == "broker/lock":
        first.call("broker/unlock")
    assert not forgotten(first, site)
    assert len(used(site)) == len(set(used(site))) and len(site.server.authorizations) == 1


def test_a_login_is_forgotten_by_its_id_after_the_keyring_has_failed(stage, site, gnome):
    client = site.logged_in(environment=gnome.for_broker, text="[keyring]\ncall-limit-ms = 1000\n")
    (login,) = [one for one in client.call("credential/list", {})["result"]["credentials"] if one["source"] == "keyring"]
    os.kill(gnome.processes[-1].pid, signal.SIGSTOP)
    client.call("credential/list", {}, 40)
    os.kill(gnome.processes[-1].pid, signal.SIGCONT)
    assert client.call("credential/forget", {"id": login["id"]}, 40)["result"]["removed"] == 1
    site.server.wait_for("/revoke", 2)
    assert forgotten(client, site)


def test_a_table_that_is_added_inside_another_gets_no_token_of_it(stage, site, gnome):
    client = site.logged_in(environment=gnome.for_broker)
    broker = stage.brokers[-1]
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
    client = site.logged_in(environment=gnome.for_broker)
    site.server.fail("/revoke", json_answer(503, {}))
    assert client.call("credential/forget", {"protectionSpace": site.space()})["result"]["removed"] >= 1
    assert not gnome.items() and forgotten(client, site)


def crowd(stage, broker, url, count=9, **params):
    """An agent, and programs without one that fetch the same page; returns the agent, and the programs with their calls."""
    agent = stage.agent(broker=broker)
    programs = []
    for index in range(count):
        one = stage.client(broker=broker, delivery=None)
        one.call("initialize", {"client": {"name": f"program {index}"}, "protocolVersion": 1})
        programs.append((one, started(one, url, **params)[0]))
    return agent, programs


# Many programs

def test_nine_programs_at_one_silent_server_wait_together(stage, site):
    with site.server.held("metadata"):
        agent, programs = crowd(stage, site.broker(), site.url)
        site.server.wait_for("metadata")
        eventually(lambda: len(site.resource.presented) == 9, "all are challenged")
        agent.call("server/status")
        assert len(site.server.requests_to("metadata")) == 1
    log_in(agent)
    assert [one.wait(call)["result"]["status"] for one, call in programs] == [200] * 9
    assert len(site.server.authorizations) == 1


def test_the_login_goes_on_for_others_if_the_first_program_exits(stage, site):
    agent, programs = crowd(stage, site.broker(), site.url)
    challenge = agent.challenges.get(timeout=30)
    back = tiny_browser.hold_redirect(login_url(challenge))
    programs[0][0].close()
    eventually(lambda: agent.call("server/status")["result"]["connections"] == 9, "the broker has noticed it")
    assert back.follow().status == 200
    assert [one.wait(call)["result"]["status"] for one, call in programs[1:]] == [200] * 8
    assert len(site.server.authorizations) == 1


# Answers while the browser is under way

@pytest.mark.parametrize("action", ["default", "reject", "continue", "cancel", "proceed"])
@pytest.mark.parametrize("when", ["before", "during"])
def test_other_answers_while_the_browser_returns(site, client, action, when):
    call, challenge, back = held_login(client, site.url)
    if when == "before":
        client.reply(challenge, {"action": action})
        reply = client.wait(call)
        with_token = reply.get("result", {}).get("status") == 200
        assert not with_token, reply
    with site.server.held("/token") as go:
        thread = threading.Thread(target=tiny_browser.quietly, args=[back.follow], daemon=True)
        thread.start()
        if when == "during":
            site.server.wait_for("/token")
            client.reply(challenge, {"action": action})
        else:
            thread.join(1)
        go.set()
        thread.join(30)
    reply = client.wait(call)
    assert "error" in reply or reply["result"]["status"] in (200, 401), reply
    # The broker still answers.
    assert client.fetch(site.resource.url + "/open")["result"]["status"] == 200
    assert len(site.token_requests()) <= 1


def test_a_token_typed_while_the_browser_returns(stage, site, user):
    typed = site.server.access_tokens[0].value
    other = stage.client(broker=site.broker())
    call, challenge, back = held_login(other, site.url)
    with site.server.held("/token") as go:
        thread = threading.Thread(target=tiny_browser.quietly, args=[back.follow], daemon=True)
        thread.start()
        site.server.wait_for("/token", 2)
        stage.secrets[typed] = (site.server, site.resource)
        other.reply(challenge, {"action": "credential", "credential": {"type": "token", "token": typed}})
        assert statuses(other, [call]) == [200]
        go.set()
        thread.join(30)
    assert other.fetch(site.url)["result"]["status"] == 200 and other.challenges.empty()


# The session and the broker

def test_a_reload_during_a_login_does_not_mix_configurations(stage, site):
    second = Site(stage)
    broker = site.broker()
    client = stage.client(broker=broker)
    call, challenge, back = held_login(client, site.url)
    broker.reload(site.configuration(issuer=second.server.issuer))
    tiny_browser.quietly(back.follow)
    reply = client.wait(call)
    # The code goes to its own server, whatever becomes of the login.
    code = back.parameters["code"]
    assert not any(code in request.body.decode() for request in second.server.requests), reply
    broker.reload("")
    assert client.fetch(site.resource.url + "/open")["result"]["status"] == 200


def test_a_table_that_is_removed_ends_the_use_of_its_grant(stage, site):
    client = site.logged_in()
    broker = stage.brokers[-1]
    site.server.revoke_access()
    broker.reload("")
    assert client.fetch(site.url, auth={"interaction": "none"})["result"]["status"] == 401
    assert len(site.token_requests()) == 1


def test_no_list_and_no_record_has_a_secret(stage, site, gnome):
    client = site.logged_in(environment=gnome.for_broker)
    broker, watcher = stage.brokers[-1], stage.client()
    for method in ["credential/list", "keyring/status", "grant/list", "fetch/list"]:
        assert "result" in watcher.call(method, {})
    # Nor any field in which it would be.
    assert b"refreshToken" not in watcher.received_bytes
    site.server.revoke_access()
    assert client.fetch(site.url)["result"]["status"] == 200
    done = subprocess.run([program("watchword"), "log"], env=broker.environment, capture_output=True, timeout=30)
    places = {"log": done.stdout + done.stderr, "lists": watcher.received_bytes, **leaks.files_below(broker.folder)}
    query = site.server.authorizations[0]
    for secret in [*site.server.issued_secrets(), query["state"], site.token_requests()[0].form["code_verifier"]]:
        assert not leaks.places_with(secret, places)


# Fixed ports

def test_logins_one_after_the_other_at_the_same_port(stage, site):
    site.options["redirect-port"] = free_port()
    client = stage.client(broker=site.broker())
    for _ in range(4):
        call = started(client, site.url)
        challenge, shown = log_in(client)
        assert f":{site.options['redirect-port']}/" in login_url(challenge) and shown.status == 200
        assert statuses(client, call) == [200]
        site.server.revoke_all()


def test_a_port_in_use_is_an_error_that_names_it(stage, site):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        site.options["redirect-port"] = taken.getsockname()[1]
        client = stage.client(broker=site.broker())
        message = failure(client, client.start("fetch/run", {"url": site.url}))
        assert str(site.options["redirect-port"]) in message and client.challenges.empty()


# Tokens bound to a key

@pytest.fixture
def bound(stage, site):
    site.options["dpop"] = True
    site.server.config(dpop="required")
    site.resource.config(dpop=True)
    return site


def test_a_bound_token_is_never_sent_without_a_proof(stage, bound):
    client = stage.client(broker=bound.broker())
    logged_in(client, bound)
    other = stranger(stage)
    bound.resource.fail("/api/redirect", redirect(307, other.url + "/x"))
    client.fetch(bound.url + "/redirect")
    bound.server.revoke_access()
    assert client.fetch(bound.url)["result"]["status"] == 200 and len(bound.server.authorizations) == 1
    assert {scheme for scheme, _ in bound.resource.presented} <= {None, "DPoP"} and not bound.resource.problems
    assert {(request.authorization, request.header("DPoP")) for request in other.requests} == {(None, None)}
    proofs = [request.header("DPoP") for request in bound.resource.requests + bound.server.requests if request.header("DPoP")]
    assert len(proofs) == len(set(proofs)) >= 4


def test_a_challenge_for_bearer_does_not_downgrade_a_bound_token(stage, bound):
    client = stage.client(broker=bound.broker())
    logged_in(client, bound)
    before = len(bound.resource.presented)
    bound.resource.fail("/api/old", lambda request: bound.resource._answer(request) and dated(401, b"", 'WWW-Authenticate: Bearer realm="api", scope="read"'))
    client.fetch(bound.url + "/old", auth={"interaction": "none"})
    assert "Bearer" not in {scheme for scheme, _ in bound.resource.presented[before:]}


# Consent

ASK = '[sharing]\nsession = "ask"\n'


@pytest.mark.parametrize("renews", [False, True])
def test_another_program_needs_consent_for_the_token(stage, site, renews):
    broker = site.broker(text=ASK)
    agent = stage.consenter(broker)
    first = stage.client(broker=broker)
    logged_in(first, site)
    sent = len(site.sent_tokens())
    if renews:
        site.server.revoke_access()
    # The helper is another program than the interpreter of these tests.
    assert b"for the bearer" not in Shell(broker).run("fetch", "-s", "--no-start", site.url).stdout
    assert len(agent.asked) == 1 and agent.asked[0]["protectionSpace"]["port"] == site.resource.port
    assert set(site.sent_tokens()[sent:]) <= {None}, site.sent_tokens()
    if not renews:
        # The program that logged in needs none.
        assert first.fetch(site.url)["result"]["status"] == 200 and len(agent.asked) == 1


def test_a_program_with_consent_uses_the_token(stage, site):
    broker = site.broker(text=ASK)
    agent = stage.consenter(broker, allow="always")
    logged_in(stage.client(broker=broker), site)
    done = Shell(broker).run("fetch", "-s", "--no-start", site.url)
    assert done.stdout == b"for the bearer\n" and len(agent.asked) == 1 and len(site.server.authorizations) == 1
