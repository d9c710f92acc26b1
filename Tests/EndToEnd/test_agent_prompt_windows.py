"""The agent's windows for the prompts of programs, with real programs and a real display."""
import subprocess

import pytest

from rig.terminal import Shell
from test_agent_looks import GERMAN, SCREEN, Shower
from test_agent_windows import started  # noqa: F401
from test_bridges import tools  # noqa: F401

from rig.desktop import Desktop

pytestmark = pytest.mark.tier3("windows")

@pytest.mark.parametrize("words", [[], ["text=2", GERMAN]], ids=["english", "german-text"])
def test_a_hostile_prompt_fits(tmp_path, words):
    screen = Desktop(tmp_path / "small", size="x".join(map(str, SCREEN)))
    try:
        window = Shower(screen, *words)(
            "prompt-confirmation", text="\n".join(["_x<b>\u202e" + "long " * 200] * 60), program="bank_login " * 40)
        screen.hear("‹U+202E›")
        screen.picture("prompt-hostile")
        assert window["outside"] == [] and window["width"] <= SCREEN[0] and window["height"] <= SCREEN[1] - 40
    finally:
        screen.end()


@pytest.fixture
def ask(tools):  # noqa: F811
    """`ask(agent, text)` starts askpass as another program would."""
    started_processes = []

    def start(agent, *words, **environment):
        process = subprocess.Popen(
            words if len(words) > 1 else [tools / "watchword-askpass", *words],
            env={**Shell(agent.broker).environment, "SSH_ASKPASS": str(tools / "watchword-askpass"), "SSH_ASKPASS_REQUIRE": "force",
                 "LC_ALL": "C", **environment},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        started_processes.append(process)
        return process

    yield start
    for process in started_processes:
        process.kill()
        process.communicate()


def test_ssh_keygen_gets_a_passphrase_typed_into_the_window(stage, started, desktop, ask):  # noqa: F811
    secret, agent = stage.secret(), started()
    key = agent.broker.home / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", secret, "-f", str(key)], check=True, stdin=subprocess.DEVNULL)
    reading = ask(agent, "ssh-keygen", "-y", "-f", str(key))
    agent.window("Prompt")
    desktop.hear_all("“ssh-keygen” asks:", "Enter passphrase:", "The name of the program and its text are not verified.")
    desktop.hear("Answer", role="password text", focused=True)
    # Enter in the empty field sends nothing.
    desktop.key("Return")
    agent.open_details()
    desktop.hear("/watchword, process")
    desktop.key("alt+a")
    desktop.hear("Answer", role="password text", focused=True)
    desktop.type(secret)
    desktop.picture("prompt-typed")
    agent.press("OK", "Return")
    output, errors = reading.communicate(timeout=30)
    assert reading.returncode == 0 and output.startswith(b"ssh-ed25519 "), errors
    agent.no_window("Prompt")
    assert secret not in agent.log + agent.broker.log


def test_a_visible_answer_is_typed(started, desktop, ask):  # noqa: F811
    agent = started()
    asking = ask(agent, "Username for 'https://git.example': ")
    agent.window("Prompt")
    desktop.hear("Answer", role="text", focused=True)
    desktop.type("b_ob")
    agent.press("OK")
    assert asking.communicate(timeout=30)[0] == b"b_ob\n"


@pytest.mark.parametrize("button, key, code", [("Yes", None, 0), ("No", "Return", 1), ("No", "Escape", 1)])
def test_a_confirmation_is_answered(started, desktop, ask, button, key, code):  # noqa: F811
    """Enter and Escape mean no."""
    agent = started()
    asking = ask(agent, "Allow use of key bob@example?", SSH_ASKPASS_PROMPT="confirm")
    agent.window("Prompt")
    desktop.hear("No", role="push button", focused=True)
    agent.press("Yes", key) if button == "Yes" else (desktop.hear("Yes", role="push button", sensitive=True), desktop.key(key))
    assert asking.wait(30) == code


def test_the_window_closes_with_its_program(started, desktop, ask):  # noqa: F811
    agent = started()
    asking = ask(agent, "Confirm user presence for key ED25519-SK", SSH_ASKPASS_PROMPT="none")
    agent.window("Prompt")
    desktop.hear("Confirm user presence for key ED25519-SK")
    asking.terminate()
    agent.no_window("Prompt")


def test_the_next_prompt_waits_and_the_prompts_of_a_program_are_stopped(started, desktop, ask):  # noqa: F811
    agent = started()
    first = ask(agent, "first")
    agent.window("Prompt")
    # Another caller: the first one has to wait after its cancelled prompt.
    ask(agent, "/bin/sh", "-c", '"$0" second; exit $?', first.args[0])
    desktop.hear("first")
    desktop.hear("Answer", role="password text", focused=True)
    desktop.hear("OK", role="push button", sensitive=True)
    desktop.key("Escape")
    assert first.wait(30) == 1
    desktop.hear("second")
    agent.window("Prompt")
    agent.press("Stop All Prompts from watchword")
    agent.no_window("Prompt")
    refused = ask(agent, "third")
    assert b"prompts of this program are stopped" in refused.communicate(timeout=30)[1]
