"""The length and the target of a response must be unambiguous; and trailers after a body."""
import pytest
from rig.bodies import Download
from rig.client import password_answer
from rig.scripted import DigestCheck, ScriptedServer, response


def raw(status, *fields, body=b"ok"):
    return "\r\n".join([f"HTTP/1.1 {status} X", *fields]).encode() + b"\r\n\r\n" + body


@pytest.mark.parametrize("fields", [
    ["Content-Length: 2", "Content-Length: 3"], ["Content-Length: 2, 4"], ["Content-Length: +2"], ["Content-Length: 0x2"],
    ["Content-Length: -1"], ["Content-Length: 2 2"], ["Content-Length: 2,"],
])
@pytest.mark.parametrize("status", [200, 401, 302])
def test_ambiguous_lengths_are_malformed(stage, status, fields):
    more = {401: ['WWW-Authenticate: Basic realm="x"'], 302: ["Location: /there"], 200: []}[status]
    server = stage.server(ScriptedServer(lambda request: raw(status, *more, *fields)))
    asked = []
    client = stage.client(answer=lambda params: asked.append(params) or {"action": "continue"})
    assert client.fetch(server.url)["error"]["data"]["kind"] == "malformedResponse"
    assert Download(client, server.url).failure() == "malformedResponse"
    assert asked == [] and {request.target for request in server.requests} == {"/"}


@pytest.mark.parametrize("fields", [["Content-Length: 2", "Content-Length: 2"], ["Content-Length: 2, 2"]])
def test_a_repeated_equal_length_is_accepted(stage, fields):
    server = stage.server(ScriptedServer(lambda request: raw(200, *fields)))
    assert stage.client().fetch(server.url)["result"]["body"]["value"] == "ok"


@pytest.mark.parametrize("second", ["/there", "http://other.example/"])
def test_two_locations_are_malformed(stage, second):
    server = stage.server(ScriptedServer(
        lambda request: raw(302, "Location: /there", f"Location: {second}", "Content-Length: 2")))
    assert stage.client().fetch(server.url)["error"]["data"]["kind"] == "malformedResponse"
    assert len(server.requests) == 1


@pytest.mark.parametrize("field", ["Location:", "Location:   "])
def test_an_empty_location_is_not_a_redirect(stage, field):
    server = stage.server(ScriptedServer(lambda request: raw(302, field, "Content-Length: 2")))
    result = stage.client().fetch(server.url)["result"]
    assert (result["status"], result["body"]["value"], len(server.requests)) == (302, "ok", 1)


def test_the_limit_of_the_body_is_for_the_final_one(stage):
    password, large = stage.secret(), b"x" * 100_000

    def handle(request):
        if request.target == "/":
            return response(302, large, "Location: /staff")
        if request.authorization is None:
            return response(401, large, 'WWW-Authenticate: Basic realm="Staff"')
        return response(200, b"in")

    server = stage.server(ScriptedServer(handle))
    stage.allow(password, server)
    client = stage.client(answer=lambda params: password_answer("bob", password, persistence="none"))
    assert client.fetch(server.url, maxBodyBytes=10)["result"]["body"]["value"] == "in"
    assert Download(client, server.url, maxBodyBytes=10).attach().read() == b"in"
    # A challenge without an answer is final.
    quiet = stage.client(delivery=None)
    assert quiet.fetch(server.url, maxBodyBytes=10)["error"]["data"]["kind"] == "tooLarge"
    assert quiet.fetch(server.url, maxBodyBytes=100_000)["result"]["status"] == 401


def trailing(check):
    """Sends the Authentication-Info of `check` after the body."""
    def handle(request):
        head, body = check(request).split(b"\r\n\r\n", 1)
        lines = head.split(b"\r\n")
        after = [line for line in lines if line.startswith(b"Authentication-Info")]
        if not after:
            return head + b"\r\n\r\n" + body
        before = [line for line in lines if line not in after and not line.startswith(b"Content-Length")]
        before += [b"Transfer-Encoding: chunked", b"Trailer: Authentication-Info"]
        return b"\r\n".join(before) + b"\r\n\r\n%x\r\n" % len(body) + body + b"\r\n0\r\n" + after[0] + b"\r\n\r\n"

    return ScriptedServer(handle)


@pytest.fixture
def digest(stage):
    def make(in_trailer, **more):
        password, asked = stage.secret(), []
        check = DigestCheck("bob", password, **more)
        server = stage.server(trailing(check) if in_trailer else ScriptedServer(check))
        client = stage.client(answer=lambda params: asked.append(params) or password_answer("bob", password))
        return check, server, client, asked

    return make


LARGE = b"0123456789abcdef" * 20_000


@pytest.mark.parametrize("body", [b"welcome", LARGE], ids=["small", "large"])
@pytest.mark.parametrize("in_steps", [False, True])
@pytest.mark.parametrize("in_trailer, qop, proof", [
    (True, "auth", "wrong"), (True, "auth-int", "wrong"), (True, "auth-int", "of another body"), (False, "auth-int", "of another body"),
    (False, "auth-int", "wrong")])
def test_rule_d15_a_wrong_proof_after_or_about_the_body_fails_the_fetch(digest, body, in_steps, in_trailer, qop, proof):
    check, server, client, asked = digest(in_trailer, qop=qop, proof=proof, body=body)
    for number in [1, 2]:
        if in_steps:
            download = Download(client, server.url)
            attached = download.try_to_attach()
            # A small body may have ended before.
            if "result" in attached.reply:
                attached.read()
            assert download.failure() == "serverNotAuthentic"
        else:
            # Above the inline limit, the body is still arriving when the result is sent.
            error = client.fetch(server.url, maxInlineBodyBytes=1 << 20)["error"]
            assert error["data"]["kind"] == "serverNotAuthentic"
        assert len(asked) == number, "nothing is remembered"


@pytest.mark.parametrize("body", [b"welcome", LARGE], ids=["small", "large"])
@pytest.mark.parametrize("in_steps", [False, True])
@pytest.mark.parametrize("qop", ["auth", "auth-int"])
def test_rule_d14_and_d15_a_right_proof_and_the_next_nonce_after_the_body_are_used(digest, body, in_steps, qop):
    check, server, client, asked = digest(True, qop=qop, proof="right", announces=True, body=body)
    for _ in range(3):
        if in_steps:
            download = Download(client, server.url)
            assert download.attach().read() == body
            assert download.completed()["bodyBytes"] == len(body)
        else:
            assert client.fetch(server.url)["result"]["status"] == 200
    assert len(asked) == 1 and len(server.requests) == 4
    assert check.counts == {f"nonce{number}": 1 for number in range(1, 4)} and check.problems == []
