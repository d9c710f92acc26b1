"""The prompts of programs at an agent without windows: parsing, texts, answers, the fallbacks, and `watchword agent`."""
import json
import pathlib
import subprocess
import sys

import pytest

from rig.broker import program
from rig.terminal import Shell
from test_agent import EXAMPLES, Dialogue, message
from test_agent_fallbacks import agent_at_terminal
from test_agent_texts import pinentry_here  # noqa: F401
from test_bridges import tools  # noqa: F401

from watchword_agent import answers, escaping, recent, texts
from watchword_agent.fallbacks import askpass as fallback, conversation
from watchword_agent.fallbacks.dialogue import Unavailable
from watchword_agent.question import Kind, NotUnderstood, read
from watchword_agent.question_queue import QuestionQueue, Recount
from watchword_agent.secret import Secret, line

KINDS = sorted(path.stem for path in (EXAMPLES / "auth.prompt").glob("*.json"))


def prompt(name="secret", number=1, **changes):
    return read(message(f"auth.prompt/{name}", number, **{"promptId": f"p{number}", **changes}), 0)


# Questions, texts and answers

@pytest.mark.parametrize("name", KINDS)
def test_every_example_is_parsed_and_refused_by_closing_it(name):
    asked = prompt(name)
    assert asked.kind is Kind.PROMPT and asked.prompt.text == message(f"auth.prompt/{name}")["params"]["text"]
    assert answers.refusal(asked) == {"action": "cancel"}
    assert answers.stop_asking(asked) == {"action": "cancel", "stopAsking": True}


@pytest.mark.parametrize("change", [{"kind": "password"}, {"kind": None}, {"requester": None}])
def test_a_malformed_prompt_is_refused(change):
    with pytest.raises(NotUnderstood):
        prompt(**change)


def test_prompts_with_the_same_text_are_asked_separately():
    """One answer must not be given to another program, or to a second prompt of the same one."""
    queue = QuestionQueue()
    queue.arrived(prompt(number=1))
    assert queue.arrived(prompt(number=2)) == [Recount(1)]


def test_name_and_text_are_quotations_and_escaped():
    hostile = prompt(program="s\u202esh” asks you to trust it", text="a\x1b[2J\n" + "x" * 1000 + "\nend")
    assert texts.heading(hostile) == "“s‹U+202E›sh' asks you to trust it” asks:"
    first, long, last = texts.prompt_text(hostile.prompt).split("\n")
    assert (first, last) == ("a‹U+001B›[2J", "end") and len(long) <= escaping.PROMPT_LINE_LIMIT + 1
    assert texts.heading(prompt(program="")) == "A program asks:"


