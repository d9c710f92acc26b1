"""JSON-RPC over the real socket: limits, framings, minimal clients; `fetch.deny`, which applies to every address that is connected to,
whatever name or proxy leads there; the cookies of one fetch (rule L6); and one question for many processes, agents, and clients, and
waiting for other programs (SEMANTICS rules 8, 13 and 20 to 22)."""
import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap

import pytest

from rig.audit import wait_for
from rig.bodies import eventually
from rig.broker import program
from rig.client import password_answer
from rig.scripted import ScriptedServer, basic, basic_server, response
from rig.servers import private, written
from rig.terminal import Shell


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
    server = stage.server(basic_server("bob", "x"))
    client = stage.client(answer={"action": "continue"})
    assert client.fetch(f"HTTP://LocalHost:{server.port}/a/./b/../c d#part")["result"]["status"] == 401
    assert [(request.target, request.header("Host")) for request in server.requests] == [("/a/c%20d", f"localhost:{server.port}")]
    assert (client.asked[0]["protectionSpace"]["host"], client.asked[0]["url"]) == ("localhost", f"http://localhost:{server.port}/a/c%20d")


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


@pytest.fixture
def server():
    with contextlib.closing(ScriptedServer(lambda request: response(200, b"welcome"))) as server:
        yield server


def is_denied(reply):
    return reply.get("error", {}).get("data", {}).get("kind") == "denied"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "x.localhost", "x.localhost.", "0.0.0.0", "[::]", "[::ffff:127.0.0.1]",
                                  "[::ffff:7f00:1]", "[::1]", "127.0.0.2"])
def test_loopback_is_denied_under_every_name(stage, server, host):
    client = stage.client(broker=stage.configured('[fetch]\ndeny = ["127.0.0.1"]\n'))
    assert is_denied(client.fetch(f"http://{host}:{server.port}/"))
    assert is_denied(client.fetch("http://host.invalid/", proxy={"url": f"http://{host}:{server.port}"}))
    assert server.connections == 0


@pytest.mark.parametrize("kind", ["http", "https", "socks5h"])
def test_a_proxy_does_not_circumvent_the_rule(stage, server, kind):
    client = stage.client(broker=stage.configured('[fetch]\ndeny = ["127.0.0.1"]\n'))
    for url in ["http://host.invalid/", "https://host.invalid/"]:
        assert is_denied(client.fetch(url, proxy={"url": f"{kind}://127.0.0.1:{server.port}"}))
    configured = stage.configured(f'[fetch]\ndeny = ["[::1]"]\n[proxy]\nurl = "{kind}://localhost:{server.port}"\n')
    assert is_denied(stage.client(broker=configured).fetch("http://host.invalid/"))
    assert server.connections == 0


def test_with_an_allow_list_a_fetch_cannot_name_another_proxy(stage, server):
    client = stage.client(broker=stage.configured('[fetch]\nallow = ["host.invalid"]\n'))
    assert is_denied(client.fetch("http://host.invalid/", proxy={"url": server.url}))
    assert server.connections == 0


#: A timeout, which the tests let pass with the broker's clock, and a longer time for its questions.
SECONDS, QUESTION_SECONDS = 60, 600


@pytest.fixture
def broker(stage, faults):
    broker = stage.broker("--challenge-deadline-ms", str(QUESTION_SECONDS * 1000), environment=faults.environment)
    broker.pass_timeout = lambda: faults.pass_time(SECONDS + 1)
    return broker


@pytest.fixture
def scene(stage, broker):
    """A question that is open at one program."""
    server, password = stage.protected("bob")
    asked = stage.client()
    call = asked.start("fetch/run", {"url": server.url})
    challenge = asked.challenges.get(timeout=30)

    class Scene:
        def answer(self):
            asked.reply(challenge, password_answer("bob", password))
            assert asked.wait(call)["result"]["status"] == 200

    scene = Scene()
    scene.server, scene.asked, scene.broker = server, asked, broker
    return scene


def waiting(client):
    return client.call("server/status")["result"]["fetches"]["waiting"]


def test_rule_20_fetch_waiting_says_what_a_fetch_waits_for(stage, scene):
    other, quiet = stage.client(), stage.client()
    call = other.start("fetch/run", {"url": scene.server.url, "notify": ["waiting"]})
    told = other.notifications.get(timeout=30)
    assert told["method"] == "fetch/waiting"
    params = told["params"]
    assert params["requestId"] == call and params["for"] == "question" and params["sinceMs"] >= 0
    assert params["protectionSpace"]["realm"] == "Staff" and params["protectionSpace"]["port"] == scene.server.port
    [listed] = other.call("fetch/list")["result"]["fetches"]
    assert listed["state"] == "waiting" and listed["sinceMs"] >= params["sinceMs"]
    assert {name: listed[name] for name in ("fetchId", "for", "protectionSpace")} == {
        name: params[name] for name in ("fetchId", "for", "protectionSpace")}
    other_call = quiet.start("fetch/run", {"url": scene.server.url})
    eventually(lambda: waiting(scene.asked) == 2, "the fetch does not wait")
    scene.answer()
    assert other.wait(call)["result"]["status"] == quiet.wait(other_call)["result"]["status"] == 200
    assert all(told["method"] != "fetch/waiting" for told in list(quiet.notifications.queue))
    # The client was also notified of the login that followed.
    assert other.notifications.get(timeout=30)["params"]["for"] == "trial"


