"""The agent's connection to a broker that misbehaves: the agent keeps reading, and reconnects."""
import contextlib
import json
import socket
import sys
import time

import pytest

from rig.broker import ROOT

sys.path.insert(0, str(ROOT / "contrib" / "agent"))

from gi.repository import GLib  # noqa: E402
from watchword_agent import connection as subject  # noqa: E402


@pytest.fixture
def until(monkeypatch):
    """Runs the main loop until the condition is true."""
    # The process is pytest's, so it stays dumpable.
    monkeypatch.setattr(subject.hardening, "hide", lambda: None)
    monkeypatch.setattr(subject.hardening, "show_for_greeting", lambda: None)

    def wait(condition, seconds=10):
        end, context = time.monotonic() + seconds, GLib.MainContext.default()
        while not condition():
            assert time.monotonic() < end, "the condition did not become true"
            if not context.iteration(False):
                time.sleep(0.005)

    return wait


class Made:
    """A connection, and what it reported."""

    def __init__(self, path, on_message=lambda message: None):
        self.ready, self.lost, self.mishaps = 0, [], []
        self.connection = subject.BrokerConnection(str(path), [("initialize", {})], on_message)
        self.connection.on_ready = lambda: setattr(self, "ready", self.ready + 1)
        self.connection.on_lost, self.connection.on_mishap = self.lost.append, self.mishaps.append


class OneBroker:
    """A broker that accepts a connection on demand."""

    def __init__(self, path):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()
        self.listener.setblocking(False)
        self.wire, self.buffer = None, b""

    def accepted(self):
        with contextlib.suppress(BlockingIOError):
            self.wire = self.listener.accept()[0]
            self.wire.setblocking(False)
        return self.wire

    def came(self):
        """Returns the next message, or None."""
        with contextlib.suppress(BlockingIOError):
            self.buffer += self.wire.recv(65536)
        line, found, rest = self.buffer.partition(b"\n")
        if not found:
            return None
        self.buffer = rest
        return json.loads(line)

    def say(self, message):
        self.wire.sendall(json.dumps(message).encode() + b"\n")

    def close(self):
        for one in (self.wire, self.listener):
            if one:
                one.close()


@pytest.fixture
def broker(tmp_path):
    with contextlib.closing(OneBroker(tmp_path / "broker.sock")) as broker:
        yield broker


def greeted(until, made, broker):
    made.connection.start()
    until(broker.accepted)
    got = []
    until(lambda: (message := broker.came()) and not got.append(message))
    broker.say({"jsonrpc": "2.0", "id": got[0]["id"], "result": {}})
    until(lambda: made.ready)


def test_a_message_that_cannot_be_handled_is_answered_and_the_next_is_handled(until, broker, tmp_path):
    def handle(message):
        handled.append(message["method"])
        if message["method"] == "auth/challenge":
            raise ValueError("unexpected challenge")

    handled = []
    made = Made(tmp_path / "broker.sock", handle)
    greeted(until, made, broker)
    broker.say({"jsonrpc": "2.0", "id": [], "result": {}})
    broker.say({"jsonrpc": "2.0", "id": 7, "method": "auth/challenge", "params": {}})
    broker.say({"jsonrpc": "2.0", "method": "auth/cancelled", "params": {}})
    until(lambda: handled == ["auth/challenge", "auth/cancelled"])
    assert made.mishaps == ["cannot handle a message of the broker: ValueError: unexpected challenge"]
    answer = broker.came()
    assert (answer["id"], answer["error"]["code"]) == (7, -32603)
    assert not made.lost


def test_a_restarted_broker_is_detected_before_the_next_attempt(until, tmp_path):
    path = tmp_path / "broker.sock"
    made = Made(path)
    made.connection._wait_ms = 3_600_000
    made.connection.start()
    assert len(made.lost) == 1 and "No such file" in made.lost[0]
    with contextlib.closing(OneBroker(path)) as broker:
        until(broker.accepted)


def test_connecting_continues_when_no_descriptor_is_left(until, broker, tmp_path, monkeypatch):
    def none_left(*_):
        raise OSError(24, "Too many open files")

    made = Made(tmp_path / "broker.sock")
    with monkeypatch.context() as patched:
        patched.setattr(subject.socket, "socket", none_left)
        made.connection.start()
    assert "Too many open files" in made.lost[0]
    until(broker.accepted)


@pytest.mark.parametrize("moment", ["before the reply", "after the reply"])
def test_a_connection_lost_at_any_moment_is_retried(until, broker, tmp_path, moment):
    made = Made(tmp_path / "broker.sock")
    if moment == "after the reply":
        greeted(until, made, broker)
    else:
        made.connection.start()
        until(broker.accepted)
    first, broker.wire = broker.wire, None
    first.close()
    until(broker.accepted)
    assert len(made.lost) == 1
