"""A proxy that accepts the login, and then refuses the tunnel: the login is right, so there is one question."""
import pytest

from rig.client import password_answer
from rig.forwarding import ForwardProxy
from rig.local_fronts import exchange, open_proxy
from rig.scripted import basic, response


@pytest.fixture(params=[403, 502])
def proxy(request, stage):
    """A broker and a proxy with Basic that connects to no server; `asked` counts the questions."""
    password = stage.secret()
    right = basic("bob", password)
    proxy = stage.server(ForwardProxy(lambda connect: response(request.param) if connect.header("Proxy-Authorization") == right else response(
        407, b"", 'Proxy-Authenticate: Basic realm="Gate"')))
    stage.allow(password, proxy)
    proxy.asked, proxy.status = [], request.param
    proxy.client = stage.client(
        broker=stage.configured(f'[proxy]\nurl = "{proxy.url}"\n'),
        answer=lambda challenge: proxy.asked.append(challenge) or password_answer("bob", password))
    return proxy


def test_a_second_fetch_asks_no_question(proxy):
    for _ in range(2):
        assert proxy.client.fetch("https://intranet.test/")["error"]["data"]["kind"] == "proxyFailed"
    assert len(proxy.asked) == 1


def test_a_second_tunnel_of_a_front_asks_no_question(proxy):
    assert "result" in proxy.client.call("agent/register", {"name": "tests"})
    address, _ = open_proxy(proxy.client)
    for _ in range(2):
        assert f" {proxy.status} ".encode() in exchange(address, b"CONNECT intranet.test:443 HTTP/1.1\r\nHost: x\r\n\r\n")
    assert len(proxy.asked) == 1
