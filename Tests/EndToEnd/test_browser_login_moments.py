"""Logins in a browser and on other devices while something else happens: other programs, answers, locks, reloads, restarts."""
import socket
import subprocess
import threading
import time

import pytest

from rig import leaks, tiny_browser
from rig.bodies import eventually
from rig.broker import program
from rig.login_sites import (  # noqa: F401
    Site, client, failure, held_login, is_closed, log_in, logged_in, login_url, quiet, site, started, statuses, stranger)
from rig.oauth_answers import dated, redirect
from rig.servers import free_port
from rig.subjects import Consenter
from rig.terminal import Shell


def crowd(stage, broker, url, count=9, **params):
    """An agent, and programs without one that fetch the same page; returns the agent, and the programs with their calls."""
    agent = stage.client(broker=broker)
    assert "result" in agent.call("agent/register", {"name": "tests"})
    programs = []
    for index in range(count):
        one = stage.client(broker=broker, delivery=None)
        one.call("initialize", {"client": {"name": f"program {index}"}, "protocolVersion": 1})
        programs.append((one, started(one, url, **params)[0]))
    return agent, programs


# Many programs


@pytest.mark.tier3
def test_not_now_is_asked_once_for_nine_programs(stage, site):
    agent, programs = crowd(stage, site.broker(), site.url)
    challenge = agent.challenges.get(timeout=30)
    agent.reply(challenge, {"action": "cancel"})
    for one, call in programs:
        assert "error" in one.wait(call) or one.wait(call)["result"]["status"] == 401
    assert quiet(agent, 1)
    eventually(lambda: is_closed(login_url(challenge)), "the listener is closed", 15)


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


def test_a_token_typed_while_the_browser_returns(stage, site, client):
    logged_in(client, site)
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
    broker = site.broker()
    client = stage.client(broker=broker)
    logged_in(client, site)
    site.server.revoke_access()
    broker.reload("")
    assert client.fetch(site.url, auth={"interaction": "none"})["result"]["status"] == 401
    assert len(site.token_requests()) == 1


@pytest.fixture
def kept(stage, site, gnome):
    """A login whose grant is in the keyring; the site has its broker, client and keyring."""
    site.running = site.broker(environment=gnome.for_broker)
    site.client, site.keyring = stage.client(broker=site.running), gnome
    logged_in(site.client, site)
    return site


@pytest.mark.parametrize("method", ["credential/list", "keyring/status", "grant/list", "fetch/list"])
def test_no_list_shows_a_refresh_token(stage, kept, method):
    watcher = stage.client(broker=kept.running)
    assert "result" in watcher.call(method, {})
    for token in kept.server.refresh_tokens:
        assert not leaks.places_with(token.value, {"client": watcher.received_bytes})
        # Nor any field in which it would be.
        assert b"refreshToken" not in watcher.received_bytes


def test_secrets_are_in_no_record(stage, kept):
    kept.server.revoke_access()
    assert kept.client.fetch(kept.url)["result"]["status"] == 200
    done = subprocess.run([program("watchword"), "log"], env=kept.running.environment, capture_output=True, timeout=30)
    files = leaks.files_below(kept.running.folder)
    query = kept.server.authorizations[0]
    for secret in [*kept.server.issued_secrets(), query["state"], kept.token_requests()[0].form["code_verifier"]]:
        assert not leaks.places_with(secret, {"log": done.stdout + done.stderr, **files})


@pytest.mark.tier3
def test_a_broker_that_stops_ends_its_listener(stage, site):
    broker = site.broker()
    client = stage.client(broker=broker)
    call, challenge, back = held_login(client, site.url)
    assert broker.stop() == 0
    assert is_closed(back.url) and not site.token_requests()


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


@pytest.mark.tier3
def test_two_logins_at_the_same_port_at_the_same_time(stage, site):
    second = Site(stage)
    second.options["redirect-port"] = site.options["redirect-port"] = free_port()
    client = stage.client(broker=site.broker(text=second.configuration()))
    call, challenge, back = held_login(client, site.url)
    failure(client, client.start("fetch/run", {"url": second.url}))
    assert back.follow().status == 200 and statuses(client, [call]) == [200]
    time.sleep(5.5)
    logged_in(client, second)


# Other devices


@pytest.fixture
def device(stage, site):
    site.options["flow"] = "device"
    return site


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
    for request in other.requests:
        assert request.authorization is None and request.header("DPoP") is None
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


def refused(broker, url):
    """Fetches with the helper, another program than the interpreter of these tests, whose use of a login is not allowed."""
    done = Shell(broker).run("fetch", "-s", "--no-start", url)
    assert b"for the bearer" not in done.stdout, done
    return done


@pytest.mark.parametrize("renews", [False, True])
def test_another_program_needs_consent_for_the_token(stage, site, renews):
    broker = site.broker(text=ASK)
    agent = Consenter(broker.socket)
    stage.clients.append(agent)
    first = stage.client(broker=broker)
    logged_in(first, site)
    sent = len(site.sent_tokens())
    if renews:
        site.server.revoke_access()
    refused(broker, site.url)
    assert len(agent.asked) == 1 and agent.asked[0]["protectionSpace"]["port"] == site.resource.port
    assert set(site.sent_tokens()[sent:]) <= {None}, site.sent_tokens()
    if not renews:
        # The program that logged in needs none.
        assert first.fetch(site.url)["result"]["status"] == 200 and len(agent.asked) == 1


def test_a_program_with_consent_uses_the_token(stage, site):
    broker = site.broker(text=ASK)
    agent = Consenter(broker.socket, allow="always")
    stage.clients.append(agent)
    logged_in(stage.client(broker=broker), site)
    done = Shell(broker).run("fetch", "-s", "--no-start", site.url)
    assert done.stdout == b"for the bearer\n" and len(agent.asked) == 1 and len(site.server.authorizations) == 1
