"""Failing system calls of the broker, single and repeated: each fetch gets its one reply, or its connection ends; the next
fetch works as before; no password is where it must not be; no client waits forever.

Every errno is one that the call can really return. WATCHWORD_FAULTS=all makes each single call fail, not only some.
"""
import os
import signal
import socket
import time

import pytest

from rig.bodies import eventually
from rig.broker import program
from rig.client import password_answer
from rig.faults import Faults
from rig.scripted import ScriptedServer, basic, basic_server, response

pytestmark = pytest.mark.tier3("many runs of one conversation")

ALL = os.environ.get("WATCHWORD_FAULTS") == "all"
PLACES = 8  # the number of single calls of each kind that fail, unless all do
MEMORY_PLACES = 24
EVERY = [2, 3, 7] if ALL else [3]
WITHIN = 20

# The errors that the calls of each kind can return.
ERRORS = {
    "accept": ["EAGAIN", "ECONNABORTED", "EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "EINTR", "EPERM", "EPROTO", "ENETDOWN"],
    "read": ["EINTR", "EAGAIN", "ECONNRESET", "ENOMEM", "ETIMEDOUT"],
    "write": ["EINTR", "EAGAIN", "EPIPE", "ECONNRESET", "ENOBUFS", "ENOMEM"],
    "read-file": ["EINTR", "EIO"],
    "write-file": ["EINTR", "EIO", "ENOSPC", "EDQUOT"],
    "getsockopt": ["ENOBUFS", "ENOMEM", "EPERM"],
    "mlock": ["ENOMEM", "EPERM", "EAGAIN"],
    "open": ["EMFILE", "ENFILE", "ENOMEM", "EACCES", "EIO", "ENOSPC", "EINTR"],
    "socket": ["EMFILE", "ENFILE", "ENOBUFS", "ENOMEM"],
}


PAGE = b"x" * 3000
LARGE = 1_200_000  # the body of a challenge that is buffered in a file


class Scene:
    """A broker whose calls can be made to fail, and three servers: one requires a password, one requires a token too long for
    the pages that secrets share, each time on a new connection and with a large body, and one must receive neither."""

    def __init__(self, stage, library):
        self.stage, self.library, self.count = stage, library, 0
        self.password, self.token = stage.secret(), stage.secret()
        self.long_token = self.token + "t" * 8000
        self.server = stage.server(basic_server("bob", self.password))
        self.tokens = stage.server(ScriptedServer(self.ask_for_token))
        self.page = stage.server(ScriptedServer(lambda request: response(200, PAGE)))
        stage.allow(self.password, self.server)
        stage.allow(self.token, self.tokens)
        self.start()

    def ask_for_token(self, request):
        if request.authorization == "Bearer " + self.long_token:
            return response(200, b"welcome", "Connection: close")
        return response(401, b"x" * LARGE, 'WWW-Authenticate: Bearer realm="T"', "Connection: close")

    def start(self):
        self.count += 1
        self.faults = Faults(self.library, self.stage.folder / f"faults{self.count}")
        self.broker = self.stage.broker(environment=self.faults.environment)

    @property
    def is_alive(self):
        return self.broker.process.poll() is None

    def attempt(self):
        """Makes three requests: a page behind a password, a body in steps, and a page behind a token. Returns the replies, with
        `None` for those before which the connection ended; waiting longer than the limit is a failure."""
        try:
            client = self.stage.client(
                broker=self.broker, delivery=None, answer=lambda challenge: password_answer("bob", self.password))
        except (ConnectionRefusedError, FileNotFoundError):
            return [None]
        hello = {"client": {"name": "rig"}, "protocolVersion": 1, "capabilities": {"challenge": {"delivery": "request"}}}
        token = {"type": "token", "token": self.long_token, "persistence": "none"}
        wanted = [
            ("initialize", hello), ("fetch/run", {"url": self.server.url, "timeoutMs": 10_000}),
            ("fetch/run", {"url": self.tokens.url, "credential": token, "timeoutMs": 10_000}),
            ("fetch/start", {"url": self.page.url, "timeoutMs": 10_000}),
            ("fetch/start", {"url": self.tokens.url, "auth": {"interaction": "none"}, "timeoutMs": 10_000})]
        replies = [self.call(client, *one) for one in wanted]
        for begun, length in zip(replies[3:], [len(PAGE), LARGE]):
            replies += self.take_body(client, begun, length)
        # After the session is cleared, the next attempt is challenged again; a second reply would have arrived before this one.
        replies.append(self.call(client, "session/clear", {}))
        ids = [message["id"] for side, message in client.messages if side == "broker" and "method" not in message]
        assert len(ids) == len(set(ids)), "a request was answered twice"
        client.close()
        return replies

    def take_body(self, client, begun, length):
        """Returns the replies to each `fetch/read` until the body ends or the fetch fails."""
        replies, count = [begun], 0
        while replies[-1] and "result" in replies[-1]:
            replies.append(self.call(client, "fetch/read", {"fetchId": begun["result"]["fetchId"]}))
            part = (replies[-1] or {}).get("result")
            if part:
                count += len(part["data"]["value"])
                if part["eof"]:
                    assert count == length, "an incomplete body was reported as complete"
                    break
        return replies[1:]

    @staticmethod
    def call(client, method, params):
        try:
            call = client.start(method, params)
        except OSError:
            return None
        with client.arrived:
            came = client.arrived.wait_for(lambda: client.closed.is_set() or call in client.replies, WITHIN)
            assert came, f"neither a reply to {method} nor the end of the connection"
            return client.replies.get(call)

    def check(self, replies, where):
        """Checks that no reply claims more than is true, and that no server received a secret of another one."""
        for reply in replies:
            if reply and "status" in reply.get("result", {}):
                assert reply["result"]["status"] in (200, 401), (where, reply)
                assert reply["result"]["status"] == 401 or reply["result"]["body"]["value"] == "welcome", (where, reply)
        assert set(self.server.authorizations) <= {None, basic("bob", self.password)}, where
        assert set(self.tokens.authorizations) <= {None, "Bearer " + self.long_token}, where
        assert set(self.page.authorizations) <= {None}, where

    def check_well(self, where):
        """Checks that everything works without faults."""
        assert self.is_alive, (where, self.broker.log[-1500:])
        replies = self.attempt()
        assert all(reply and "result" in reply for reply in replies), (where, replies)
        assert [reply["result"]["status"] for reply in replies[1:3]] == [200, 200], (where, replies)


@pytest.fixture
def scene(stage, fault_library):
    return Scene(stage, fault_library)


def places(count, most):
    """Returns which of the calls are to fail."""
    return range(1, count + 1) if ALL else sorted({1 + number * count // most for number in range(min(most, count))})


def counted(scene, kind):
    scene.attempt()
    with scene.faults.failing(kind, 0, "EINTR"):
        scene.attempt()
        return scene.faults["seen"]


@pytest.mark.parametrize("kind", ERRORS)
def test_a_call_fails(scene, kind):
    descriptors, count = None, counted(scene, kind)
    assert count > 0
    for error in ERRORS[kind]:
        for nth in places(count, PLACES):
            with scene.faults.failing(kind, nth, error) as faults:
                replies = scene.attempt()
                assert scene.is_alive, (kind, nth, error, scene.broker.log[-1500:])
                assert faults["failed"] == 1 or nth > count // 2, (kind, nth, error, "nothing has failed")
            scene.check(replies, (kind, nth, error))
            if error == "EINTR" and "file" not in kind and kind != "open":
                assert all(reply and "result" in reply for reply in replies), (kind, nth, error, replies)
        scene.check_well((kind, error))
        descriptors = descriptors or scene.broker.descriptors
    eventually(lambda: scene.broker.descriptors <= descriptors + 2, lambda: f"{scene.broker.descriptors} of {descriptors}")


@pytest.mark.parametrize("kind", ERRORS)
def test_calls_fail_again_and_again(scene, kind):
    counted(scene, kind)
    for every in EVERY:
        for error in ERRORS[kind]:
            with scene.faults.failing(kind, every, error, every=True):
                scene.check(scene.attempt(), (kind, every, error))
            scene.check_well((kind, every, error))


def test_the_broker_ends_when_it_can_accept_no_client_for_a_minute(scene):
    """It exits so that its service manager starts it again. Its clock jumps between the failures."""
    client = scene.stage.client(broker=scene.broker, delivery=None)
    assert client.call("ping")["result"] == {}
    with scene.faults.failing("accept", 1, "EPERM", every=True) as faults, socket.socket(socket.AF_UNIX) as waiting:
        waiting.connect(scene.broker.socket)
        for number in range(1, 7):
            eventually(lambda: faults["failed"] >= number, lambda: scene.broker.log[-1500:])
            assert client.call("ping")["result"] == {}, "existing clients are served"
            scene.faults.sleep(9)
        eventually(lambda: faults["failed"] >= 7 or not scene.is_alive, lambda: scene.broker.log[-1500:])
        scene.faults.sleep(9)
        assert scene.broker.process.wait(WITHIN) == 1
    said = scene.broker.log.splitlines()[-1]
    assert said.startswith("watchwordd: cannot accept connections: ") and "start the broker again" in said
    client.close()


def test_memory_that_was_not_locked_is_locked_when_possible(scene):
    """Secrets that the kernel does not lock are not remembered; after a temporary failure, remembering works again."""
    client = scene.stage.client(
        broker=scene.broker, answer=password_answer("bob", scene.password))
    with scene.faults.failing("mlock", 1, "ENOMEM", every=True):
        for _ in range(3):
            assert client.fetch(scene.server.url)["result"]["status"] == 200
    assert len(client.asked) == 3
    for _ in range(3):
        assert client.fetch(scene.server.url)["result"]["status"] == 200
    assert len(client.asked) == 4


# The ways in which GLib, libstdc++ and the broker itself end a process without memory.
ENDS = {-signal.SIGTRAP, -signal.SIGILL, -signal.SIGABRT}
# Swift's runtime, where it does not check the result of malloc, reads from address 0.
ENDS_OF_SWIFT = {*ENDS, -signal.SIGSEGV}


def fail_memory(scene, kind, nth):
    """Returns whether the broker is still running."""
    with scene.faults.failing(kind, nth, "ENOMEM") as faults:
        replies = scene.attempt()
        has_failed = faults["failed"] == 1
    scene.check(replies, (kind, nth))
    # An exiting process closes its sockets before its parent can wait for it.
    if has_failed and None in replies:
        time.sleep(0.1)
    if not scene.is_alive:
        code = scene.broker.process.wait(WITHIN)
        is_of_swift = kind == "memory" or scene.faults.is_of_swift(program("watchwordd"))
        assert code in (ENDS_OF_SWIFT if is_of_swift else ENDS), (kind, nth, code, scene.broker.log[-1500:])
        # The next broker uses the same path: files of the previous broker do not prevent its start.
        scene.broker.start()
        return False
    scene.check_well((kind, nth))
    return True


@pytest.mark.parametrize("kind, most", [("mmap", 4), ("memory", MEMORY_PLACES), ("library-memory", MEMORY_PLACES)])
def test_memory_allocation_fails(scene, kind, most):
    """The broker reports that it has no memory, or exits at once; it does not continue with missing data."""
    count = counted(scene, kind)
    # The first calls of a library are made for the first message, whose request is not known yet.
    chosen = {*places(count, most), *(range(1, 30, 2) if kind == "library-memory" else [])}
    lived = [fail_memory(scene, kind, nth) for nth in sorted(chosen)]
    print(f"{kind}: {count} calls, {len(lived)} failed, and {sum(lived)} times the broker continued")


@pytest.mark.parametrize("kind", [*ERRORS, "mmap", "memory", "library-memory"])
def test_a_call_fails_at_the_start(scene, kind):
    """The broker starts, or reports why it cannot."""
    assert scene.broker.stop() == 0

    def start(nth, error):
        with scene.faults.failing(kind, nth, error) as faults:
            try:
                scene.broker.start(WITHIN)
            except AssertionError:
                code = scene.broker.process.wait(WITHIN)
                assert code in {1, 3, 127, *ENDS_OF_SWIFT}, (kind, nth, error, code, scene.broker.log[-1500:])
                return faults["seen"]
            seen = faults["seen"]
        scene.check_well((kind, nth, error))
        assert scene.broker.stop() == 0, (kind, nth, error)
        return seen

    errors = ERRORS.get(kind, ["ENOMEM"])
    count = start(0, errors[0])
    print(kind, count)
    for error in errors if ALL else errors[:2]:
        for nth in places(count, PLACES):
            start(nth, error)
