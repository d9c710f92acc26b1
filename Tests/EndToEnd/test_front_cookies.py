"""Each site has cookies of its own: under its name below localhost, and at a Unix socket; none at the shared addresses."""
import socket
import subprocess

import pytest

from rig.local_fronts import exchange, receive_all
from rig.scripted import response


def open_named(client, url, **site):
    """Returns the address, and the name with its port, of a front of `url`."""
    result = client.call("front/open", {"site": {"url": url, **site}})["result"]
    host, port = result["listen"].rsplit(":", 1)
    return (host, int(port)), result["name"]


def get(address, host, *fields):
    lines = ["GET /x?y HTTP/1.1", f"Host: {host}", "Connection: close", *fields]
    return exchange(address, ("\r\n".join(lines) + "\r\n\r\n").encode())


@pytest.fixture
def setting(stage):
    return stage.server(lambda request: response(200, b"page", "Set-Cookie: id=1; Secure; HttpOnly; SameSite=Strict; Path=/"))


def test_cookies_pass_under_the_name_only(stage, setting):
    address, name = open_named(stage.client(), setting.url)
    assert name.endswith(f".localhost:{address[1]}") and name.startswith("127-0-0-1-")
    received = get(address, name, "Cookie: id=1")
    assert b"Set-Cookie: id=1; HttpOnly; SameSite=Strict; Path=/\r\n" in received
    assert setting.requests[-1].header("Cookie") == "id=1" and setting.requests[-1].header("Host") == f"127.0.0.1:{setting.port}"
    for host in [f"127.0.0.1:{address[1]}", name.upper().replace("LOCALHOST", "localhost")]:
        received = get(address, host, "Cookie: other=1")
        isShared = host.startswith("127.0.0.1")
        assert received.startswith(b"HTTP/1.1 200 ") and (b"Set-Cookie" not in received) == isShared
        assert (setting.requests[-1].header("Cookie") is None) == isShared


def test_a_site_gets_no_cookie_of_another_one(stage, setting, tmp_path):
    """With curl, which finds the names by itself, and one file of cookies."""
    other = stage.server(lambda request: response(200, b"page"))
    client = stage.client()
    (address, name), (_, second) = open_named(client, setting.url), open_named(client, other.url)
    jar = str(tmp_path / "jar")
    for url in [f"http://{name}/", f"http://{name}/", f"http://{second}/", f"http://127.0.0.1:{address[1]}/", other.url]:
        subprocess.run(["curl", "-sS", "-f", "--noproxy", "*", "-c", jar, "-b", jar, url], check=True, timeout=30, capture_output=True)
    assert [request.header("Cookie") for request in setting.requests] == [None, "id=1", None]
    assert [request.header("Cookie") for request in other.requests] == [None, None]


def test_a_browser_is_led_to_the_name(stage, setting):
    address, name = open_named(stage.client(), setting.url)
    received = get(address, f"127.0.0.1:{address[1]}", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Site: none")
    assert received.startswith(b"HTTP/1.1 307 ") and f"Location: http://{name}/x?y\r\n".encode() in received
    assert not setting.requests
    assert get(address, name, "Sec-Fetch-Mode: navigate", "Sec-Fetch-Site: none").startswith(b"HTTP/1.1 200 ")


def test_the_name_of_another_site_is_refused(stage, setting):
    client = stage.client()
    (address, _), (_, second) = open_named(client, setting.url), open_named(client, "http://other.example")
    port = address[1]
    for host in [f"{second.split(':')[0]}:{port}", f"x.localhost:{port}", second]:
        assert get(address, host).startswith(b"HTTP/1.1 403 ")
    assert not setting.requests


def test_a_unix_socket_passes_cookies(stage, setting, tmp_path):
    client = stage.client()
    path = str(tmp_path / "site.sock")
    tmp_path.chmod(0o700)
    assert "name" not in client.call("front/open", {"site": {"url": setting.url}, "listen": path})["result"]
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nCookie: id=1\r\nConnection: close\r\n\r\n")
        received = receive_all(connection)
    assert b"Set-Cookie: id=1" in received and setting.requests[0].header("Cookie") == "id=1"
