"""Servers and proxies that disconnect after each byte of a response with a challenge: one reply to each fetch, a result only if
the response, or the header section of a challenge, was complete, and no password but the fetch's own at any server."""
import itertools
import os

import pytest

from rig.bodies import eventually
from rig.client import password_answer
from rig.streams import Cut, DyingProxy, DyingServer, DyingTlsServer, Passwords, number_of
from rig.scripted import basic

AT_ONCE = 64
# The step between the cuts in tunnels, most of whose data is the TLS handshake.
STRIDE = int(os.environ.get("WATCHWORD_CUT_STRIDE", "13"))
KINDS = 64  # from the specification: exclusive connections, such as a tunnel that a password has opened
DEATHS = {"connectionLost", "malformedResponse"}


class Run:
    """All fetches of one test; `end` contains the final reply of each number."""

    def __init__(self, stage, url, passwords, proxy=None, at_proxy=None, kinds=DEATHS, warm=2, **more):
        self.broker = stage.broker(*more.pop("options", []))
        self.passwords, self.at_proxy, self.url, self.proxy, self.kinds = passwords, at_proxy, url, proxy, kinds
        self.asked, self.numbers, self.more = [], itertools.count(), more
        self.client = stage.client(answer=self.answer, broker=self.broker)
        # A first run opens the files that are opened once, and measures the lengths of the responses.
        assert all(self.whole(self.fetch()) for _ in range(warm))
        self.descriptors = self.broker.descriptors

    def answer(self, challenge):
        space = challenge["protectionSpace"]
        number = int(space["realm"][1:])
        self.asked.append((number, space["isProxy"]))
        return password_answer("pat", self.at_proxy(number)) if space["isProxy"] else password_answer("bob", self.passwords(number))

    def start(self, number):
        url = self.url(number)
        return self.client.start("fetch/run", {"url": url, **({"proxy": {"url": self.proxy}} if self.proxy else {}), **self.more})

    def fetch(self):
        number = next(self.numbers)
        return number, self.client.wait(self.start(number))

    def whole(self, one):
        number, reply = one
        if "error" in reply:
            assert reply["error"]["data"]["kind"] in self.kinds, reply
            return False
        assert reply["result"]["status"] == 200, reply
        assert reply["result"]["body"] == {"type": "string", "value": f"page {number:05}"}, reply
        return True

    def cut(self, server, cuts):
        """Yields the cut of each number, and whether its fetch returned a result."""
        found, waiting = [], []
        for cut in cuts:
            number = next(self.numbers)
            server.cuts[number] = cut
            waiting.append((number, cut, self.start(number)))
            if len(waiting) == AT_ONCE:
                number, cut, call = waiting.pop(0)
                found.append((number, cut, self.whole((number, self.client.wait(call)))))
        return found + [(number, cut, self.whole((number, self.client.wait(call)))) for number, cut, call in waiting]

    def check(self, server, proxy=None):
        """Checks that no secret is at a wrong place, that nothing is left, and that the next fetch works."""
        assert self.whole(self.fetch())
        for request in server.requests:
            number = number_of(request)
            assert request.header("Proxy-Authorization") is None
            said = request.authorization or ""
            assert said in ("", basic("bob", self.passwords(number))) or f'realm="r{number:05}"' in said, request.raw
        for request in proxy.requests if proxy else []:
            said = request.header("Proxy-Authorization")
            assert said in (None, basic("pat", self.at_proxy(number_of(request)))), request.raw
            assert request.method != "CONNECT" or request.authorization is None
        self.client.call("ping")
        replies = [message["id"] for side, message in self.client.messages if side == "broker" and "method" not in message]
        assert len(replies) == len(set(replies)), "a request was answered twice"
        watch = lambda: self.client.call("server/status")["result"]["engine"]["running"]  # noqa: E731
        eventually(lambda: watch() == 0, "transfers are still running")
        # The broker notices that an idle connection was closed when the next fetch would use it. Fetches that overlapped have left
        # connections that are open at both ends.
        most = self.descriptors + 2 + AT_ONCE // 2
        eventually(lambda: self.broker.descriptors <= most, lambda: f"{self.broker.descriptors} of {self.descriptors}")


def every(what, length, stride=1):
    """Yields the cuts of a response after each byte, and after the last."""
    return [Cut(what, at, resets) for resets in [False, True] for at in [*range(0, length, stride), length]]


def check_outcomes(found, whole):
    """Checks that responses with at least this many bytes give a result. A reset can overtake the last bytes."""
    for number, cut, came in found:
        assert came == (cut.at >= whole) or (cut.at >= whole and cut.resets), (number, cut, came)


def needed(server, what):
    """Returns the number of bytes that are needed of a response: of a challenge, the header section."""
    return server.lengths[what] - len({401: b"please log in", 407: b"who are you?"}.get(what, b""))


