"""Servers and proxies that are stricter or more lenient than others: their acceptance decides."""
import contextlib

import pytest
from rig import field_servers
from rig.client import password_answer
from rig.fixtures import reachable_folder, running
from rig.scripted import DigestCheck, ScriptedServer, response


@pytest.fixture
def start(stage):
    """`start(make, password)` starts a server for the user bob with a folder of its own."""
    with contextlib.ExitStack() as stack:
        def started(make, password, *more):
            folder = stack.enter_context(reachable_folder(make.__name__))
            server = stack.enter_context(running(make(folder, "bob", password, *more)))
            stage.allow(password, server)
            return server

        yield started


@pytest.fixture(params=["tinyproxy", "squid"])
def forwarder(request, stage, tmp_path):
    """The URL of a proxy that forwards without a login."""
    if request.param == "squid":
        yield request.getfixturevalue("squid").url("open")
    else:
        with running(field_servers.tinyproxy(tmp_path)) as proxy:
            yield f"http://127.0.0.1:{proxy.port}"


def clients(stage, password, proxy=None):
    """A client that answers as bob, and its challenges."""
    asked = []
    broker = stage.configured(f'[proxy]\nurl = "{proxy}"\n' if proxy else "")
    return stage.client(answer=lambda params: asked.append(params) or password_answer("bob", password), broker=broker), asked


@pytest.mark.parametrize("site", ["lighttpd MD5", "lighttpd SHA-256", "apache", "wsgidav", "httpbin"])
def test_digest_through_a_proxy_that_forwards(stage, start, request, forwarder, site):
    password = stage.secret()
    if site == "apache":
        server = request.getfixturevalue("apache")
        user, password = request.getfixturevalue("account")
        path = "/private/page.txt"
    elif site == "httpbin":
        server, path = request.getfixturevalue("httpbin"), "/digest-auth/auth/bob/pw/SHA-256"
        user, password = "bob", "pw"
    else:
        make = {"lighttpd": field_servers.lighttpd, "wsgidav": field_servers.wsgidav}[site.split()[0]]
        server, user = start(make, password, *site.split()[1:]), "bob"
        path = "/page.txt" if site == "wsgidav" else "/private/page.txt"
    client, asked = clients(stage, password, forwarder)
    url = f"http://127.0.0.1:{server.port}{path}"
    # httpbin 0.7 fails on a query.
    results = [client.fetch(url + query)["result"] for query in ["", "" if site == "httpbin" else "?a=b%22c", ""]]
    assert [result["status"] for result in results] == [200] * 3
    # Behind a proxy, 127.0.0.1 is not this machine, so each fetch is asked about. None of the answers is refused.
    assert [(one["protectionSpace"]["isProxy"], one["previousFailureCount"]) for one in asked] == [(False, 0)] * 3
    assert [result["auth"]["user"] for result in results] == [user] * 3
    if site.startswith("lighttpd"):
        lines = server.wait_for_log("\n", times=4).splitlines()
        assert all(line.split()[3].startswith("/private/page.txt") for line in lines)


def test_the_server_behind_a_proxy_is_told_the_path(stage, forwarder):
    """The server compares the `uri` with the request line that the forwarding proxy sends."""
    password = stage.secret()
    check = DigestCheck("bob", password)
    server = stage.server(check)
    stage.allow(password, server)
    client, asked = clients(stage, password, forwarder)
    assert client.fetch(server.url + "/a/../b?c=%22d")["result"]["status"] == 200
    assert check.problems == [] and len(asked) == 1
    assert 'uri="/b?c=%22d"' in server.authorizations[-1]


