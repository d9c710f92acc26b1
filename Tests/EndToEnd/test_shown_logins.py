"""Logins in the browser, as challenges describe them: at terminals, in the fallbacks of the agent, and which addresses are opened."""
import contextlib
import datetime
import json
import os
import threading

import pytest

from rig.desktop import RunningAgent, askpass
from rig.bodies import eventually
from rig.broker import program
from rig.scripted_broker import OK, AgentBroker, ScriptedBroker
from rig.terminal import Terminal
from test_agent import message, question
from test_agent_fallbacks import agent_at_terminal

from watchword_agent import texts, web_address

BROWSER, DEVICE = (message(f"auth.challenge/{flow}-login")["params"]["login"] for flow in ("browser", "device"))
#: Text of a server that would take over a terminal, or hide.
HOSTILE = "evil\x1b[2J\u202egood"


def challenge(login, seconds=600, challengeId="c1", **changes):
    """Returns the parameters of a challenge with this login, which ends in this time."""
    end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    login = {**login, "expiresAt": end.isoformat(timespec="milliseconds").replace("+00:00", "Z"), **changes}
    return {**message("auth.challenge/browser-login")["params"], "challengeId": challengeId, "login": login}


# The agent's questions

def read(**login):
    return question("auth.challenge/device-login", login={**DEVICE, **login})


def test_a_login_is_read_with_its_end():
    found = read(expiresAt="2026-11-25T20:00:00.500Z").login
    assert found.expires_at == datetime.datetime(2026, 11, 25, 20, 0, 0, 500_000, datetime.timezone.utc).timestamp()
    assert (found.user_code, found.scopes, found.url) == ("WDJB-MJHT", ("read", "write"), DEVICE["url"])
    assert question("auth.challenge/browser-login").login.user_code == ""


@pytest.mark.parametrize("broken", [
    {"flow": "ofTomorrow"}, {"flow": "browser"}, {"userCode": ""}, {"url": 7}, {"expiresAt": "soon"}, {"expiresAt": "2026-11-25T20:00:00"},
    {"issuer": None}])
def test_a_malformed_login_leaves_the_question_for_a_token(broken):
    found = read(**broken)
    assert found.login is None and texts.heading(found) == "Token for api.example"


LOCAL = ["http://127.0.0.1:7777/a", "http://[::1]:7777/a", "http://127.0.0.1/a?b=c&d=%20#e"]
SECURE = ["https://login.example/device", "https://login.example:8443/", "https://xn--bcher-kva.example/"]
REFUSED = [
    "", "-https://login.example/", "file:///etc/passwd", "javascript:alert(1)", "http://login.example/", "http://localhost:7777/",
    "http://127.0.0.1.evil.example/", "http://127.0.0.1@evil.example/", "http://user:pw@127.0.0.1/", "https://good.example@evil.example/",
    "https://evil.example\\.good.example/", "https:evil.example", "https:///evil.example", "https://", "https://h:0/", "https://h:65536/",
    "https://h:x/", "https://h/\n--option", "https://h/\x1b", "https://h/ a", "https://h/\u202e", "https://b\u00fccher.example/", "https://[::1/",
    "http://127.1/", "http://2130706433/", "https://h/" + "a" * 5000, 'https://h/"', "https://h/`id`"]


@pytest.mark.parametrize("url, flows", [
    *((url, ["browser", "device"]) for url in LOCAL), *((url, ["device"]) for url in SECURE), *((url, []) for url in REFUSED)])
def test_the_addresses_that_are_opened(url, flows):
    """An https address only for a code."""
    for flow, login in {"device": DEVICE, "browser": BROWSER}.items():
        found = question(f"auth.challenge/{flow}-login", login={**login, "url": url or "x"}).login
        assert web_address.to_open(found) == (url if flow in flows else None)
        assert flows or web_address.with_code(found) is None


@pytest.mark.parametrize("complete, shown", [
    (DEVICE["completeUrl"], DEVICE["completeUrl"]), ("https://evil.example/device?user_code=A", DEVICE["url"]), ("javascript:1", DEVICE["url"]),
    ("http://login.example/device", DEVICE["url"]), ("https://login.example:444/", DEVICE["url"]), (None, DEVICE["url"])])