@pytest.mark.parametrize("words, is_told", [(["-v", "-m", "5"], True), (["-m", "2"], False)])
def test_the_helper_times_out_and_reports_the_reason_of_the_wait_with_v(scene, words, is_told):
    """Without a terminal, only -v shows it."""
    done = Shell(scene.broker).run("fetch", *words, scene.server.url)
    line = f"* waiting for the answer to another program's login prompt for {scene.server.url} (Staff)"
    assert done.returncode == 28 and done.stderr.decode().splitlines().count(line) == done.stderr.count(b"waiting") == is_told


def test_the_helper_reports_a_wait_at_a_terminal(scene):
    terminal = Shell(scene.broker).at_terminal("fetch", scene.server.url)
    terminal.expect("* waiting for the answer to another program's login prompt")
    scene.answer()
    terminal.expect("welcome")
    assert terminal.end() == 0


PROCESSES = 50
# A separate process that uses only the standard library: it makes one fetch, gives the answers, and prints the result.
CLIENT = textwrap.dedent("""
    import json, socket, sys
    path, url, answer = sys.argv[1], sys.argv[2], json.loads(sys.stdin.read())
    wire = socket.socket(socket.AF_UNIX)
    wire.connect(path)
    stream = wire.makefile("rwb")
    def send(message):
        stream.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\\n")
        stream.flush()
    send({"id": "hello", "method": "initialize", "params": {"client": {"name": "one of many"}, "protocolVersion": 1,
          "capabilities": {"challenge": {}}}})
    send({"id": "fetch", "method": "fetch/run", "params": {"url": url}})
    asked = []
    for line in stream:
        message = json.loads(line)
        if message.get("method") == "auth/challenge":
            asked.append(message["params"]["previousFailureCount"])
            send({"id": message["id"], "result": answer})
        elif message.get("id") == "fetch":
            break
    kind = message.get("error", {}).get("data", {}).get("kind")
    print(json.dumps({"asked": asked, "status": message.get("result", {}).get("status"), "kind": kind}), flush=True)
""")


class Gate:
    """Delays the server's first response until `count` requests without a credential have arrived."""

    def __init__(self, server, count):
        self.inner, self.count, self.server = server.handler, count, server
        server.handler = self

    def __call__(self, request):
        if request.authorization is None:
            eventually(lambda: len(self.server.requests) >= self.count, lambda: f"{len(self.server.requests)} requests", 30)
        return self.inner(request)


def test_rule_20_fifty_processes_are_asked_once(stage):
    server, password = stage.protected()
    Gate(server, PROCESSES)
    words = [sys.executable, "-c", CLIENT, stage.broker().socket]
    processes = [subprocess.Popen([*words, f"{server.url}/{number}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                 for number in range(PROCESSES)]
    for process in processes:
        process.stdin.write(json.dumps(password_answer("bob", password)))
        process.stdin.close()
        process.stdin = None
    outcomes = [json.loads(process.communicate(timeout=60)[0]) for process in processes]
    assert [outcome["status"] for outcome in outcomes] == [200] * PROCESSES
    assert sum(len(outcome["asked"]) for outcome in outcomes) == 1
    assert len(server.requests) == 2 * PROCESSES
    assert set(server.authorizations) == {None, basic("bob", password)}


def test_a_shell_script_makes_the_whole_exchange(stage):
    """With socat and jq, as SPECIFICATION.md shows it: a client that cannot answer repeats the fetch with a credential."""
    server, password = stage.protected(body=b"the page")
    broker = stage.broker()
    script = textwrap.dedent("""
        set -eu
        ask() { socat -t 60 - "UNIX-CONNECT:$SOCKET"; }
        jq -nc --arg url "$URL" '{jsonrpc:"2.0",id:1,method:"fetch/run",params:{url:$url}}' | ask | jq -c '.result | .status, .unanswered' >&2
        jq -c --arg url "$URL" '{jsonrpc:"2.0",id:2,method:"fetch/run",params:{url:$url,credential:.}}' | ask | jq -r .result.body.value
    """)
    done = subprocess.run(["bash", "-c", script], env={**os.environ, "SOCKET": broker.socket, "URL": server.url},
                          input=json.dumps({"type": "password", "user": "bob", "password": password}), capture_output=True, text=True, timeout=60)
    assert done.stdout == "the page\n", done.stderr
    assert done.stderr == '401\n[{"scheme":"Basic","reason":"noRespondent"}]\n'
    assert server.authorizations == [None, None, basic("bob", password)]


def test_sigusr1_forgets_the_session_and_sighup_reads_the_configuration(stage):
    server, password = stage.protected()
    broker = stage.broker()
    client = stage.client(answer=lambda params: password_answer("bob", password))
    assert client.fetch(server.url)["result"]["exchanges"] == 2
    assert client.fetch(server.url)["result"]["exchanges"] == 1
    broker.process.send_signal(signal.SIGUSR1)
    wait_for(lambda: client.call("server/status")["result"]["session"]["entries"] == 0)
    assert client.fetch(server.url)["result"]["exchanges"] == 2
    configuration = written(broker.home / ".config" / "watchword", {"config.toml": ""}) / "config.toml"
    private(configuration, '[fetch]\ndeny = ["127.0.0.1"]\n')
    broker.process.send_signal(signal.SIGHUP)
    wait_for(lambda: client.fetch(server.url).get("error", {}).get("data", {}).get("kind") == "denied")
    configuration.write_text('[fetch]\ndeny = [\n')
    broker.process.send_signal(signal.SIGHUP)
    wait_for(lambda: "configuration not changed" in broker.log)
    assert client.fetch(server.url)["error"]["data"]["kind"] == "denied"
    configuration.unlink()
    broker.process.send_signal(signal.SIGHUP)
    wait_for(lambda: client.fetch(server.url).get("result", {}).get("status") == 200)
