"""The cookies of one fetch: what its challenges and redirects set goes with its next requests, and nowhere else (rule L6)."""

import pytest

from rig.scripted import ScriptedServer, response


def cookies(server):
    """The `Cookie` fields of each request: a request has at most one (RFC 6265 section 5.4)."""
    return [[value for name, value in request.headers if name.lower() == "cookie"] for request in server.requests]


def redirecting(*fields, to="/there"):
    """A server that redirects `/from` with these fields."""
    return ScriptedServer(lambda request: response(302, b"", f"Location: {to}", *fields) if request.path == "/from" else response(200, b"page"))


def challenging(*fields):
    """A server that requires a login and the cookie of its challenge."""
    def handle(request):
        if request.authorization and "id=1" in (request.header("Cookie") or ""):
            return response(200, b"page")
        return response(401, b"", 'WWW-Authenticate: Basic realm="Staff"', *fields)
    return ScriptedServer(handle)


def test_a_login_that_requires_the_cookie_of_its_challenge(stage):
    server = stage.server(challenging("Set-Cookie: id=1; HttpOnly; Path=/"))
    credential = {"type": "password", "user": "bob", "password": stage.secret(server)}
    client = stage.client()
    assert client.fetch(server.url + "/a/b", credential=credential)["result"]["status"] == 200
    assert cookies(server) == [[], ["id=1"]]
    # The next fetch begins without cookies.
    assert client.fetch(server.url + "/a/b", credential=credential, auth={"preemptive": False})["result"]["status"] == 200
    assert cookies(server)[2:] == [[], ["id=1"]]


@pytest.mark.parametrize("fields, sent", [
    (["Set-Cookie: a=1", "Set-Cookie: b=2; Path=/"], ["a=1; b=2"]),
    (["Set-Cookie: a=1; Path=/elsewhere"], []),
    (["Set-Cookie: a=1; Max-Age=0"], []),
    (["Set-Cookie: a=1; Domain=example.com"], []),
    (["Set-Cookie: a=; Path=/"], ["a="]),
    (["Set-Cookie: a=1\tb"], []),
    (["Set-Cookie: a=1; Path=/", "Set-Cookie: a=2; Path=/"], ["a=2"]),
    (["Set-Cookie: a=" + "x" * 5000], []),
    ([f"Set-Cookie: a{number}=1" for number in range(70)], ["; ".join(f"a{number}=1" for number in range(50))]),
], ids=str)
def test_the_cookies_of_a_redirect_follow_the_rules_of_browsers(stage, fields, sent):
    server = stage.server(redirecting(*fields))
    assert stage.client().fetch(server.url + "/from")["result"]["status"] == 200
    first, second = cookies(server)
    assert not first and [sorted(one.split("; ")) for one in second] == [sorted(one.split("; ")) for one in sent]


def test_a_cookie_can_be_deleted_on_the_way(stage):
    steps = {"/1": ["Set-Cookie: a=1; Path=/", "Set-Cookie: b=1; Path=/"], "/2": ["Set-Cookie: a=; Max-Age=0; Path=/"], "/3": []}
    server = stage.server(lambda request: response(302, b"", f"Location: /{int(request.path[1:]) + 1}", *steps[request.path])
                          if request.path in steps else response(200))
    assert stage.client().fetch(server.url + "/1")["result"]["status"] == 200
    assert [sorted(sum((one.split("; ") for one in each), [])) for each in cookies(server)] == [[], ["a=1", "b=1"], ["b=1"], ["b=1"]]


def test_rule_l6_no_cookie_for_another_host_or_port(stage):
    other = stage.server(lambda request: response(302, b"", f"Location: http://localhost:{request.target[2:]}/back"))
    server = stage.server(lambda request: response(302, b"", "Set-Cookie: a=1; Path=/", f"Location: {other.url}/?{server.port}")
                          if request.path == "/from" else response(200, b"page"))
    assert stage.client().fetch(f"http://127.0.0.1:{server.port}/from")["result"]["status"] == 200
    assert cookies(other) == [[]] and cookies(server) == [[], []]


def test_rule_l6_a_proxy_sets_no_cookie(stage):
    """A forwarding proxy's 407 looks as though the server had sent it."""
    def proxy(request):
        if request.header("Proxy-Authorization"):
            return response(200, b"page")
        return response(407, b"", 'Proxy-Authenticate: Basic realm="Proxy"', "Set-Cookie: a=1; Path=/")
    server = stage.server(proxy)
    credential = {"type": "password", "user": "bob", "password": stage.secret(server)}
    assert stage.client().fetch("http://a.example/", proxy={"url": server.url, "credential": credential})["result"]["status"] == 200
    assert cookies(server) == [[], []]


def test_many_cookies_leave_those_of_the_client_and_of_the_challenge(stage):
    large = [f"Set-Cookie: c{number}={'x' * 3900}; Path=/" for number in range(3)]
    server = stage.server(redirecting(*large))
    assert stage.client().fetch(server.url + "/from", headers=[["Cookie", "own=x"]])["result"]["status"] == 200
    assert cookies(server)[1][0].endswith("; own=x") and len(cookies(server)[1][0]) < 8000

    def handle(request):
        if request.path == "/a":
            return response(302, b"", "Location: /b", *[f"Set-Cookie: c{number}=1; Path=/a" for number in range(50)])
        if "id=1" in (request.header("Cookie") or ""):
            return response(200, b"page")
        return response(401, b"", 'WWW-Authenticate: Basic realm="Staff"', "Set-Cookie: id=1; Path=/")
    server = stage.server(handle)
    credential = {"type": "password", "user": "bob", "password": stage.secret(server)}
    assert stage.client().fetch(server.url + "/a", credential=credential)["result"]["status"] == 200


def test_a_field_of_the_client_keeps_its_meaning(stage):
    server = stage.server(redirecting("Set-Cookie: a=1; Path=/"))
    client = stage.client()
    assert client.fetch(server.url + "/from", headers=[["Cookie", "own=x; a=0"]])["result"]["status"] == 200
    assert client.fetch(server.url + "/", headers=[["Cookie", "own=x"], ["Cookie", "more=y"]])["result"]["status"] == 200
    assert cookies(server) == [["own=x; a=0"], ["a=1; own=x; a=0"], ["own=x", "more=y"]]


def test_a_fetch_can_do_without_cookies(stage):
    server = stage.server(redirecting("Set-Cookie: a=1; Path=/"))
    assert stage.client().fetch(server.url + "/from", cookies="none")["result"]["status"] == 200
    assert cookies(server) == [[], []]
    error = stage.client().fetch(server.url, cookies="all")["error"]
    assert error["code"] == -32602 and "cookies" in str(error["data"])


def test_a_cookie_of_https_is_not_sent_over_http(stage, certificates, tls_server):
    """On this machine browsers, and libcurl, count http as secure, so the cookie's port decides here."""
    plain = stage.server(lambda request: response(200, b"page"))
    server = tls_server("good", lambda request: response(302, b"", "Set-Cookie: a=1; Secure", f"Location: http://localhost:{plain.port}/"))
    client = stage.client(broker=stage.broker("--ca-file", str(certificates / "ca.pem")))
    assert client.fetch(server.url + "/")["result"]["status"] == 200
    assert cookies(plain) == [[]]