def test_a_qr_code_leads_to_the_site_that_is_shown(complete, shown):
    assert web_address.with_code(read(completeUrl=complete).login) == shown


def test_equal_logins_of_one_program_are_one_question_and_texts_of_a_server_are_escaped():
    first, second = (question("auth.challenge/device-login", number) for number in (1, 2))
    assert first.key == second.key != read(userCode="OTHER").key
    hostile = read(issuer=f"https://{HOSTILE}/", scopes=[HOSTILE] * 20, userCode=HOSTILE, url=f"https://h/{HOSTILE}")
    login = hostile.login
    for text in (texts.heading(hostile), texts.scopes(login), texts.device_code(login), texts.device_address(login), texts.refused_address(login)):
        assert "\x1b" not in text and "\u202e" not in text and "evil‹U+001B›[2J‹U+202E›good" in text
    assert texts.scopes(login).endswith("and 14 more")
    long = read(issuer=f"https://login.example.{'a' * 60}.evil.example/")
    assert texts.heading(long).endswith(".evil.example") and texts.long_host(texts.login_host(long)).endswith(" evil.example")


# The agent's fallbacks

@pytest.fixture
def agent_broker(tmp_path):
    with contextlib.closing(AgentBroker(tmp_path)) as broker:
        yield broker


def test_the_terminal_of_the_agent_shows_address_and_code(agent_broker):
    with agent_at_terminal(agent_broker) as terminal:
        agent_broker.ask(challenge(DEVICE))
        terminal.expect(
            "Log in at login.example", "Site: https://api.example", "Scopes: read, write", "Continue only if you started this.",
            "\r\nhttps://login.example/device\r\nWDJB-MJHT\r\n", "Time left: 10 minutes", "1  Enter a token by hand", "0  Not now")
        assert b"Open the browser" not in terminal.shown, "there is no display"
        agent_broker.withdraw()
        terminal.expect("No longer needed.")
        agent_broker.ask(challenge(BROWSER, challengeId="c2"))
        terminal.expect(f"\r\n{BROWSER['url']}\r\n")
        terminal.expect("or [0]: ", times=2)
        terminal.type("1\n")
        terminal.answer({"Token: ": "a-token"})
        assert agent_broker.answer()["credential"]["token"] == "a-token"
        agent_broker.ask(challenge(BROWSER, challengeId="c3"))
        terminal.expect("or [0]: ", times=3)
        terminal.type("\n")
        assert agent_broker.answer() == {"action": "cancel"}


@pytest.mark.parametrize("name", ["pinentry", "askpass"])
def test_other_fallbacks_leave_the_question_to_other_agents(agent_broker, tmp_path, name):
    environment = {**askpass(tmp_path, "unused"), "PATH": os.environ["PATH"], "GPG_TTY": "/dev/tty"}
    agent = RunningAgent(tmp_path, agent_broker, None, "--fallback", name, environment=environment).wait_until_registered()
    try:
        agent_broker.ask(challenge(BROWSER))
        assert agent_broker.answer()["code"] == -32601
        assert f"{name} cannot ask: it cannot show the address of a login" in agent.log
        assert not (tmp_path / "asked").exists()
    finally:
        agent.end()


# watchword at a terminal

PROMPT = "Waiting for the login. Or type a token (Ctrl-D to continue without): "


class Fetch:
    """`watchword fetch` at a terminal with a challenge of a scripted broker, which has shown the prompt. After `end`, the broker continues
    as in `then`."""

    def __init__(self, folder, asked, then, prompt=PROMPT):
        self.asked, self.then, self.seen = asked, then, threading.Event()
        self.broker = ScriptedBroker(folder, self._plan)
        self.terminal = self.broker.at_terminal("fetch", "https://api.example/items")
        self.terminal.expect(prompt)

    def _plan(self, broker, _):
        broker.send("auth/challenge", self.asked)
        self.seen.wait(30)
        return self.then(broker)

    def end(self):
        self.seen.set()
        return self.terminal.end(), self.terminal.shown.decode()


