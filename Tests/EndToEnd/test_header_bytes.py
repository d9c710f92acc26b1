"""Field values are opaque bytes (RFC 9110 section 5.5): those that are not UTF-8 are passed on and returned as they were received."""
import base64
import subprocess

import pytest

from rig.client import password_answer
from rig.local_fronts import exchange, open_proxy
from rig.scripted import DigestCheck, basic_server, response
from rig.terminal import Shell

# In ISO 8859-1, as the scripted server sends them, and in UTF-8.
VALUES = [b"\xe9", b"\xc3\xa9", b"\xfc\xc3\xbc", b"\xf4\x8f\xbf\xa9", b"\x80\xff\xc3"]


def get(url, *fields, end=b""):
    return b"\r\n".join([f"GET {url} HTTP/1.1".encode(), b"Host: x", b"Connection: close", *fields]) + b"\r\n\r\n" + end


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_a_proxy_front_passes_bytes_on_in_both_directions(stage, value):
    fields = [b"A: " + value, b'ETag: "' + value + b'"', b"Set-Cookie: a=" + value + b"; Path=/", b"WWW-Authenticate: X a=" + value]
    server = stage.server(lambda request: b"\r\n".join([b"HTTP/1.1 200 " + value, b"Transfer-Encoding: chunked", b"Trailer: X-Sum", *fields])
                          + b"\r\n\r\n2\r\nok\r\n0\r\nX-Sum: " + value + b"\r\n\r\n")
    address, _ = open_proxy(stage.client())
    sent = [b'If-None-Match: "' + value + b'"', b"Cookie: a=" + value, b"A: " + value, b"Authorization: X " + value, b"TE: trailers"]
    received = exchange(address, get(server.url, *sent))
    assert received.startswith(b"HTTP/1.1 200 " + value + b"\r\n")
    assert all(field + b"\r\n" in received for field in [*fields, b"X-Sum: " + value])
    asked = server.requests[0].raw.split(b"\r\n")
    assert all(field in asked for field in sent[:4])


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_a_site_front_passes_bytes_on_in_both_directions(stage, value):
    server = stage.server(lambda request: b"HTTP/1.1 200 X\r\nContent-Length: 2\r\nLocation: " + server.url.encode() + b"/" + value
                          + b"\r\nSet-Cookie: a=" + value + b"; Secure\r\n\r\nok")
    result = stage.client().call("front/open", {"site": {"url": server.url}})["result"]
    host, port = result["listen"].rsplit(":", 1)
    name = result["name"].encode()
    received = exchange((host, int(port)), b"GET / HTTP/1.1\r\nHost: " + name + b"\r\nConnection: close\r\nCookie: a=" + value
                        + b"\r\nReferer: http://" + name + b"/" + value + b"\r\n\r\n")
    assert b"\r\nSet-Cookie: a=" + value + b"\r\n" in received
    assert b"\r\nLocation: http://" + name + b"/" + value + b"\r\n" in received
    asked = server.requests[0].raw.split(b"\r\n")
    assert b"Cookie: a=" + value in asked and b"Referer: " + server.url.encode() + b"/" + value in asked


def test_a_front_takes_large_values(stage):
    """The limits are those of the bytes."""
    value = b"\xe9" * 40_000
    server = stage.server(lambda request: b"HTTP/1.1 200 X\r\nContent-Length: 0\r\nA: " + value + b"\r\n\r\n")
    address, _ = open_proxy(stage.client())
    received = exchange(address, get(server.url, b"A: " + value))
    assert b"\r\nA: " + value + b"\r\n" in received and b"\r\nA: " + value in server.requests[0].raw


@pytest.mark.parametrize("algorithm", ["MD5", "SHA-256-sess"])
@pytest.mark.parametrize("more", [
    {"realm": "B\xfcro"}, {"realm": "B\xc3\xbcro"}, {"nonce_end": "\xfc"}, {"opaque": "\xfc"}, {"realm": "\xfc", "userhash": True},
    {"realm": "\xfc", "nonce_end": "\xe9", "opaque": "\xc3", "announces": True, "proof": "right"}], ids=str)
def test_rules_d8_and_x2_digest_returns_and_hashes_the_bytes_received(stage, algorithm, more):
    password = stage.secret()
    check = DigestCheck("bob", password, algorithm=algorithm, **more)
    server = stage.server(check)
    asked = []
    client = stage.client(answer=lambda challenge: asked.append(challenge) or password_answer("bob", password))
    replies = [client.fetch(server.url + path)["result"] for path in ["/x", "/y"]]
    assert [(reply["status"], reply["exchanges"]) for reply in replies] == [(200, 2), (200, 1)] and check.problems == []
    if "\xfc" in more.get("realm", "") or "\xc3" in more.get("realm", ""):
        name = "B\xfcro" if "ro" in more["realm"] else "\xfc"
        assert asked[0]["protectionSpace"]["realm"] == asked[0]["offers"][0]["realm"] == name


