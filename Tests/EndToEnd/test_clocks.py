"""Unusual time: a broker that is stopped for a while, a wall clock that jumps, a suspended machine.

Timers use a monotonic clock. The tests change the clocks of the broker from outside; see rig/faults.py.
"""
import contextlib
import signal
import time

import pytest

from rig import audit
from rig.bodies import Download, eventually
from rig.client import password_answer
from rig.keyring import SCHEMA, description
from rig.scripted import ScriptedServer, response
from rig.streams import StreamServer, repeated

pytestmark = pytest.mark.tier3("stops the broker for seconds")

DAY = 86_400
JUMPS = {"a day on": DAY, "a day back": -DAY, "ten years on": 3650 * DAY, "before 1970": -100 * 365 * DAY}
DEADLINE = 1.5
# The allowed delay on a busy machine, in seconds.
LATE = 1.0


@pytest.fixture
def broker(stage, faults):
    yield stage.broker("--challenge-deadline-ms", str(int(DEADLINE * 1000)), environment=faults.environment)
    assert faults["wall_timers"] == 0, "a kernel timer of the broker uses the wall clock"


@contextlib.contextmanager
def stopped(broker):
    broker.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        broker.process.send_signal(signal.SIGCONT)


def one_reply(client, call):
    reply = client.wait(call)
    client.call("ping")
    replies = [message for side, message in client.messages if side == "broker" and message.get("id") == call and "method" not in message]
    assert replies == [reply]
    return reply


# SIGSTOP and SIGCONT.

def test_stopped_while_a_question_is_open(stage, faults):
    broker = stage.broker(environment=faults.environment)
    server, password = stage.protected()
    client = stage.client(broker=broker)
    call = client.start("fetch/run", {"url": server.url})
    challenge = client.challenges.get(timeout=10)
    with stopped(broker):
        client.reply(challenge, password_answer("bob", password))
        time.sleep(2)
        assert call not in client.replies
    assert one_reply(client, call)["result"]["status"] == 200
    assert len(server.requests) == 2


def test_stopped_beyond_the_deadline(stage, broker):
    """When the broker continues, both the answer and the deadline are due: one of them counts, and the other has no effect."""
    server, password = stage.protected()
    client = stage.client(broker=broker)
    for _ in range(3):
        call = client.start("fetch/run", {"url": server.url, "auth": {"useStorage": False}})
        challenge = client.challenges.get(timeout=10)
        with stopped(broker):
            client.reply(challenge, password_answer("bob", password))
            time.sleep(DEADLINE + 0.3)
        assert one_reply(client, call)["result"]["status"] in (200, 401)
    assert client.fetch(server.url, auth={"useStorage": False, "interaction": "none"})["result"]["status"] == 401


def test_stopped_while_a_server_answers(stage, broker):
    server = stage.server(ScriptedServer(lambda request: time.sleep(0.3) or response(200, b"late")))
    client = stage.client(broker=broker)
    call = client.start("fetch/run", {"url": server.url})
    hurried = client.start("fetch/run", {"url": server.url, "timeoutMs": 700})
    eventually(lambda: len(server.requests) == 2, "the requests were not sent")
    with stopped(broker):
        time.sleep(1.5)
    assert one_reply(client, call)["result"]["body"]["value"] == "late"
    reply = one_reply(client, hurried)
    assert reply.get("result", {}).get("status") == 200 or reply["error"]["data"]["kind"] == "timedOut", reply


def test_stopped_in_the_middle_of_a_body(stage, broker):
    server = stage.server(StreamServer(lambda request: repeated(64), send_buffer=1 << 18))
    download = Download(stage.client(broker=broker), server.url)
    count, parts = 0, download.attach().parts()
    for number, part in enumerate(parts):
        count += len(part)
        if number in (3, 10, 30):
            with stopped(broker):
                time.sleep(0.3)
    assert count == 64 << 20 and download.completed()["bodyBytes"] == count


# The wall clock

@pytest.mark.parametrize("jump", JUMPS.values(), ids=JUMPS)
def test_a_clock_jump_does_not_move_a_deadline(stage, faults, broker, jump):
    server, _ = stage.protected()
    silent = stage.server(ScriptedServer(lambda request: None))
    client, other = stage.client(broker=broker), stage.client(broker=broker)
    began = time.monotonic()
    asked = client.start("fetch/run", {"url": server.url})
    waiting = other.start("fetch/run", {"url": silent.url, "timeoutMs": int(DEADLINE * 1000)})
    client.challenges.get(timeout=10)
    time.sleep(0.2)
    faults.move_wall(jump)
    while time.monotonic() < began + DEADLINE - 0.1:
        assert asked not in client.replies and waiting not in other.replies, "too early"
        time.sleep(0.02)
    assert one_reply(client, asked)["result"]["status"] == 401
    assert one_reply(other, waiting)["error"]["data"]["kind"] == "timedOut"
    assert time.monotonic() - began < DEADLINE + LATE
    assert client.call("server/status")["result"]["challenges"]["timedOut"] == 1


@pytest.mark.parametrize("jump", JUMPS.values(), ids=JUMPS)
def test_a_clock_jump_does_not_expire_the_session(stage, faults, broker, jump):
    server, password = stage.protected()
    client = stage.client(broker=broker, answer=lambda challenge: password_answer("bob", password))
    assert client.fetch(server.url)["result"]["auth"]["source"] == "client"
    for seconds in [jump, -2 * jump, jump]:
        faults.move_wall(seconds)
        assert client.fetch(server.url)["result"]["auth"]["source"] == "session"


