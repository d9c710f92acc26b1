"""Logins at the wrong server, for the wrong program or at the wrong time, as a review has found them."""
import os
import subprocess

import pytest

from rig import tiny_browser
from rig.authorization_server import AuthorizationServer
from rig.bodies import eventually
from rig.broker import program
from rig.client import password_answer
from rig.login_sites import Site, failure, log_in, logged_in, login_url, site, started, statuses  # noqa: F401
from rig.oauth_answers import json_answer
from rig.scripted import response
from rig.servers import free_port
from rig.subjects import Consenter


LOCK = ("gdbus", "call", "--session", "--dest", "org.freedesktop.secrets", "--object-path", "/org/freedesktop/secrets",
        "--method", "org.freedesktop.Secret.Service.Lock", "['/org/freedesktop/secrets/collection/login']")


def private(path, text):
    path.write_text(text)
    path.chmod(0o600)
    return path


def printed(broker, url):
    """Runs `watchword token`; returns its exit code and output."""
    command = [program("watchword"), "token", "--socket", broker.socket, url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    return done.returncode, done.stdout, done.stderr


def released():
    return f'[credentials]\nhand-out = ["{os.path.realpath(program("watchword"))} 127.0.0.1"]\n'


# The secrets of the broker


def test_the_secret_of_a_new_issuer_is_not_sent_to_the_old_one(stage, site, gnome):
    broker = site.broker(environment=gnome.for_broker)
    client = stage.client(broker=broker)
    logged_in(client, site)
    new = stage.server(AuthorizationServer(issuer_path="/new"))
    secret = stage.secret()
    broker.reload(site.configuration(issuer=new.issuer, **{"client-secret-file": str(private(stage.folder / "secret", secret))}))
    assert client.call("credential/forget", {"protectionSpace": site.space()})["result"]["removed"] >= 1
    (refresh, access) = site.server.wait_for("/revoke", 2)
    assert refresh.form["client_id"] == access.form["client_id"] == "watchword"
    assert not any(request.authorization or "client_secret" in request.form for request in [refresh, access])


def test_the_secret_of_a_client_is_not_sent_over_a_certificate_exception(stage, certificates):
    server, secret = stage.server(AuthorizationServer(certificates, "/t")), stage.secret()
    server.client("job", secret)
    site = Site(stage, server=server, **{
        "client-id": "job", "client-secret-file": str(private(stage.folder / "secret", secret)), "flow": "client-credentials"})
    broker = site.broker()
    client, agent = stage.client(broker=broker), stage.agent({"action": "cancel"}, broker)
    message = failure(client, client.start("fetch/run", {"url": site.url}), "serverNotTrusted")
    assert message.startswith(f"cannot log in at {server.url}: ") and not agent.asked and not server.requests


# Token services of registries


def registry(stage, answer):
    """A registry whose token service has the same origin, and answers with `answer(request, challenge)`."""
    def handle(request):
        repository = request.path.split("/")[-1]
        bearer = 'WWW-Authenticate: Bearer realm="http://127.0.0.1:%d/token",service="reg",scope="repository:%s:pull"'
        if request.path == "/token":
            return answer(request, lambda name: json_answer(401, {}, bearer % (server.port, name)))
        if request.authorization == f"Bearer token-{repository}":
            return response(200, b"ok")
        return response(401, b"", bearer % (server.port, repository))
    server = stage.server(handle)
    return server


def issue(request):
    return json_answer(200, {"token": "token-" + request.query["scope"].split(":")[1], "expires_in": 300})


def with_password(request, _):
    return issue(request) if request.authorization else json_answer(401, {}, 'WWW-Authenticate: Basic realm="service"')


def broker_of(stage, server):
    return stage.configured(f'[oauth."{server.url}"]\nflow = "registry"\nissuer = "{server.url}"\n')


def asked(server):
    return [request for request in server.requests if request.path == "/token"]


def test_a_token_service_that_requires_a_token_of_its_own_is_asked_once(stage):
    """Each challenge names another scope."""
    server = registry(stage, lambda request, challenge: challenge(f"a{len(asked(server))}"))
    client = stage.client(broker=broker_of(stage, server))
    assert client.fetch(server.url + "/v2/a", auth={"interaction": "none"})["result"]["status"] == 401
    assert len(asked(server)) == 1


def test_a_sandboxed_program_does_not_choose_the_account_at_a_token_service(stage):
    def answer(request, _):
        return issue(request) if request.authorization else json_answer(200, {"token": "anonymous"})

    server = registry(stage, answer)
    broker = broker_of(stage, server)
    agent = Consenter(broker.socket, allow="session")
    stage.clients.append(agent)
    confined = stage.sandbox(broker)
    confined.call("initialize", {
        "client": {"name": "confined"}, "protocolVersion": 1, "capabilities": {"challenge": {"delivery": "request"}}})
    confined.send({"id": 99, "method": "fetch/run", "params": {"url": server.url + "/v2/a"}})
    while (message := confined.read()).get("id") != 99:
        space = message.get("params", {}).get("protectionSpace", {})
        assert message.get("method") != "auth/challenge" or space["authenticationMethod"] == "bearer", message
        if "id" in message:
            confined.send({"id": message["id"], "result": {"action": "cancel"}})


def test_a_login_at_a_token_service_goes_on_if_the_first_program_exits(stage):
    server = registry(stage, with_password)
    broker = broker_of(stage, server)
    first, second = stage.client(broker=broker), stage.client(broker=broker)
    started(first, server.url + "/v2/a")
    first.challenges.get(timeout=30)
    call = second.start("fetch/run", {"url": server.url + "/v2/a"})
    eventually(lambda: len([one for one in server.requests if one.path == "/v2/a"]) == 2, "both were challenged")
    second.call("ping")
    first.close()
    second.reply(second.challenges.get(timeout=30), password_answer("ann", "password"))
    assert second.wait(call)["result"]["status"] == 200


def test_the_token_of_a_registry_needs_its_challenge(stage):
    broker = stage.configured(released() + '[oauth."http://127.0.0.1:4"]\nflow = "registry"\nissuer = "http://127.0.0.1:5"\n')
    code, output, error = printed(broker, "http://127.0.0.1:4/v2/x")
    assert (code, output) == (1, "") and "log in with: watchword fetch http://127.0.0.1:4/v2/x" in error


# Programs that consent keeps apart


def test_a_login_for_one_sandboxed_program_is_not_for_another(stage, site):
    """Each has its own question; the person answers that of the first."""
    broker = site.broker()
    agent = stage.client(broker=broker)
    assert "result" in agent.call("agent/register", {"name": "tests"})
    programs = [stage.sandbox(broker, name) for name in ["org.example.Maps", "org.example.Music"]]
    for one in programs:
        one.send({"id": 99, "method": "fetch/run", "params": {"url": site.url}})
    asked = [agent.challenges.get(timeout=30) for _ in programs]
    assert len({login_url(challenge) for challenge in asked}) == 2
    first = next(one for one in asked if "Maps" in str(one["params"]["requester"]))
    other = next(one for one in asked if one is not first)
    assert tiny_browser.open_login(login_url(first)).status == 200
    while (reply := programs[0].read()).get("id") != 99:
        pass
    assert reply["result"]["status"] == 200
    agent.reply(other, {"action": "cancel"})
    while (reply := programs[1].read()).get("id") != 99:
        pass
    assert "error" in reply and len([token for token in site.sent_tokens() if token]) == 1


def test_a_login_ends_when_its_table_is_removed(stage, site):
    broker = site.broker()
    client = stage.client(broker=broker)
    call = client.start("fetch/run", {"url": site.url})
    client.challenges.get(timeout=30)
    broker.reload("")
    assert "table was changed" in failure(client, call)


# The keyring


def test_a_locked_keyring_is_no_deleted_login(stage, site, gnome):
    client = stage.client(broker=site.broker(environment=gnome.for_broker))
    logged_in(client, site)
    gnome.run(*LOCK)
    site.server.revoke_access()
    assert client.fetch(site.url)["result"]["status"] == 200 and client.challenges.empty()


def test_a_login_that_is_forgotten_during_its_renewal_is_not_stored_again(stage, site, gnome):
    broker = site.broker(environment=gnome.for_broker)
    client, other = stage.client(broker=broker), stage.client(broker=broker)
    logged_in(client, site)
    client.call("session/clear")
    (login,) = client.call("credential/list", {})["result"]["credentials"]
    site.server.fail("/revoke", json_answer(503, {}))
    with site.server.held("/token"):
        call = client.start("fetch/run", {"url": site.url})
        site.server.wait_for("/token", 2)
        assert other.call("credential/forget", {"id": login["id"]})["result"]["removed"] == 1
    assert "error" in client.wait(call)
    assert client.call("credential/list", {})["result"]["credentials"] == []


def test_forgetting_a_token_leaves_the_other_tables_of_the_host(stage, gnome):
    site = Site(stage, at="/api")
    broker = stage.configured(site.configuration() + site.configuration().replace("/api", "/other"), environment=gnome.for_broker)
    client = stage.client(broker=broker)
    site.resource.fail("/other", lambda r: response(200) if r.authorization else response(401, b"", 'WWW-Authenticate: Bearer realm="o"'))
    logged_in(client, site)
    call = started(client, site.resource.url + "/other")
    log_in(client)
    assert statuses(client, call) == [200]
    listed = client.call("credential/list", {})["result"]["credentials"]
    (token,) = [one["id"] for one in listed if one["source"] == "session" and one["path"] == "/other"]
    client.call("credential/forget", {"id": token})
    left = client.call("credential/list", {})["result"]["credentials"]
    assert sorted((one["source"], one["path"]) for one in left) == [("keyring", "/api"), ("session", "/api")]


# The token for other programs


def test_the_same_token_is_printed_until_it_expires(stage, site, gnome):
    broker = site.broker(text=released(), environment=gnome.for_broker)
    client = stage.client(broker=broker)
    logged_in(client, site)
    client.call("session/clear")
    assert len({printed(broker, site.url)[1] for _ in range(3)}) == 1 and len(site.token_requests()) == 2


def test_without_a_login_the_command_says_how_to_log_in(stage, site):
    code, output, error = printed(site.broker(text=released()), site.url)
    assert (code, output) == (1, "") and error == f"watchword: no token for {site.url} is stored; log in with: watchword fetch {site.url}\n"


@pytest.mark.parametrize("rest", ["?next=/api", "/other#/api", "/api/../admin", "/api/..%2fadmin"])
def test_no_token_for_another_path(stage, rest):
    site = Site(stage, at="/api")
    broker = site.broker(text=released())
    logged_in(stage.client(broker=broker), site)
    code, output, _ = printed(broker, site.resource.url + rest)
    assert code != 0 and output == ""


def test_a_port_that_another_login_uses_is_named_with_that_login(stage, site):
    options = site.configuration(**{"redirect-port": free_port()})
    broker = stage.configured(options + options.replace(site.configured_url, site.resource.url + "/other", 1))
    client = stage.client(broker=broker)
    client.start("fetch/run", {"url": site.url})
    client.challenges.get(timeout=30)
    site.resource.fail("/other", lambda r: response(401, b"", 'WWW-Authenticate: Bearer realm="o"'))
    message = failure(client, client.start("fetch/run", {"url": site.resource.url + "/other"}))
    assert "uses port" in message and "finish or decline it first" in message