def test_rules_r10_and_x2_realms_in_two_encodings_are_two_spaces(stage):
    """The login of one is not sent for the other."""
    password = stage.secret()
    servers = {"/1": basic_server("bob", password, "B\xfcro"), "/2": basic_server("bob", password, "B\xc3\xbcro")}
    server = stage.server(lambda request: servers[request.path].handler(request))
    stage.allow(password, server)
    asked = []
    client = stage.client(answer=lambda challenge: asked.append(challenge) or password_answer("bob", password))
    for path in ["/1", "/2", "/1", "/2"]:
        assert client.fetch(server.url + path, auth={"preemptive": False})["result"]["status"] == 200
    assert [challenge["protectionSpace"]["realm"] for challenge in asked] == ["B\xfcro"] * 2
    for each in servers.values():
        each.close()


@pytest.mark.parametrize("location, target", [
    (b"/\xe9", "/%E9"), (b"/\xc3\xa9", "/%C3%A9"), (b"?\xfc#\xe9", "/?%FC"), (b"/\xc3\xa9\xe9", "/%C3%A9%E9")], ids=str)
def test_a_redirect_leads_to_the_bytes_of_its_location_as_with_curl(stage, location, target):
    server = stage.server(lambda request: response(200) if request.target.upper() == target
                          else b"HTTP/1.1 302 X\r\nContent-Length: 0\r\nLocation: " + location + b"\r\n\r\n")
    done = Shell(stage.broker()).run("fetch", "-sSfL", server.url + "/")
    assert done.returncode == 0, done
    subprocess.run(["curl", "-sSfL", "--noproxy", "*", server.url + "/"], capture_output=True, timeout=30, check=True)
    assert [request.target for request in server.requests] == ["/", target, "/", target.lower()]


def test_cookies_of_a_fetch_keep_their_bytes(stage):
    server = stage.server(lambda request: response(200) if request.path == "/there"
                          else response(302, b"", "Location: /there", "Set-Cookie: a=\xe9; Path=/"))
    assert stage.client().fetch(server.url, headers=[["Cookie", "b=\xe9"]])["result"]["status"] == 200
    assert server.requests[1].header("Cookie") == "a=\xe9; b=\xc3\xa9"


def test_clients_read_iso_8859_1(stage):
    server = stage.server(lambda request: b"HTTP/1.1 200 d\xe9j\xe0\r\nContent-Length: 0\r\nA: \xe9\xc3\xa9\r\nB: \xc3\xa9\r\n\r\n")
    result = stage.client().fetch(server.url)["result"]
    assert (result["reason"], dict(result["headers"])) == ("déjà", {"Content-Length": "0", "A": "éÃ©", "B": "é"})
    encoded = {"reason": base64.b64encode(b"d\xe9j\xe0").decode(), "headers": {"1": base64.b64encode(b"\xe9\xc3\xa9").decode()}}
    assert result["rawBytes"] == encoded


def test_clients_get_the_bytes_of_a_challenge(stage):
    server = stage.server(lambda request: b"HTTP/1.1 401 X\r\nContent-Length: 0\r\nWWW-Authenticate: Hoba a=\"\xe9\"\r\n\r\n")
    asked = []
    client = stage.client(answer=lambda challenge: asked.append(challenge) or {"action": "continue"})
    client.fetch(server.url)
    raw = {"headers": {"1": base64.b64encode(b'Hoba a="\xe9"').decode()}}
    assert asked[0]["failureResponse"]["rawBytes"] == raw
    assert (asked[0]["offers"][0]["raw"], asked[0]["offers"][0]["params"]) == ('Hoba a="é"', {"a": "é"})


def test_the_helper_writes_the_bytes_as_curl_does(stage, tmp_path):
    server = stage.server(lambda request: b"HTTP/1.1 302 d\xe9j\xe0\r\nContent-Length: 2\r\nA: \xe9\xc3\xa9\r\nLocation: /\xe9\r\n\r\nok")
    shell = Shell(stage.broker())
    options = ["-s", "-i", "-D", str(tmp_path / "head"), "-w", "%header{A} %{redirect_url} é", server.url + "/"]
    curl = subprocess.run(["curl", "--noproxy", "*", *options], capture_output=True, timeout=30, check=True).stdout
    head = (tmp_path / "head").read_bytes()
    assert b"A: \xe9\xc3\xa9\r\n" in head
    done = shell.run("fetch", *options)
    assert (done.stdout.replace(b"%E9", b"%e9"), (tmp_path / "head").read_bytes()) == (curl, head)


def test_text_of_a_client_is_sent_in_utf_8(stage):
    """Whatever characters it contains."""
    text = "é\U0010ffe9\U0010ff80"
    server = stage.server(lambda request: response(200))
    assert stage.client().fetch(server.url, headers=[["A", text]])["result"]["status"] == 200
    assert b"A: " + text.encode() in server.requests[0].raw.split(b"\r\n")
