"""Servers, proxies and clients that die: servers that disconnect after each byte of a response with a challenge, and clients that end while
they are asked. One reply to each fetch, a result only if the response was complete, no password but the fetch's own at any server, no
other respondent instead of a client that is gone, and all resources released."""
import itertools
import json
import os
import statistics
import subprocess
import time

import pytest

from rig import audit
from rig.bodies import eventually
from rig.broker import PROGRAMS
from rig.client import password_answer
from rig.scripted import basic, response
from rig.streams import Cut, DyingProxy, DyingServer, DyingTlsServer, Passwords, number_of
from rig.subjects import HALF, WHOLLY, DyingClient

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


CLIENTS, CLIENTS_AT_ONCE = 10_000, 1000
KEPT = 64  # the connections to one server that libcurl keeps open, whether or not the client still exists
# Relative to the resources of the broker after a tenth of the clients, and to the duration of a fetch without load.
KILOBYTES, SLOWER = 4096, 40


def crowd(broker, clients):
    words = [PROGRAMS / "crowd.py", broker.socket, clients, CLIENTS_AT_ONCE]
    return subprocess.Popen(["/usr/bin/python3", *map(str, words)], stdout=subprocess.PIPE, text=True)


def heard(process):
    text, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    told = json.loads(text)
    assert told["wrong"] == []
    return told


def settled(client, broker, descriptors):
    """Whether no resources of the clients are left."""
    def rest():
        status = client.call("server/status")["result"]
        return [status["challenges"]["pending"], status["fetches"]["running"], status["fetches"]["waiting"], status["engine"]["running"],
                status["connections"] - 1, status["session"]["entries"]]

    eventually(lambda: not any(rest()), lambda: f"{rest()} remain", 30)
    eventually(lambda: broker.descriptors <= descriptors, lambda: f"{broker.descriptors} descriptors, and {descriptors} before")


def latencies(client, url, until):
    times = []
    while not until(len(times)):
        begin = time.perf_counter()
        assert client.fetch(url)["result"]["status"] == 200
        times.append(time.perf_counter() - begin)
    return times