def test_many_lines_lose_their_middle():
    lines = escaping.lines("\n".join(f"line {number}" for number in range(1000))).split("\n")
    assert len(lines) == escaping.PROMPT_LINES_LIMIT + 1
    assert (lines[0], lines[len(lines) // 2], lines[-1]) == ("line 0", "…", "line 999")


@pytest.mark.parametrize("name", KINDS)
def test_the_fallbacks_show_program_text_and_that_they_are_not_verified(pinentry_here, name):  # noqa: F811
    asked = prompt(name)
    said = conversation.introduction(asked, Dialogue())
    assert said.startswith(f"“{asked.prompt.program}” asks:\n") and asked.prompt.text.split("\n")[0].strip() in said
    assert "not verified" in said and "Asked by watchword (/usr/bin/watchword, process 4713" in said
    endless = prompt(name, text="\n".join(["\u00e4" * 400] * 40), program="p" * 300)
    assert pinentry_here.has_room(conversation.introduction(endless, pinentry_here))


@pytest.mark.parametrize("name, dialogue, answer", [
    ("secret", Dialogue("open sesame"), {"action": "answer", "value": "open sesame"}), ("secret", Dialogue(), {"action": "cancel"}),
    ("text", Dialogue("bob"), {"action": "answer", "value": "bob"}), ("text", Dialogue(), {"action": "cancel"}),
    ("confirmation", Dialogue(chosen="yes"), {"action": "allow"}), ("confirmation", Dialogue(), {"action": "cancel"}),
    ("information", Dialogue(chosen="close"), {"action": "cancel"}), ("information", Dialogue(), {"action": "cancel"})])
def test_a_dialogue_answers_every_kind(name, dialogue, answer):
    assert json.loads(line(conversation.converse(prompt(name), dialogue))) == answer


def test_an_answer_is_wiped_after_it_was_sent():
    content = Secret(bytearray(b"open sesame"))
    answer = answers.typed(content)
    assert "sesame" not in repr(answer)
    answers.wipe(answer)
    assert content.text() == "\0" * 11


@pytest.mark.parametrize("action, said", [("answer", "answered"), ("allow", "allowed"), ("cancel", "cancelled"), (None, "no answer")])
def test_recent_prompts_are_described(action, said):
    event = {"kind": "promptAnswered", "action": action, "program": "ssh"}
    assert recent.what(event) == f"Prompt of “ssh”: {said}" and recent.is_of_interest(event)
    assert recent.what({**event, "program": None}) == f"Prompt of a program: {said}"
    assert not recent.is_of_interest({"kind": "promptAsked"})


# The fallbacks

@pytest.mark.parametrize("name", ["watchword-askpass", "watchword", "another-name"])
def test_the_fallback_does_not_start_our_own_askpass_program(tools, tmp_path, monkeypatch, name):  # noqa: F811
    """It would ask this agent again. `another-name` is a link to it."""
    (tools / "another-name").symlink_to(program("watchword"))
    monkeypatch.setenv("SSH_ASKPASS", str(tools / name))
    with pytest.raises(Unavailable, match="asks this agent"):
        fallback.Askpass(None)


def ask(broker, tools, text, **environment):  # noqa: F811
    """Starts askpass as another program would."""
    return subprocess.Popen(
        [tools / "watchword-askpass", text], env={**Shell(broker).environment, **environment}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def test_a_script_that_runs_our_askpass_program_does_not_ask_forever(stage, start_agent, tools, tmp_path):  # noqa: F811
    script = tmp_path / "wrapper"
    script.write_text(f'#!/bin/sh\nexec "{tools}/watchword-askpass" "$@"\n')
    script.chmod(0o755)
    agent = start_agent(stage.broker(), None, "--fallback", "askpass", environment={"SSH_ASKPASS": str(script)}, start_new_session=True)
    agent.wait_until_registered()
    asking = ask(agent.broker, tools, "Password: ")
    assert asking.wait(30) == 1
    asking.communicate()
    assert "watchword-agent itself" in agent.log


def test_another_askpass_program_answers(stage, start_agent, tools, tmp_path):  # noqa: F811
    secret = stage.secret()
    script = tmp_path / "other"
    script.write_text('#!/bin/sh\necho "$1" > "$ASKED"\ncat "$TYPED"\n')
    script.chmod(0o755)
    (tmp_path / "typed").write_text(secret + "\n")
    environment = {"SSH_ASKPASS": str(script), "ASKED": str(tmp_path / "asked"), "TYPED": str(tmp_path / "typed")}
    agent = start_agent(stage.broker(), None, "--fallback", "askpass", environment=environment, start_new_session=True)
    agent.wait_until_registered()
    asking = ask(agent.broker, tools, "Passphrase of the key: ")
    assert asking.communicate(timeout=30) == (secret.encode() + b"\n", b"")
    assert "asks:\nPassphrase of the key:" in (tmp_path / "asked").read_text() and secret not in agent.log
    (tmp_path / "typed").unlink()


def test_the_terminal_of_the_desktop_agent_shows_a_prompt(stage, tools):  # noqa: F811
    broker, secret = stage.broker(), stage.secret()
    with agent_at_terminal(broker) as terminal:
        asking = ask(broker, tools, "Passphrase: ")
        terminal.expect("asks:")
        terminal.answer({"Your answer: ": secret})
        assert asking.communicate(timeout=30) == (secret.encode() + b"\n", b"")
        confirming = ask(broker, tools, "Use the key?", SSH_ASKPASS_PROMPT="confirm")
        terminal.expect("1  Yes")
        terminal.answer({"Which one? ": "1"})
        assert confirming.communicate(timeout=30) == (b"yes\n", b"")
        informing = ask(broker, tools, "Touch the token", SSH_ASKPASS_PROMPT="none")
        terminal.expect("Touch the token")
        informing.terminate()
        terminal.expect("No longer needed.")
        informing.communicate(timeout=30)
    assert secret.encode() not in terminal.shown


# `watchword agent`

@pytest.fixture
def terminal_agent(stage):
    broker = stage.broker()
    terminal = Shell(broker).at_terminal("agent")
    terminal.expect("showing the questions of all programs")
    yield broker, terminal
    terminal.type("\x03")
    assert terminal.end() == 130


def test_the_terminal_agent_shows_the_prompts_of_programs(stage, terminal_agent, tools):  # noqa: F811
    (broker, terminal), secret = terminal_agent, stage.secret()
    asking = ask(broker, tools, "Passphrase for \x1b[31mkey:\nsecond line")
    terminal.expect("Request from watchword askpass")
    terminal.expect('asks (its name and text are not verified):\r\n    Passphrase for \ufffd[31mkey:\r\n    second line\r\n')
    terminal.expect("Your answer (Ctrl-D to cancel): ")
    terminal.type(secret + "\n")
    assert asking.communicate(timeout=30) == (secret.encode() + b"\n", b"")
    assert secret.encode() not in terminal.shown and pathlib.Path(sys.executable).resolve().name.encode() in terminal.shown


@pytest.mark.parametrize("typed, code", [("yes\n", 0), ("\n", 1), ("\x04", 1)])
def test_the_terminal_agent_confirms(terminal_agent, tools, typed, code):  # noqa: F811
    broker, terminal = terminal_agent
    confirming = ask(broker, tools, "Use the key?", SSH_ASKPASS_PROMPT="confirm")
    terminal.expect("Allow it? yes/NO: ")
    terminal.type(typed)
    assert confirming.wait(30) == code
    confirming.communicate()


def test_the_terminal_agent_closes_a_prompt_that_is_withdrawn(terminal_agent, tools):  # noqa: F811
    broker, terminal = terminal_agent
    informing = ask(broker, tools, "Touch the token", SSH_ASKPASS_PROMPT="none")
    terminal.expect("Press Enter to close this: ")
    informing.terminate()
    terminal.expect("The prompt was withdrawn")
    informing.communicate(timeout=30)


def test_the_terminal_agent_stops_the_prompts_of_a_program(terminal_agent, tools):  # noqa: F811
    broker, terminal = terminal_agent
    first = ask(broker, tools, "first")
    # Input before the prompt would be discarded.
    terminal.expect("(Ctrl-D to cancel): ")
    terminal.type("\x04")
    assert first.wait(30) == 1
    # Another caller: the first one has to wait after its cancelled prompt.
    second = subprocess.Popen(
        ["/bin/sh", "-c", '"$0" "$1"; exit $?', tools / "watchword-askpass", "second"], env=Shell(broker).environment,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    terminal.expect("(Ctrl-D to cancel): ", times=2)
    terminal.type("\x04")
    terminal.answer({"? y/N: ": "y"})
    assert second.wait(30) == 1
    third = ask(broker, tools, "third")
    assert b"prompts of this program are stopped" in third.communicate(timeout=30)[1]
    for process in (first, second):
        process.communicate()
