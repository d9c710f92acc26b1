"""Each scheme with HTTP and HTTPS proxies, forwarded and tunnelled; SOCKS; and the destinations of credentials."""
import pytest
from rig.client import password_answer
from rig.forwarding import ForwardProxy
from rig.scripted import basic, basic_server, response
from rig.tls import TlsServer


def answers(user, password, asked, **more):
    def answer(challenge):
        asked.append(challenge)
        return password_answer(user, password, **more)

    return answer


def spaces(asked):
    return [(one["protectionSpace"]["authenticationMethod"], one["protectionSpace"].get("proxyType")) for one in asked]


@pytest.mark.parametrize("way", ["basic", "digest", "tls-basic", "tls-digest"])
@pytest.mark.parametrize("target", ["http", "https"])
def test_squid(stage, squid, account, tls, nginx, nginx_tls, way, target):
    broker, asked = stage.broker("--ca-file", str(tls / "ca.pem")), []
    client = stage.client(answer=answers(*account, asked), broker=broker)
    url = f"http://127.0.0.1:{nginx.port}" if target == "http" else f"https://localhost:{nginx_tls.port}"
    for count in [1, 2]:
        result = client.fetch(f"{url}/open.txt", proxy={"url": squid.url(way)})["result"]
        assert (result["status"], result["body"]["value"]) == (200, "open page\n")
        assert result["proxyAuth"]["user"] == account[0] and result["auth"] is None
        assert len(asked) == count, "an answer for a proxy that the client named is not stored"
    space = asked[0]["protectionSpace"]
    assert (space["host"], space["port"], space["isProxy"]) == ("localhost", squid.ports[way], True)
    assert spaces(asked[:1]) == [("httpBasic" if "basic" in way else "httpDigest", "https" if "tls" in way else "http")]


def configured(stage, url, *options, extra=""):
    """A broker whose configuration names the proxy."""
    return stage.configured(f'[proxy]\nurl = "{url}"\n{extra}', *options)


def test_the_session_remembers_the_login_of_the_configured_proxy(stage, squid, account, nginx):
    broker, asked = configured(stage, squid.url("basic")), []
    client = stage.client(answer=answers(*account, asked), broker=broker)
    results = [client.fetch(f"http://127.0.0.1:{nginx.port}/open.txt")["result"] for _ in range(3)]
    assert [result["exchanges"] for result in results] == [2, 1, 1] and len(asked) == 1
    assert [result["proxyAuth"]["source"] for result in results] == ["client", "session", "session"]


def proxy_asking(user, password, scheme="Basic"):
    """A proxy that records its requests, and forwards those of known users."""
    right = basic(user, password)
    told = []

    def check(request):
        told.append(request.header("Proxy-Authorization"))
        if told[-1] != right:
            return response(407, b"who are you?", f'Proxy-Authenticate: {scheme} realm="gate"')
        return None

    proxy = ForwardProxy(check)
    proxy.told = told
    return proxy


def test_rule_r13_a_407_of_a_server_is_a_response(stage):
    server = stage.server(lambda request: response(407, b"I am no proxy", 'Proxy-Authenticate: Basic realm="gate"'))
    proxy = stage.server(ForwardProxy())
    credential = {"type": "password", "user": "bob", "password": stage.secret()}
    client = stage.client(answer=lambda challenge: pytest.fail("unexpected challenge"))
    assert client.fetch(server.url, credential=credential)["result"]["status"] == 407
    # Behind a forwarding proxy the two cannot be told apart; a login for the server is still not used for the proxy.
    client = stage.client(answer=lambda challenge: {"action": "continue"})
    assert client.fetch(server.url, credential=credential, proxy={"url": proxy.url})["result"]["status"] == 407
    assert all(request.header("Proxy-Authorization") is None for request in [*server.requests, *proxy.requests])


def test_rule_24_no_stored_credential_goes_to_or_through_a_proxy_that_the_fetch_names(stage):
    """The session has a password for the same proxy, and one for the server: neither is sent through the proxy."""
    at_server, at_proxy = stage.secret(), stage.secret()
    server, proxy, other = stage.server(basic_server("bob", at_server)), stage.server(proxy_asking("pat", at_proxy)), stage.server(
        proxy_asking("pat", at_proxy))
    for place in [server, proxy]:
        stage.allow(at_server, place)
    stage.allow(at_proxy, proxy)
    # Behind a proxy, "localhost" is not this machine.
    url, asked = f"http://intranet.test:{server.port}/", []

    def answer(challenge):
        asked.append(challenge)
        return password_answer("pat", at_proxy) if challenge["protectionSpace"]["isProxy"] else password_answer("bob", at_server)

    client = stage.client(answer=answer, broker=configured(stage, proxy.url))
    assert client.fetch(url)["result"]["status"] == 200 and len(asked) == 2
    assert client.fetch(url)["result"]["exchanges"] == 1 and len(asked) == 2

    quiet = stage.client(answer=lambda challenge: asked.append(challenge) or {"action": "continue"}, broker=stage.brokers[0])
    assert quiet.fetch(url, proxy={"url": other.url})["result"]["status"] == 407
    assert other.told == [None] and asked[-1]["proposedCredential"] is None
    assert asked[-1]["persistenceAllowed"] == ["none"]
    # A fetch that names the configured proxy changes nothing.
    assert quiet.fetch(url, proxy={"url": proxy.url})["result"]["exchanges"] == 1


