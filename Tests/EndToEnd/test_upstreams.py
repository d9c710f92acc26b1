"""The choice of the upstream proxy: rules per host, failover, PAC files and the settings of the desktop."""
import os
import socket

import pytest

from rig.bodies import eventually
from rig.client import password_answer
from rig.forwarding import ForwardProxy
from rig.local_fronts import exchange, open_proxy, run
from rig.scripted import response
from rig.servers import free_port


@pytest.fixture
def origin(stage):
    return stage.server(lambda request: response(200, b"page"))


@pytest.fixture
def proxies(stage):
    """Makes proxies that forward everything."""
    return lambda count, check=lambda request: None: [stage.server(ForwardProxy(check)) for _ in range(count)]


def rule(hosts, *use):
    return f"[[proxy.rule]]\nhosts = {hosts!r}\nuse = {list(use)!r}\n"


def dead():
    """The URL of a proxy that does not run."""
    return f"http://127.0.0.1:{free_port()}"


def fetched(client, url, **params):
    reply = client.fetch(url, **params)
    assert "result" in reply, reply
    return reply["result"]


def test_each_host_uses_the_proxies_of_its_rule(stage, origin, proxies):
    first, second = proxies(2)
    broker = stage.configured(
        f'[proxy]\nurl = "{dead()}"\nexcept = ["127.0.0.1"]\n' + rule(["a.test"], first.url) + rule([".test"], second.url))
    client = stage.client(broker=broker)
    for host in ["a.test", "b.test", "127.0.0.1"]:
        assert fetched(client, f"http://{host}:{origin.port}/{host}")["status"] == 200
    assert [request.target.rsplit("/", 1)[1] for request in first.requests] == ["a.test"]
    assert [request.target.rsplit("/", 1)[1] for request in second.requests] == ["b.test"]
    assert [request.target for request in origin.requests] == ["/a.test", "/b.test", "/127.0.0.1"]
    assert client.fetch(f"http://c.example:{origin.port}/")["error"]["data"]["kind"] == "proxyFailed"


def test_the_next_proxy_is_used_if_one_cannot_be_reached(stage, origin, proxies):
    alive, = proxies(1)
    broken = dead()
    broker = stage.configured(rule([".test"], broken, alive.url))
    client = stage.client(broker=broker)
    body = {"type": "string", "value": "sent once"}
    assert fetched(client, f"http://a.test:{origin.port}/", method="POST", body=body)["status"] == 200
    assert [(request.method, request.body) for request in origin.requests] == [("POST", b"sent once")]
    status = client.call("server/status", {})["result"]["upstreams"]
    assert status["unreachable"] == [broken] and status["rules"] == 1
    # The failed proxy comes last now, although it runs again.
    revived = socket.create_server(("127.0.0.1", int(broken.rsplit(":", 1)[1])))
    assert fetched(client, f"http://a.test:{origin.port}/")["status"] == 200
    assert len(alive.requests) == 2
    revived.setblocking(False)
    with revived, pytest.raises(BlockingIOError):
        revived.accept()


def test_without_direct_no_server_is_contacted_directly(stage, origin):
    broker = stage.configured(rule([".test", "127.0.0.1"], dead(), dead()))
    error = stage.client(broker=broker).fetch(f"{origin.url}/")["error"]
    assert error["data"]["kind"] == "proxyFailed" and not origin.requests
    broker = stage.configured(rule([".test", "127.0.0.1"], dead(), "direct"))
    assert fetched(stage.client(broker=broker), f"{origin.url}/")["status"] == 200


def test_a_login_for_one_proxy_is_not_sent_to_the_next(stage, origin, proxies):
    """The first proxy asks for a login, and ends before it gets one: the answer goes nowhere else."""
    password = stage.secret()
    second, = proxies(1)

    def ask(request):
        first.listener.shutdown(socket.SHUT_RDWR)
        first.listener.close()
        return response(407, b"", 'Proxy-Authenticate: Basic realm="gate"', "Connection: close")

    first, = proxies(1, ask)
    asked = []
    client = stage.client(
        answer=lambda challenge: asked.append(challenge) or password_answer("bob", password),
        broker=stage.configured(rule([".test"], first.url, second.url)))
    assert fetched(client, f"http://a.test:{origin.port}/")["status"] == 200
    assert [challenge["protectionSpace"]["port"] for challenge in asked] == [first.port]
    assert second.requests and all(request.header("Proxy-Authorization") is None for request in second.requests)
    assert all(request.header("Proxy-Authorization") is None for request in origin.requests)


@pytest.mark.parametrize("status", [407, 502, 503])
def test_a_refusal_of_the_proxy_does_not_lead_to_the_next(stage, origin, proxies, status):
    first, = proxies(1, lambda request: response(status, b"no", 'Proxy-Authenticate: Basic realm="gate"'))
    second, = proxies(1)
    broker = stage.configured(rule([".test"], first.url, second.url))
    client = stage.client(answer=lambda challenge: {"action": "continue"}, broker=broker)
    assert fetched(client, f"http://a.test:{origin.port}/")["status"] == status
    client.fetch(f"https://a.test:{origin.port}/")
    assert len(first.requests) == 2 and not second.requests and not origin.requests


def test_a_request_that_a_server_may_have_received_is_not_sent_again(stage, origin, proxies):
    """The proxy keeps the connection of a first request, and ends with the second one."""
    def answer(request):
        if request.method == "GET":
            return response(200, b"kept")
        first.listener.shutdown(socket.SHUT_RDWR)
        first.listener.close()
        raise OSError("the proxy ends")

    first, = proxies(1, answer)
    second, = proxies(1)
    client = stage.client(broker=stage.configured(rule([".test"], first.url, second.url)))
    assert fetched(client, f"http://a.test:{origin.port}/")["status"] == 200
    reply = client.fetch(f"http://a.test:{origin.port}/", method="POST", body={"type": "string", "value": "pay"})
    assert "error" in reply and not second.requests, reply
    assert fetched(client, f"http://a.test:{origin.port}/")["status"] == 200 and len(second.requests) == 1


def test_tunnels_of_programs_use_the_rules(stage, tls, nginx_tls, proxies):
    alive, = proxies(1)
    broker = stage.configured(rule(["localhost"], dead(), alive.url))
    done = run(
        broker, "curl", "-sS", "--cacert", str(tls / "ca.pem"), "--noproxy", "", f"https://localhost:{nginx_tls.port}/open.txt",
        options=[])
    assert done.stderr == b"" or b"port" in done.stderr, done
    client = stage.client(broker=broker)
    address, token = open_proxy(client)
    assert token and address


# PAC files

def pac(stage, text, mode=0o600):
    path = stage.folder / "proxy.pac"
    path.write_text(text)
    path.chmod(mode)
    return f'[proxy]\npac = "file://{path}"\n'
