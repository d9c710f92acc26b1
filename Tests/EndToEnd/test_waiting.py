"""Waiting for other programs: what a client is told about it, its limits, and which fetches never wait (SEMANTICS rule 20)."""
import subprocess

import pytest

from rig.bodies import eventually
from rig.broker import program
from rig.client import password_answer
from rig.terminal import Terminal


#: A timeout, which the tests let pass with the broker's clock, and a longer time for its questions.
SECONDS, QUESTION_SECONDS = 60, 600


@pytest.fixture
def broker(stage, faults):
    broker = stage.broker("--challenge-deadline-ms", str(QUESTION_SECONDS * 1000), environment=faults.environment)
    broker.pass_timeout = lambda: faults.pass_time(SECONDS + 1)
    return broker


@pytest.fixture
def scene(stage, broker):
    """A question that is open at one program."""
    server, password = stage.protected("bob")
    asked = stage.client()
    call = asked.start("fetch/run", {"url": server.url})
    challenge = asked.challenges.get(timeout=30)

    class Scene:
        def answer(self):
            asked.reply(challenge, password_answer("bob", password))
            assert asked.wait(call)["result"]["status"] == 200

    scene = Scene()
    scene.server, scene.asked, scene.broker = server, asked, broker
    return scene


def waiting(client):
    return client.call("server/status")["result"]["fetches"]["waiting"]


def test_rule_20_fetch_waiting_says_what_a_fetch_waits_for(stage, scene):
    other, quiet = stage.client(), stage.client()
    call = other.start("fetch/run", {"url": scene.server.url, "notify": ["waiting"]})
    told = other.notifications.get(timeout=30)
    assert told["method"] == "fetch/waiting"
    params = told["params"]
    assert params["requestId"] == call and params["for"] == "question" and params["sinceMs"] >= 0
    assert params["protectionSpace"]["realm"] == "Staff" and params["protectionSpace"]["port"] == scene.server.port
    [listed] = other.call("fetch/list")["result"]["fetches"]
    assert listed["state"] == "waiting" and listed["sinceMs"] >= params["sinceMs"]
    assert {name: listed[name] for name in ("fetchId", "for", "protectionSpace")} == {
        name: params[name] for name in ("fetchId", "for", "protectionSpace")}
    other_call = quiet.start("fetch/run", {"url": scene.server.url})
    eventually(lambda: waiting(scene.asked) == 2, "the fetch does not wait")
    scene.answer()
    assert other.wait(call)["result"]["status"] == quiet.wait(other_call)["result"]["status"] == 200
    assert all(told["method"] != "fetch/waiting" for told in list(quiet.notifications.queue))
    # The client was also notified of the login that followed.
    assert other.notifications.get(timeout=30)["params"]["for"] == "trial"


def test_the_helper_times_out_and_reports_the_reason_of_the_wait(scene):
    done = subprocess.run(
        [program("watchword"), "fetch", "-v", "-m", "5", "--socket", scene.broker.socket, scene.server.url],
        capture_output=True, text=True, timeout=30)
    assert done.returncode == 28
    line = f"* waiting for the answer to another program's login prompt for {scene.server.url} (Staff)"
    assert done.stderr.splitlines().count(line) == 1


def test_the_helper_does_not_report_a_wait_without_a_terminal(scene):
    done = subprocess.run(
        [program("watchword"), "fetch", "-m", "2", "--socket", scene.broker.socket, scene.server.url],
        capture_output=True, text=True, timeout=30)
    assert done.returncode == 28 and "waiting" not in done.stderr


def test_the_helper_reports_a_wait_at_a_terminal(scene):
    terminal = Terminal(
        program("watchword"), "fetch", scene.server.url,
        environment={**scene.broker.environment, "WATCHWORD_SOCKET": scene.broker.socket, "TERM": "dumb"})
    terminal.expect("* waiting for the answer to another program's login prompt")
    scene.answer()
    terminal.expect("welcome")
    assert terminal.end() == 0