def test_the_fetchs_own_credential_for_the_proxy(stage):
    at_proxy = stage.secret()
    server, proxy = stage.server(lambda request: response(200, b"page")), stage.server(proxy_asking("pat", at_proxy))
    stage.allow(at_proxy, proxy)
    client = stage.client(answer=lambda challenge: pytest.fail("unexpected challenge"))
    credential = {"type": "password", "user": "pat", "password": at_proxy}
    result = client.fetch(server.url, proxy={"url": proxy.url, "credential": credential})["result"]
    assert result["status"] == 200 and result["proxyAuth"] == {"authenticationMethod": "httpBasic", "source": "explicit", "user": "pat"}
    named = proxy.url.replace("://", f"://pat:{at_proxy}@")
    assert client.fetch(server.url, proxy={"url": named})["result"]["status"] == 200
    assert proxy.told[0] is None, "nothing is sent before the proxy's challenge"


def test_no_proxy_rules(stage):
    server, proxy = stage.server(lambda request: response(200, b"page")), stage.server(ForwardProxy())
    client = stage.client(broker=configured(stage, proxy.url, extra='except = ["localhost"]\n'))
    assert client.fetch(server.url)["result"]["status"] == 200 and len(proxy.requests) == 1
    assert client.fetch(server.url, proxy="none")["result"]["status"] == 200 and len(proxy.requests) == 1
    assert client.fetch(server.url.replace("127.0.0.1", "localhost"))["result"]["status"] == 200 and len(proxy.requests) == 1


def test_socks_with_a_password(stage, socks, account, nginx):
    url, proxy, asked = f"http://localhost:{nginx.port}/open.txt", {"url": f"socks5h://127.0.0.1:{socks.port}"}, []
    client = stage.client(answer=answers(*account, asked))
    result = client.fetch(url, proxy=proxy)["result"]
    assert result["status"] == 200 and spaces(asked) == [("httpBasic", "socks")]
    assert asked[0]["offers"] == [] and asked[0]["failureResponse"] is None

    wrong = []
    client = stage.client(answer=lambda one: wrong.append(one["previousFailureCount"]) or (
        password_answer(account[0], "wrong") if len(wrong) < 3 else {"action": "continue"}))
    reply = client.fetch(url, proxy=proxy)
    assert reply["error"]["data"]["kind"] == "proxyFailed" and wrong[0] == 0 and wrong[-1] >= 1


def test_socks_without_a_password(stage, dante, nginx):
    result = stage.client().fetch(f"http://localhost:{nginx.port}/open.txt", proxy={"url": f"socks5h://127.0.0.1:{dante.port}"})
    assert result["result"]["status"] == 200


def test_rule_l2_a_tunnel_of_one_login_serves_no_other_client(stage, tls, nginx_tls):
    at_proxy = stage.secret()
    proxy = stage.server(proxy_asking("pat", at_proxy))
    stage.allow(at_proxy, proxy)
    broker = stage.broker("--ca-file", str(tls / "ca.pem"))
    url, way = f"https://localhost:{nginx_tls.port}/open.txt", {"url": proxy.url}
    known = stage.client(answer=lambda challenge: password_answer("pat", at_proxy), broker=broker)
    assert known.fetch(url, proxy=way)["result"]["status"] == 200
    stranger = stage.client(answer=lambda challenge: {"action": "continue"}, broker=broker)
    assert stranger.fetch(url, proxy=way)["result"]["status"] == 407


def test_rules_2_and_r15_a_tunnel_raises_challenges_in_order_and_each_gets_its_own_credential(stage, certificates):
    """Every request is on a new connection, which raises the earlier challenges again; their answers stay valid."""
    at_server, at_proxy = stage.secret(), stage.secret()
    right = basic("bob", at_server)
    server = stage.server(TlsServer(
        certificates, "self-signed", lambda request: response(
            200 if request.authorization == right else 401, b"", 'WWW-Authenticate: Basic realm="Staff"'),
        client_authority=certificates / "ca.pem", first=True))
    proxy = stage.server(proxy_asking("pat", at_proxy))
    stage.allow(at_server, server)
    stage.allow(at_proxy, proxy)
    asked = []

    def answer(challenge):
        space = challenge["protectionSpace"]
        asked.append((space["authenticationMethod"], space["isProxy"]))
        if space["authenticationMethod"] == "serverTrust":
            leaf = space["serverTrust"]["chain"][0]
            return {"action": "credential", "credential": {"type": "trust", "spkiSha256": leaf["spkiSha256"], "persistence": "none"}}
        if space["authenticationMethod"] == "clientCertificate":
            files = {"certificate": str(certificates / "client.pem"), "privateKey": str(certificates / "client.key")}
            return {"action": "credential", "credential": {"type": "certificate", **files, "persistence": "none"}}
        return password_answer("pat", at_proxy) if space["isProxy"] else password_answer("bob", at_server)

    client = stage.client(answer=answer)
    client.call("auth/subscribe", {"mode": "everything"})
    assert client.fetch(server.url, proxy={"url": proxy.url})["result"]["status"] == 200
    assert asked == [("httpBasic", True), ("serverTrust", False), ("clientCertificate", False), ("httpBasic", False)]
    assert [request.authorization is not None for request in server.requests] == [False, True]
    assert len({request.connection for request in server.requests}) == 2
    assert all(request.header("Proxy-Authorization") is None for request in server.requests)
    assert all(request.method == "CONNECT" and request.authorization is None for request in proxy.requests)
    assert proxy.requests[-1].header("Proxy-Authorization")