@pytest.mark.tier3("ten thousand clients, and compares times")
def test_ten_thousand_clients_that_die_in_the_middle_of_their_challenges(stage):
    # Little logging, so that it is not measured.
    broker = stage.broker("--log-level", "warning")
    server = stage.server(lambda request: response(200, b"open"))
    client = stage.client(broker=broker)
    descriptors = broker.descriptors + KEPT
    heard(crowd(broker, CLIENTS // 10))
    settled(client, broker, descriptors)
    kilobytes = broker.resident_kilobytes
    idle = statistics.median(latencies(client, server.url, lambda count: count == 200))
    process = crowd(broker, CLIENTS)
    times = latencies(client, server.url, lambda _: process.poll() is not None)
    told = heard(process)
    assert told["challenges"] == CLIENTS * 3 // 4 and told["requests"] >= CLIENTS * 3 // 4, told
    settled(client, broker, descriptors)
    grown = broker.resident_kilobytes - kilobytes
    middle, worst = statistics.median(times) / idle, max(times)
    print(f"a fetch: {idle * 1000:.2f} ms idle, {middle:.1f} times as long meanwhile (of {len(times)}), {worst:.2f} s at worst; "
          f"{grown} kB more")
    assert grown < KILOBYTES
    assert middle < SLOWER and worst < 10, (middle, worst)
    assert client.fetch(server.url)["result"]["status"] == 200


RUNS = 5


def stored(stage, **more):
    """A broker whose session has bob's password for a server."""
    broker = stage.broker()
    server, secret = stage.protected()
    observer = stage.client(broker=broker, **more)
    space = {"protocol": "http", "host": "127.0.0.1", "port": server.port, "realm": "Staff", "authenticationMethod": "httpBasic"}
    reply = observer.call("credential/store", {
        "protectionSpace": space, "credential": {"type": "password", "user": "bob", "password": secret, "persistence": "forSession"}})
    assert "result" in reply, reply
    return broker, server, observer


def settle_all(observer):
    """Waits until no fetch and no request is in flight."""
    def rest():
        status = observer.call("server/status")["result"]
        return [status["fetches"]["running"], status["challenges"]["pending"], status["engine"]["running"], status["connections"] - 1]

    eventually(lambda: not any(rest()), lambda: f"{rest()} remain")


@pytest.mark.parametrize("way", WHOLLY + HALF)
def test_rule_26_nothing_is_sent_when_a_client_dies(stage, way):
    broker, server, observer = stored(stage)
    for run in range(RUNS):
        # Several fetches that wait for the same answer: none of them inherits the question, or the credential that it proposed.
        dying = DyingClient(broker.socket, way, *(f"{server.url}/{run}/{number}" for number in range(3)))
        asked = dying.wait_for("auth/challenge")
        assert asked["params"]["proposedCredential"]["source"] == "session"
        eventually(lambda: len(server.requests) == 3 * (run + 1), "the server has not received a request of every fetch")
        dying.die()
        if way == "half":
            assert dying.statuses() == [401, 401, 401]
            dying.socket.close()
        settle_all(observer)
    assert server.authorizations == [None] * 3 * RUNS
    # Records are written in order.
    audit.clear(observer, [1])
    audit.wait_for(lambda: "sessionCleared" in audit.kinds(broker))
    assert "credentialUsed" not in audit.kinds(broker)


@pytest.mark.parametrize("way", WHOLLY)
def test_a_question_of_a_disconnected_client_reaches_no_agent(stage, way):
    broker, server, observer = stored(stage)
    observer.call("agent/register", {"name": "desk"})
    for run in range(RUNS):
        dying = DyingClient(broker.socket, way, f"{server.url}/{run}")
        dying.wait_for("auth/challenge")
        dying.die()
        settle_all(observer)
    assert observer.challenges.empty() and server.authorizations == [None] * RUNS


def test_rule_21_the_question_of_a_client_that_cannot_answer_goes_to_an_agent(stage):
    broker, server, agent = stored(stage)
    agent.call("agent/register", {"name": "desk"})
    for run, (answer, status) in enumerate([({"action": "continue"}, 401), ({"action": "default"}, 401)]):
        dying = DyingClient(broker.socket, "half", f"{server.url}/{run}")
        dying.wait_for("auth/challenge")
        dying.die()
        asked = agent.challenges.get(timeout=30)
        assert asked["params"]["proposedCredential"]["source"] == "session"
        agent.reply(asked, answer)
        assert dying.statuses()[0] == status
        dying.socket.close()
    assert server.authorizations == [None, None]


@pytest.mark.parametrize("way", WHOLLY + HALF)
def test_a_client_that_dies_before_its_reply_to_can_authenticate_sends_nothing(stage, way):
    broker, server, observer = stored(stage)
    for run in range(RUNS):
        dying = DyingClient(
            broker.socket, way, f"{server.url}/{run}", subscription={"mode": "classic", "asksCanAuthenticate": True})
        dying.wait_for("auth/canAuthenticate")
        dying.die()
        if way == "half":
            assert dying.statuses() == [401]
            dying.socket.close()
        settle_all(observer)
    assert server.authorizations == [None] * RUNS


def test_a_deadline_sends_nothing(stage):
    broker = stage.configured("[limits]\nchallenge-deadline-s = 1\n")
    server, secret = stage.protected()
    client = stage.client(broker=broker)
    space = {"protocol": "http", "host": "127.0.0.1", "port": server.port}
    client.call("credential/store", {
        "protectionSpace": space, "credential": {"type": "password", "user": "bob", "password": secret, "persistence": "forSession"}})
    client.call("auth/subscribe", {"mode": "everything"})
    assert client.fetch(server.url)["result"]["status"] == 401
    assert server.authorizations == [None]
    audit.wait_for(lambda: "challengeUnanswered" in audit.kinds(broker))
    unanswered = [event for event in audit.events(broker) if event["kind"] == "challengeUnanswered"]
    assert [(event["by"], event["reason"]) for event in unanswered] == [("client", "deadline")]
    # The answer was received: the stored credential is sent.
    client.answer = lambda challenge: {"action": "default"}
    assert client.fetch(server.url)["result"]["status"] == 200


def test_an_agent_that_dies_sends_nothing(stage):
    broker, server, observer = stored(stage)
    for run in range(RUNS):
        dying = DyingClient(broker.socket, "half", f"{server.url}/{run}")
        dying.wait_for("auth/challenge")
        agent = stage.agent(broker=broker)
        dying.die()
        agent.challenges.get(timeout=30)
        agent.close()
        assert dying.statuses() == [401]
        dying.socket.close()
        settle_all(observer)
    assert server.authorizations == [None] * RUNS


def test_an_answer_before_the_end_counts(stage):
    broker, server, observer = stored(stage)
    dying = DyingClient(broker.socket, "half", server.url)
    asked = dying.wait_for("auth/challenge")
    dying.socket.sendall(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {
        "action": "credential", "credential": {"type": "proposed"}}}).encode() + b"\n")
    dying.die()
    assert dying.statuses() == [200]
    dying.socket.close()
