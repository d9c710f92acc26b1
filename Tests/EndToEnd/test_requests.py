"""JSON-RPC over the real socket: invalid input, limits, framings, and minimal clients."""
import json
import subprocess

import pytest

from rig.client import password_answer
from rig.scripted import ScriptedServer, basic_server, response


@pytest.mark.parametrize("params, kind", [
    ({"url": "ftp://127.0.0.1/"}, "badURL"), ({"url": "http://"}, "badURL"), ({}, "invalidParams"), ({"url": 7}, "invalidParams"),
    ({"url": "http://127.0.0.1/", "headers": [["X", "a\r\nEvil: 1"]]}, "invalidHeader"),
    ({"url": "http://127.0.0.1/", "headers": {"X": "a\nb"}}, "invalidHeader"),
    ({"url": "http://127.0.0.1/", "headers": {"Authorization": "Basic x"}}, "invalidHeader"),
    ({"url": "http://127.0.0.1/", "method": "A\nB"}, "invalidMethod"),
    ({"url": "http://127.0.0.1/", "proxy": {"url": "ftp://127.0.0.1/"}}, "badURL"),
        ({"url": "http://127.0.0.1/", "proxy": {"url": "http://127.0.0.1:1"}}, "proxyFailed"),
    ({"url": "http://127.0.0.1:1/"}, "cannotConnect"), ({"url": "http://nowhere.invalid/"}, "nameNotResolved"),
])
def test_each_mistake_has_its_kind_and_the_connection_continues(stage, params, kind):
    client = stage.client(delivery=None)
    assert client.call("fetch/run", params)["error"]["data"]["kind"] == kind
    assert client.call("ping")["result"] == {}


def test_unknown_framing_gets_one_line_and_the_end(stage):
    client = stage.client(delivery=None)
    client.send_bytes(b"GET / HTTP/1.1\r\n\r\n")
    assert client.raw_reply()["error"]["data"]["kind"] == "protocolViolation"
    assert client.closed.wait(30)
    assert client.received_bytes.count(b"\n") == 1


def test_rule_p10_a_challenge_is_not_in_the_batch_of_its_fetch(stage):
    """The challenge is sent outside of the batch, and answered before the batch."""
    server, password = stage.protected("bob")
    client = stage.client()
    fetches = [{"jsonrpc": "2.0", "id": name, "method": "fetch/run", "params": {"url": f"{server.url}/{name}"}} for name in "ab"]
    client.send_bytes(json.dumps(fetches).encode() + b"\n")
    challenge = client.challenges.get(timeout=30)
    assert ("broker", challenge) in client.messages, "a message of its own"
    assert not {"a", "b"} & client.replies.keys()
    client.reply(challenge, password_answer("bob", password))
    assert [client.wait(name)["result"]["status"] for name in "ab"] == [200, 200]
    batch, = [message for _, message in client.messages if isinstance(message, list)]
    assert {entry["id"] for entry in batch} == {"a", "b"} and not any("method" in entry for entry in batch)


def test_one_shot_with_socat_is_answered_once_and_never_asked(stage):
    server = stage.server(basic_server("bob", stage.secret()))
    broker = stage.broker()
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "fetch/run", "params": {"url": server.url}})
    done = subprocess.run(["socat", "-t", "20", "-", f"UNIX:{broker.socket}"], input=request + "\n", text=True, capture_output=True, timeout=30)
    lines = done.stdout.splitlines()
    assert len(lines) == 1
    assert json.loads(lines[0])["result"]["status"] == 401


def test_rpc_discover_lists_every_method(stage):
    document = stage.client(delivery=None).call("rpc.discover")["result"]
    methods = {method["name"] for method in document["methods"] if method["x-direction"] != "brokerToClient"}
    client = stage.client(delivery=None)
    for method in methods - {"$/cancelRequest"}:
        reply = client.call(method, {})
        assert reply.get("error", {}).get("code") != -32601, method


def test_the_path_of_a_proxy_is_ignored(stage):
    server = stage.server(ScriptedServer(lambda request: response(200, request.target.encode())))
    result = stage.client().fetch("http://a.example/x", proxy={"url": f"{server.url}/some/path?a#b"})["result"]
    assert result["body"]["value"] == "http://a.example/x"


@pytest.mark.parametrize("reply, status", [
    ({"result": {"approve": True}}, 200), ({"result": {"approve": False}}, 302), ({"result": {"answer": True}}, 302),
    ({"error": {"code": -32601, "message": "no such method"}}, 302)])
def test_a_client_approves_redirects(stage, reply, status):
    target = stage.server(lambda request: response(200, b"there"))
    origin = stage.server(lambda request: response(302, b"moved", f"Location: {target.url}/there"))
    client = stage.client()
    assert "result" in client.call("auth/subscribe", {"approvesRedirects": True})
    call = client.start("fetch/run", {"url": origin.url})
    asked = client.notifications.get(timeout=30)
    assert asked["method"] == "fetch/approveRedirect"
    assert {**asked["params"], "fetchId": None} == {
        "fetchId": None, "status": 302, "from": f"{origin.url}/", "to": f"{target.url}/there", "method": "GET"}
    assert not target.requests
    client.send({"jsonrpc": "2.0", "id": asked["id"], **reply})
    assert client.wait(call)["result"]["status"] == status
    assert len(target.requests) == (1 if status == 200 else 0)


def test_rule_l5_the_server_gets_the_canonical_text_of_the_url(stage):
    """The server gets the same text of the URL from which the origin of the challenge was derived."""
    asked = []
    server = stage.server(basic_server("bob", "x"))
    client = stage.client(answer=lambda challenge: asked.append(challenge) or {"action": "continue"})
    assert client.fetch(f"HTTP://LocalHost:{server.port}/a/./b/../c d#part")["result"]["status"] == 401
    assert [(request.target, request.header("Host")) for request in server.requests] == [("/a/c%20d", f"localhost:{server.port}")]
    assert (asked[0]["protectionSpace"]["host"], asked[0]["url"]) == ("localhost", f"http://localhost:{server.port}/a/c%20d")


def test_rule_l6_nothing_that_a_response_sets_changes_a_later_request(stage, certificates, tls_server):
    """libcurl's engines for alternative services and HSTS are off, and no cookie outlives its fetch."""
    other, plain = tls_server("good"), stage.server(lambda request: response(200, b"plain"))
    fields = ["Set-Cookie: a=b; Path=/", f'Alt-Svc: http/1.1="localhost:{other.port}"', "Strict-Transport-Security: max-age=3600"]
    server = tls_server("good", lambda request: response(302, b"", "Location: /second", *fields) if request.target == "/first"
                        else response(200, b"", *fields))
    client = stage.client(broker=stage.broker("--ca-file", str(certificates / "ca.pem")))
    for _ in range(2):
        assert client.fetch(server.url + "/first")["result"]["status"] == 200
        assert client.fetch(plain.url.replace("127.0.0.1", "localhost"))["result"]["body"]["value"] == "plain"
    assert [request.target for request in server.requests] == ["/first", "/second"] * 2
    expected = [("Host", f"localhost:{server.port}"), ("User-Agent", "watchword"), ("Accept", "*/*")]
    with_cookie = [*expected, ("Cookie", "a=b")]
    assert [request.headers for request in server.requests] == [expected, with_cookie] * 2 and not other.connections