@pytest.fixture
def fetch(tmp_path):
    """`fetch(asked, then)` returns a `Fetch`."""
    with contextlib.ExitStack() as stack:
        def start(*arguments):
            started = Fetch(tmp_path, *arguments)
            stack.callback(started.broker.close)
            return started

        yield start


def reply(broker):
    """Waits for the client's reply to the challenge; the fetch then succeeds."""
    broker.replied = json.loads(broker.file.readline())["result"]
    return OK


def test_a_fetch_shows_where_to_log_in_and_continues_silently(fetch):
    started = fetch(challenge(BROWSER), lambda broker: broker.withdraw() or OK)
    status, shown = started.end()
    for text in ("https://api.example requires a login.", "Log in at https://login.example for: read, write.", "on this machine within 10 minutes:",
                 f"\r\n    {BROWSER['url']}\r\n"):
        assert text in shown, shown
    assert status == 0 and "Code:" not in shown and shown.endswith(f"{PROMPT}\r\ndone\r\n"), shown


def test_another_withdrawal_is_reported(fetch):
    started = fetch(challenge(BROWSER), lambda broker: broker.withdraw("cancelled") or OK)
    assert "The question was withdrawn: it was open for too long, or the fetch has ended." in started.end()[1]


def test_a_code_is_shown_with_the_warning_and_a_token_can_be_typed(fetch):
    started = fetch(challenge(DEVICE), reply)
    started.terminal.expect(
        "on any device, and enter the code, within 10 minutes:\r\n    https://login.example/device\r\n    Code: WDJB-MJHT\r\n",
        "Continue only if you started this. If someone sent you this code, cancel.")
    # Enter is pressed easily on the way back from the browser.
    started.terminal.type("\n")
    started.terminal.expect(PROMPT, times=2)
    started.terminal.type("a-token\n")
    status, shown = started.end()
    assert status == 0 and "a-token" not in shown
    assert started.broker.replied["credential"]["token"] == "a-token"


def test_ctrl_c_ends_the_fetch_without_an_answer(fetch):
    sent = []
    started = fetch(challenge(BROWSER), lambda broker: sent.append(broker.file.read()) or OK)
    started.terminal.type("\x03")
    assert started.terminal.end() == 130
    started.seen.set()
    eventually(lambda: sent == [b""], lambda: sent)


def test_text_of_a_server_does_not_control_the_terminal_and_ctrl_d_continues_without_a_login(fetch):
    login = {"issuer": f"https://{HOSTILE}/", "scopes": [HOSTILE], "userCode": HOSTILE, "url": f"https://h/{HOSTILE}"}
    started = fetch(challenge({**DEVICE, **login}), reply)
    started.terminal.type("\x04")
    status, shown = started.end()
    assert status == 0 and started.broker.replied == {"action": "continue"}
    assert "\x1b" not in shown and "\u202e" not in shown and shown.count("evil\ufffd[2J\ufffdgood") == 4, shown


@pytest.mark.parametrize("broken", [{"flow": "ofTomorrow"}, {"expiresAt": "soon"}, {"userCode": None}])
def test_a_malformed_login_leaves_the_prompt_for_a_token(fetch, broken):
    asked = challenge(DEVICE)
    asked["login"].update(broken)
    started = fetch(asked, reply, "\r\nToken: ")
    started.terminal.type("a-token\n")
    status, shown = started.end()
    assert status == 0 and "Log in at" not in shown


def test_the_terminal_agent_shows_the_login_of_a_program_and_the_next_question(agent_broker):
    terminal = Terminal(program("watchword"), "agent", environment={
        **agent_broker.environment, "WATCHWORD_SOCKET": agent_broker.socket, "TERM": "dumb"})
    terminal.expect("showing the questions of all programs")
    agent_broker.ask(challenge(DEVICE))
    terminal.expect("Request from ", "Code: WDJB-MJHT", PROMPT)
    agent_broker.withdraw()
    agent_broker.ask(challenge(BROWSER, challengeId="c2"))
    terminal.expect(PROMPT, times=2)
    assert b"withdrawn" not in terminal.shown
    terminal.type("a-token\n")
    assert agent_broker.answer()["credential"]["token"] == "a-token"
    terminal.type("\x03")
    assert terminal.end() == 130 and agent_broker.replies.empty()
