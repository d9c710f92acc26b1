"""Each scheme with HTTP and HTTPS proxies, forwarded and tunnelled; SOCKS; and the destinations of credentials."""
from rig.client import password_answer
from rig.forwarding import ForwardProxy
from rig.scripted import basic, response
from rig.tls import TlsServer


def answers(user, password, asked, **more):
    def answer(challenge):
        asked.append(challenge)
        return password_answer(user, password, **more)

    return answer


def spaces(asked):
    return [(one["protectionSpace"]["authenticationMethod"], one["protectionSpace"].get("proxyType")) for one in asked]


def configured(stage, url, *options, extra=""):
    """A broker whose configuration names the proxy."""
    return stage.configured(f'[proxy]\nurl = "{url}"\n{extra}', *options)


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