def passwords(stage, server=None):
    made = Passwords(stage.secret())
    if server:
        stage.allow(made.secret, server)
    return made


@pytest.mark.parametrize("way", ["basic", "chunks", "digest"])
def test_a_server_dies_after_each_byte(stage, way):
    own = passwords(stage)
    server = stage.server(DyingServer(own.check("Digest" if way == "digest" else "Basic", chunks=way == "chunks")))
    stage.allow(own.secret, server)
    run = Run(stage, lambda number: f"{server.url}/{number:05}/page", own)
    found = run.cut(server, every(401, server.lengths[401]))
    check_outcomes(found, needed(server, 401))
    # A fetch whose 401 was cut in its header section is not asked about, and sends no password.
    dead = {number for number, _, came in found if not came}
    said = {number_of(request) for request in server.requests if request.authorization}
    assert dead.isdisjoint(number for number, _ in run.asked) and dead.isdisjoint(said)
    # A chunked body is complete with its zero-sized chunk (RFC 9112 section 8), whether or not the final line feed arrives.
    check_outcomes(run.cut(server, every(200, server.lengths[200])), server.lengths[200] - (way == "chunks"))
    run.check(server)


@pytest.mark.parametrize("what", [407, 401, 200])
def test_a_proxy_dies_after_each_byte(stage, what):
    own, of_proxy = passwords(stage), passwords(stage)
    server, proxy = stage.server(DyingServer(own.check("Basic"))), stage.server(DyingProxy(of_proxy))
    for one in [server, proxy]:
        stage.allow(own.secret, one)  # plain http: the login for the server passes through the proxy
    stage.allow(of_proxy.secret, proxy)
    run = Run(stage, lambda number: f"http://server.test:{server.port}/{number:05}/page", own, proxy.url, of_proxy,
              DEATHS | {"proxyFailed"})
    found = run.cut(proxy, every(what, proxy.lengths[what]))
    check_outcomes(found, needed(proxy, what))
    dead = {number for number, _, came in found if not came}
    if what == 407:
        assert dead.isdisjoint(number for number, _ in run.asked)
        assert dead.isdisjoint(number_of(request) for request in server.requests), "the server has received the request"
    if what == 401:
        assert dead.isdisjoint(number_of(request) for request in server.requests if request.authorization)
    run.check(server, proxy)


def test_a_proxy_dies_after_each_byte_of_a_tunnel(stage, certificates):
    own, of_proxy = passwords(stage), passwords(stage)
    # Each fetch has a host of its own, by which the proxy identifies it.
    certificates.authority.issue("tunnel", ["*.tunnel.test"]).write(certificates.folder, "tunnel")
    server = stage.server(DyingTlsServer(certificates, "tunnel", own.check("Basic")))
    proxy = stage.server(DyingProxy(of_proxy))
    stage.allow(own.secret, server)
    stage.allow(of_proxy.secret, proxy)
    run = Run(stage, lambda number: f"https://s{number:05}.tunnel.test:{server.port}/{number:05}/page", own, proxy.url, of_proxy,
              DEATHS | {"proxyFailed", "tlsFailed"}, warm=KINDS + 2, options=["--ca-file", str(certificates / "ca.pem")])
    found = run.cut(proxy, every(407, proxy.lengths[407]))
    check_outcomes(found, needed(proxy, 407))
    dead = {number for number, _, came in found if not came}
    assert dead.isdisjoint(number for number, _ in run.asked)
    assert dead.isdisjoint(number_of(request) for request in proxy.requests if request.header("Proxy-Authorization"))
    # Each byte of "HTTP/1.1 200 Connection established", the rest in steps, because its length varies a little.
    start, length = 40, proxy.lengths["tunnel"]
    assert not any(came for _, _, came in run.cut(proxy, every("tunnel", start)))
    for number, cut, came in run.cut(proxy, [cut for cut in every("tunnel", length, STRIDE) if cut.at > start]):
        assert not came or cut.at > length - 200, (cut, length)
    run.check(server, proxy)


@pytest.mark.parametrize("what", [401, 200])
def test_a_server_dies_after_each_byte_over_tls(stage, certificates, what):
    own = passwords(stage)
    server = stage.server(DyingTlsServer(certificates, handler=own.check("Basic")))
    stage.allow(own.secret, server)
    run = Run(stage, lambda number: f"{server.url}/{number:05}/page", own, kinds=DEATHS | {"tlsFailed"},
              options=["--ca-file", str(certificates / "ca.pem")])
    found = run.cut(server, every(what, server.lengths[what], 3))
    check_outcomes(found, needed(server, what))
    if what == 401:
        dead = {number for number, _, came in found if not came}
        assert dead.isdisjoint(number for number, _ in run.asked)
    run.check(server)