@pytest.mark.parametrize("proxy", ["apache_proxy", "squid digest"])
def test_digest_of_the_proxy_itself(stage, start, request, proxy):
    """A proxy that requires a login itself receives the whole URL in the request line, and compares it."""
    password = stage.secret()
    if proxy == "apache_proxy":
        server = start(field_servers.apache_proxy, password)
        url = f"http://127.0.0.1:{server.port}"
    else:
        server = request.getfixturevalue("squid")
        password, url = request.getfixturevalue("account")[1], server.url("digest")
    origin = stage.server(ScriptedServer(lambda request: response(200, b"through")))
    client, asked = clients(stage, password, url)
    results = [client.fetch(f"{origin.url}/x{query}")["result"] for query in ["", "?a=b", "?c"]]
    assert [(result["status"], result["exchanges"]) for result in results] == [(200, 2), (200, 1), (200, 1)]
    assert len(asked) == 1 and asked[0]["protectionSpace"]["isProxy"] is True
    assert all(request.authorization is None for request in origin.requests)


@pytest.mark.parametrize("make, path, realm, forwards_the_login", [
    (field_servers.tinyproxy, "/ignored/path", "Tinyproxy", False), (field_servers.mitmproxy, "", "mitmproxy", False),
    (field_servers.proxy_py, "", None, True)], ids=["tinyproxy", "mitmproxy", "proxy.py"])
def test_basic_of_proxies(stage, start, make, path, realm, forwards_the_login):
    """proxy.py 2.4 names no realm, and forwards the login that was for itself."""
    password = stage.secret()
    server = start(make, password)
    origin = stage.server(ScriptedServer(lambda request: response(200, b"through")))
    if forwards_the_login:
        stage.allow(password, origin)
    client, asked = clients(stage, password, f"http://127.0.0.1:{server.port}{path}")
    results = [client.fetch(origin.url)["result"] for _ in range(2)]
    assert [(result["status"], result["exchanges"]) for result in results] == [(200, 2), (200, 1)]
    assert [(one["protectionSpace"]["isProxy"], one["protectionSpace"]["realm"]) for one in asked] == [(True, realm)]
    assert asked[0]["offers"][0].get("weak") == (None if realm else ["noRealm"])


def test_rule_29_two_repositories_of_a_registry_cost_two_questions(stage, tmp_path):
    with running(field_servers.Registry(tmp_path)) as registry:
        asked = []

        def answer(params):
            asked.append(params["offers"][0]["params"]["scope"])
            token = registry.token(asked[-1])
            return {"action": "credential", "credential": {"type": "token", "token": token, "persistence": "forSession"}}

        client, codes = stage.client(answer=answer), []
        for number in range(6):
            result = client.fetch(f"http://127.0.0.1:{registry.port}/v2/{'ab'[number % 2]}/tags/list")["result"]
            codes.append((result["status"], "NAME_UNKNOWN" in result["body"]["value"], result["exchanges"]))
        # The repositories are empty, which only an authorised client learns.
        assert codes == [(404, True, 2)] * 2 + [(404, True, 1)] * 4
        assert asked == ["repository:a:pull", "repository:b:pull"]
        # The same path with a wider scope: the narrower token stays stored, and one for this scope is asked about.
        pushed = client.fetch(f"http://127.0.0.1:{registry.port}/v2/a/blobs/uploads/", method="POST")["result"]
        assert (pushed["status"], len(asked)) == (202, 3) and "push" in asked[-1]
        again = client.fetch(f"http://127.0.0.1:{registry.port}/v2/a/tags/list")["result"]
        assert (again["exchanges"], len(asked)) == (1, 3)


@pytest.mark.parametrize("make", [field_servers.haproxy, field_servers.caddy, field_servers.radicale], ids=lambda make: make.__name__)
def test_basic_of_servers(stage, start, make):
    password = stage.secret()
    server = start(make, password)
    client, asked = clients(stage, password)
    path, method, status = ("bob/", "PROPFIND", 207) if make is field_servers.radicale else ("page", "GET", 200)
    results = [client.fetch(f"http://127.0.0.1:{server.port}/{path}", method=method)["result"] for _ in range(2)]
    assert [(result["status"], result["exchanges"]) for result in results] == [(status, 2), (status, 1)]
    assert [one["protectionSpace"]["authenticationMethod"] for one in asked] == ["httpBasic"]


@pytest.mark.parametrize("name", field_servers.FIELD)
def test_the_versions_are_those_of_the_matrix(name):
    assert field_servers.installed(name).startswith(field_servers.FIELD[name][0])