@pytest.mark.parametrize("jump", JUMPS.values(), ids=JUMPS)
def test_a_clock_jump_does_not_change_the_wait_after_a_wrong_passphrase(stage, faults, broker, jump):
    client = stage.client(broker=broker)
    assert "result" in client.call("broker/lock", {"passphrase": "open sesame"})

    def kind(passphrase):
        reply = client.call("broker/unlock", {"passphrase": passphrase})
        return reply["error"]["data"]["kind"] if "error" in reply else "open"

    assert kind("wrong") == "locked"
    began = time.monotonic()
    faults.move_wall(jump)
    assert kind("open sesame") == "busy"
    eventually(lambda: kind("open sesame") == "open", "the broker stays locked", 1 + LATE)
    assert time.monotonic() - began >= 0.95


@pytest.mark.parametrize("jump", JUMPS.values(), ids=JUMPS)
def test_audit_records_have_the_time_of_the_wall_clock(stage, faults, broker, jump):
    client = stage.client(broker=broker)
    audit.clear(client, range(1, 4))
    faults.move_wall(jump)
    audit.clear(client, range(4, 7))
    faults.move_wall(-jump)
    audit.clear(client, range(7, 10))
    found = audit.wait_for(lambda: (found := audit.events(broker)) and len(found) >= 9 and found)
    assert audit.numbers(found) == list(range(1, 10)), "in the order of the events"
    years = [int(event["time"].split("-")[0]) for event in found]
    now, then = time.gmtime().tm_year, time.gmtime(time.time() + jump).tm_year
    assert years == [now] * 3 + [then] * 3 + [now] * 3
    assert all(len(event["time"]) == len("2026-11-21T17:20:03.120Z") for event in found)


@pytest.mark.parametrize("jump", [DAY, -DAY], ids=["on", "back"])
def test_a_clock_jump_does_not_change_the_limit_of_a_keyring_call(stage, faults, jump):
    server, password = stage.protected()
    keyring = stage.keyring().start_rig("stall", ({"xdg:schema": SCHEMA, **description(server)}, stage.secret()))
    broker = stage.configured("[keyring]\ncall-limit-ms = 1500\n", environment={**keyring.for_broker, **faults.environment})
    client = stage.client(broker=broker)
    began = time.monotonic()
    call = client.start("fetch/run", {"url": server.url})
    eventually(lambda: "SearchItems" in keyring.calls, "the keyring was not searched")
    faults.move_wall(jump)
    client.reply(client.challenges.get(timeout=1.5 + LATE), password_answer("bob", password))
    assert time.monotonic() - began >= 1.4
    assert one_reply(client, call)["result"]["status"] == 200
    assert faults["wall_timers"] == 0


@pytest.mark.parametrize("jump", [0, -DAY], ids=["still", "back"])
def test_a_disk_that_does_not_respond_delays_no_client(stage, faults, broker, jump):
    """Neither a fetch nor the exit of the broker waits for it."""
    server = stage.server(ScriptedServer(lambda request: response(200, b"page")))
    client = stage.client(broker=broker)
    audit.clear(client, [1])
    audit.wait_for(lambda: audit.events(broker))
    with faults.failing("write-file", 1, None):
        audit.clear(client, [2])
        eventually(lambda: faults["failed"], "the audit log is not written")
        assert client.fetch(server.url)["result"]["status"] == 200
        began = time.monotonic()
        broker.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        faults.move_wall(jump)
        assert broker.process.wait(20) == 0
        assert time.monotonic() - began < 2.5 + LATE


# A suspended machine

def test_a_question_that_was_open_before_suspension_times_out(stage, faults):
    broker = stage.broker("--challenge-deadline-ms", "60000", environment=faults.environment)
    server, password = stage.protected()
    client = stage.client(broker=broker)
    call = client.start("fetch/run", {"url": server.url})
    client.challenges.get(timeout=10)
    time.sleep(0.5)  # the deadline begins when the question is sent
    faults.sleep(100)
    # The reply comes soon, not after a minute awake: whichever clock the system's timers use, the broker checks every five seconds.
    assert client.wait(call, 6 + LATE)["result"]["status"] == 401
    assert client.call("server/status")["result"]["challenges"]["timedOut"] == 1


def test_the_session_ends_when_the_machine_is_suspended(stage, faults, broker):
    server, password = stage.protected()
    client = stage.client(broker=broker, answer=password_answer("bob", password))
    for _ in range(2):
        assert client.fetch(server.url)["result"]["status"] == 200
    faults.sleep(30)
    before = len(server.requests)
    assert client.fetch(server.url)["result"]["status"] == 200
    assert len(client.asked) == 2 and server.authorizations[before] is None
    found = audit.wait_for(lambda: [event for event in audit.events(broker) if event["kind"] == "sessionCleared"])
    assert [event["reason"] for event in found] == ["the machine was suspended"]


def test_rule_l11_a_connection_has_a_lifetime(stage, broker, faults):
    """An hour, although it is never idle for the two minutes after which libcurl closes it anyway."""
    server = stage.server(lambda request: response(200, b"page"))
    client = stage.client(broker=broker)
    for _ in range(40):
        assert client.fetch(server.url)["result"]["status"] == 200
        assert server.connections == 1
        faults.age_connections(90)
    faults.age_connections(20)
    assert client.fetch(server.url)["result"]["status"] == 200
    assert server.connections == 2
