"""The limits of the session that a challenge states, from the configuration."""
import contextlib

import pytest

from rig.scripted import basic_server
from rig.scripted_broker import OK, ScriptedBroker
from rig.terminal import Shell
from test_helper_certificates import about_trust, challenge

CONFIGURED = "[limits]\nsession-idle-s = 90\nsession-lifetime-s = 3600\n"


@pytest.fixture
def broker(stage):
    return stage.configured(CONFIGURED)


def test_the_terminal_states_the_limits(stage, broker):
    server, shell = stage.server(basic_server("bob", stage.secret())), Shell(broker)
    for options, said in [
            ([], b"Stored for this session: until it is unused for 90 seconds or the computer sleeps, at most 1 hour."), (["--keep", "none"], None)]:
        terminal = shell.at_terminal("fetch", *options, server.url)
        terminal.expect("User: ")
        assert said in terminal.shown if said else b"this session" not in terminal.shown, terminal.shown
        terminal.type("\x04")
        terminal.end()


@pytest.fixture
def ask(tmp_path):
    """`ask(challenge)` returns the text that `watchword fetch` shows at a terminal before it prompts."""
    with contextlib.ExitStack() as stack:
        def shown(params, prompt, typed):
            def plan(broker, _):
                broker.ask("auth/challenge", params)
                return OK

            terminal = stack.enter_context(contextlib.closing(ScriptedBroker(tmp_path, plan))).at_terminal("fetch", "https://intranet.test:8443/")
            terminal.expect(prompt)
            terminal.type(typed)
            terminal.end()
            return terminal.shown.decode()

        yield shown


@pytest.mark.parametrize("params, prompt, said", [
    (about_trust("expired", sessionLimits={"lifetimeMs": 7_200_000}), "NO: ", "For the session: until the computer sleeps, at most 2 hours."),
    (about_trust("expired", persistenceAllowed=["none"]), "NO: ", None),
    (challenge("clientCertificate", {"distinguishedNames": []}, sessionLimits={"idleMs": 1000, "lifetimeMs": 120_000}), "URI): ",
     "Stored for this session: until it is unused for 1 second or the computer sleeps, at most 2 minutes.")])
def test_prompts_about_certificates_state_their_limits(ask, params, prompt, said):
    shown = ask(params, prompt, "\n")
    assert said in shown if said else "session:" not in shown, shown
