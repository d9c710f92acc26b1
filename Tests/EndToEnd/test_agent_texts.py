"""The agent's texts for hosts, URLs and names, and the prompts of programs: in its windows, in the fallbacks, and at `watchword agent`."""
import json
import pathlib
import subprocess
import sys

import pytest

from rig.broker import program
from rig.servers import executable
from rig.terminal import Shell
from test_agent import EXAMPLES, Dialogue, message, question
from test_agent_fallbacks import agent_at_terminal
from test_agent_looks import LONG_HOST
from test_bridges import tools  # noqa: F401

from watchword_agent import answers, escaping, recent, texts  # noqa: E402
from watchword_agent.fallbacks import askpass as fallback, conversation, pinentry, zenity  # noqa: E402
from watchword_agent.fallbacks.dialogue import Unavailable  # noqa: E402
from watchword_agent.question import Kind, read  # noqa: E402
from watchword_agent.question_queue import QuestionQueue, Recount  # noqa: E402
from watchword_agent.secret import Secret, line  # noqa: E402

KINDS = [
    "auth.challenge/ntlm", "auth.challenge/proxy", "auth.challenge/bearer", "auth.challenge/client-certificate",
    "auth.challenge/server-trust-changed", "auth.confirm/sandbox", "auth.challenge/known-users"]


def hostile(name):
    """A question in which all untrusted texts have their maximum length."""
    params = message(name)["params"]
    names = {"host": LONG_HOST, "realm": "\U0001f511" * 500, "distinguishedNames": ["\u00e4" * 300] * 20}
    return question(
        name, url=f"https://{LONG_HOST}/" + "x" * 4000, protectionSpace={**params["protectionSpace"], **names},
        requester={"name": "n" * 300, "pid": 2**22, "subject": "exe:/" + "\u00e4/" * 500 + "prog", "restricted": True},
        error={"kind": "k" * 300}, previousFailureCount=20, downgrade=True,
        knownUsers=[{"id": f"session:{number}", "user": "\u00e4" * 300, "domain": "D" * 300, "source": "session"} for number in range(16)])


@pytest.fixture
def pinentry_here(tmp_path, monkeypatch):
    """A pinentry that would prompt at a terminal, and is not started."""
    executable(tmp_path / "pinentry", "#!/bin/sh\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("GPG_TTY", "/dev/tty")
    return pinentry.Pinentry(None)


@pytest.mark.parametrize("weak, said", [
    (["noRealm"], "no realm"), (["unquotedRealm", "noQop"], "can be replayed"), (["unquotedRealm"], None), ([], None)])
def test_weaknesses_of_a_challenge_are_named(weak, said):
    space = message("auth.challenge/credential")["params"]["protectionSpace"]
    offer = {"scheme": "X", "authenticationMethod": space["authenticationMethod"], "realm": space["realm"], "weak": weak}
    other = {**offer, "realm": "another", "weak": ["noRealm"]}
    text = texts.downgrade(question("auth.challenge/credential", offers=[other, offer]))
    assert said in text and "Saved logins are not used" in text if said else text is None


@pytest.mark.parametrize("name, said", [
    ("auth.confirm/script", "Other programs that run as you can claim to be this script"),
    ("auth.confirm/interpreter", "The script can be changed, or be another one")])
def test_a_script_is_named_with_its_interpreter(name, said):
    requester = {"name": "report.py", "pid": 7, "subject": "exe:/usr/bin/python3.11", "script": {"path": "/srv/\n/report.py"}}
    one = question(name, requester=requester)
    assert texts.heading(one) == "Let “report.py” use your login?" and texts.strength(one) == said
    assert texts.asked_by(one.requester) == "Asked by report.py, run by python3.11"
    assert texts.program_place(one.requester) == "/srv/‹U+000A›/report.py, run by /usr/bin/python3.11, process 7"
    # The broker stops the questions of all scripts.
    assert texts.program(one.requester) == "python3.11" and "for python3.11, whatever script" in texts.stop_asking_hint(one.requester)
    shown = conversation.introduction(one, Dialogue())
    assert "Asked by report.py, run by python3.11 (/srv/" in shown and said in shown


def test_without_a_script_an_interpreter_is_named():
    one = question("auth.confirm/interpreter")
    assert texts.heading(one) == "Let “python3.11” use your login?" and "run by" not in texts.program_place(one.requester)
    assert "other programs' code" in texts.strength(one) and "whatever script" not in texts.stop_asking_hint(one.requester)
    assert question("auth.confirm/script", requester={"name": None, "pid": 7, "subject": "exe:/usr/bin/python3", "script": 7}).requester.script == ""


TO_SLEEP = "For this session: until the computer sleeps, at most"
UNUSED = "For this session: until it is unused for"


@pytest.mark.parametrize("limits, said", [
    ({"idleMs": 600_000, "lifetimeMs": 7_200_000}, f"{UNUSED} 10 minutes or the computer sleeps, at most 2 hours."),
    ({"idleMs": 1000, "lifetimeMs": 604_800_000}, f"{UNUSED} 1 second or the computer sleeps, at most 7 days."),
    # Not shorter than the real times.
    ({"idleMs": 121_000, "lifetimeMs": 5_401_000}, f"{UNUSED} 3 minutes or the computer sleeps, at most 91 minutes."),
    ({"idleMs": 86_400_000, "lifetimeMs": 3_600_000}, f"{TO_SLEEP} 1 hour."),
    ({"idleMs": 60_000, "lifetimeMs": 60_000}, f"{TO_SLEEP} 1 minute."),
    ({"lifetimeMs": 86_400_000}, f"{TO_SLEEP} 1 day."), ({"idleMs": 0, "lifetimeMs": 0}, f"{TO_SLEEP} 0 seconds."),
    (None, "For this session: at most until the computer sleeps."), ({"lifetimeMs": "x"}, "For this session: at most until the computer sleeps.")])
def test_the_hint_about_the_session_is_true(limits, said):
    assert texts.session_hint(question("auth.challenge/credential", sessionLimits=limits)) == said


def test_only_prompts_whose_answer_is_stored_for_the_session_say_how_long():
    def lines(name, **changes):
        return conversation.introduction(question(name, **changes), Dialogue())

    assert "at most 2 hours." in lines("auth.challenge/credential") and "at most 2 hours." in lines("auth.challenge/client-certificate")
    assert f"{TO_SLEEP} 2 hours." in lines("auth.challenge/server-trust")
    assert "For this session" not in lines("auth.challenge/credential", persistenceAllowed=["none"], sessionLimits=None)
    assert "at most until the computer sleeps" in lines("auth.confirm/sandbox", allows=["once", "session"])
    assert "For this session" not in lines("auth.confirm/sandbox", allows=["once"])


@pytest.mark.parametrize("url, shown", [
    ("https://mybank.example@evil.example\\@x", "https://evil.example\\@x"), ("https://a\u202eb/\x1b", "https://a‹U+202E›b/‹U+001B›"),
    ("http://[::1]:8080/a?b#c", "http://[::1]:8080/a?b#c"), ("no URL", "no URL"), (None, ""),
    ("https://" + "mybank.example." * 400 + "evil.example/", "https://…" + ("mybank.example." * 20 + "evil.example")[-259:] + "/")],
    ids=["user", "marks", "address", "text", "nothing", "long"])
def test_urls_are_shown_without_user_information_and_escaped(url, shown):
    assert escaping.url(url) == shown
    # A host is shown whole, and only paths are shortened.
    assert escaping.host(LONG_HOST) == LONG_HOST and len(LONG_HOST) == 253
    long = escaping.url(f"https://bob:pw@{LONG_HOST}:8443/" + "x" * 4000 + "?last")
    assert long.startswith(f"https://{LONG_HOST}:8443/xxx") and long.endswith("x?last") and len(long) < 480 and "x…x" in long


@pytest.mark.parametrize("host, end", [
    ("short.example", None), ("a" * 50 + ".www.evil.example", "www.evil.example"), ("a" * 63 + ".evil.example", "evil.example"),
    (LONG_HOST, "d" * 23 + ".evil.example"), ("www." + "a" * 63 + ".evil.example", "evil.example")])
def test_the_end_of_a_long_host_is_shown_again(host, end):
    assert escaping.host_end(host) == end


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_question_shows_the_whole_host(name):
    asked = hostile(name)
    said = conversation.introduction(asked, Dialogue())
    assert LONG_HOST in texts.place(asked.space) and LONG_HOST in said
    assert LONG_HOST in texts.heading(asked) or name == "auth.confirm/sandbox"
    assert f"ends in {'d' * 23}.evil.example" in said


@pytest.mark.parametrize("strength, said", [
    ("strong", "Verified: other programs cannot use this name."), ("weak", "Other programs that run as you can imitate it."),
    ("none", "The actual program is unknown: this one can run other programs' code.")])
def test_rule_g5_a_consent_prompt_shows_program_strength_login_and_origin_and_the_realm_as_the_servers_text(strength, said):
    params = message("auth.confirm/sandbox")["params"]
    asked = question(
        "auth.confirm/sandbox", subject={**params["subject"], "strength": strength},
        protectionSpace={**params["protectionSpace"], "protocol": "http", "port": 8080, "realm": "At: https://bank.example"})
    shown = conversation.introduction(asked, Dialogue()).splitlines()
    assert shown[:5] == [
        "Let “org.example.Maps” use your login?", "The server says: “At: https://bank.example”",
        "Login: “bob”, saved in the keyring", "At: http://intranet.example:8080", said]


@pytest.mark.parametrize("name", KINDS)
def test_pinentry_has_room_for_every_question(pinentry_here, name):
    """The description contains the whole host, and no part of it elsewhere."""
    said = conversation.introduction(hostile(name), pinentry_here)
    assert pinentry_here.has_room(said) and LONG_HOST in said
    assert "mybank" not in said.replace(LONG_HOST, "")
    usual = question(name)
    assert conversation.introduction(usual, pinentry_here) == conversation.introduction(usual, Dialogue())


@pytest.mark.parametrize("text", ["%" * 2000, "\n" * 2000, "\U0001f511" * 500, "a" + "\u00e4" * 700],
                         ids=["percent", "lines", "keys", "letters"])
def test_a_line_for_pinentry_is_never_too_long_and_never_cut_inside_a_character(text):
    line = pinentry._command("SETDESC", text)
    assert 990 < len(line.encode()) <= 1000 and line.endswith("…")
    assert "%" not in line.replace("%25", "").replace("%0A", "")


def test_marks_of_keys_and_widths_of_lines_in_the_fallbacks():
    """Only the buttons of pinentry have marks; zenity reads no underscore as a mark, and gets no line that is wider than the screen."""
    assert pinentry._command("SETDESC", "my_host 100%\n") == "SETDESC my_host 100%25%0A"
    assert pinentry._button("my_host") == "my__host"
    assert zenity._beside_a_field("pay_pal.example", "User") == "pay__pal.example\n\nUser:"
    assert zenity._plain("pay_pal.example") == "pay_pal.example"
    lines = zenity._plain(f"Log in to {LONG_HOST}").split("\n")
    assert max(map(len, lines)) <= 80 and "".join(lines).endswith(LONG_HOST)


@pytest.mark.skipif(not pinentry.shutil.which("pinentry-curses"), reason="pinentry-curses is not installed")
def test_the_real_pinentry_takes_the_longest_line():
    line = pinentry._command("SETDESC", "\n" * 2000)
    said = subprocess.run(["pinentry-curses"], input=f"{line}\nBYE\n".encode(), capture_output=True, timeout=30)
    assert said.stdout.count(b"OK") == 3, said


PROMPTS = sorted(path.stem for path in (EXAMPLES / "auth.prompt").glob("*.json"))


def prompt(name="secret", number=1, **changes):
    return read(message(f"auth.prompt/{name}", number, **{"promptId": f"p{number}", **changes}), 0)


# Questions, texts and answers

@pytest.mark.parametrize("name", PROMPTS)
def test_every_example_is_parsed_and_refused_by_closing_it(name):
    asked = prompt(name)
    assert asked.kind is Kind.PROMPT and asked.prompt.text == message(f"auth.prompt/{name}")["params"]["text"]
    assert answers.refusal(asked) == {"action": "cancel"}
    assert answers.stop_asking(asked) == {"action": "cancel", "stopAsking": True}


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
    # Many lines lose their middle.
    lines = escaping.lines("\n".join(f"line {number}" for number in range(1000))).split("\n")
    assert len(lines) == escaping.PROMPT_LINES_LIMIT + 1
    assert (lines[0], lines[len(lines) // 2], lines[-1]) == ("line 0", "…", "line 999")


@pytest.mark.parametrize("name", PROMPTS)
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
    given = conversation.converse(prompt(name), dialogue)
    assert json.loads(line(given)) == answer and "sesame" not in repr(given)


def test_an_answer_is_wiped_after_it_was_sent():
    content = Secret(bytearray(b"open sesame"))
    answers.wipe(answers.typed(content))
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


def ask(broker, command, text, **environment):
    """Starts askpass as another program would; `command` is the folder of the tools, or the words before the text."""
    command = command if isinstance(command, list) else [command / "watchword-askpass"]
    return subprocess.Popen([*command, text], env={**Shell(broker).environment, **environment}, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def with_askpass(stage, start_agent, script, **environment):
    """An agent whose fallback is this program; returns it."""
    return start_agent(stage.broker(), None, "--fallback", "askpass", environment={"SSH_ASKPASS": str(script), **environment},
                       start_new_session=True).wait_until_registered()


def test_a_script_that_runs_our_askpass_program_does_not_ask_forever(stage, start_agent, tools, tmp_path):  # noqa: F811
    script = executable(tmp_path / "wrapper", f'#!/bin/sh\nexec "{tools}/watchword-askpass" "$@"\n')
    agent = with_askpass(stage, start_agent, script)
    asking = ask(agent.broker, tools, "Password: ")
    assert asking.wait(30) == 1
    asking.communicate()
    assert "watchword-agent itself" in agent.log


def test_another_askpass_program_answers(stage, start_agent, tools, tmp_path):  # noqa: F811
    secret = stage.secret()
    script = executable(tmp_path / "other", '#!/bin/sh\necho "$1" > "$ASKED"\ncat "$TYPED"\n')
    (tmp_path / "typed").write_text(secret + "\n")
    agent = with_askpass(stage, start_agent, script, ASKED=str(tmp_path / "asked"), TYPED=str(tmp_path / "typed"))
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
    terminal.expect("Request from watchword askpass", 'asks (its name and text are not verified):\r\n    Passphrase for \ufffd[31mkey:\r\n    second line\r\n')
    terminal.answer({"Your answer (Ctrl-D to cancel): ": secret})
    assert asking.communicate(timeout=30) == (secret.encode() + b"\n", b"")
    assert secret.encode() not in terminal.shown and pathlib.Path(sys.executable).resolve().name.encode() in terminal.shown
    informing = ask(broker, tools, "Touch the token", SSH_ASKPASS_PROMPT="none")
    terminal.expect("Press Enter to close this: ")
    informing.terminate()
    terminal.expect("The prompt was withdrawn")
    informing.communicate(timeout=30)


@pytest.mark.parametrize("typed, code", [("yes\n", 0), ("\n", 1), ("\x04", 1)])
def test_the_terminal_agent_confirms(terminal_agent, tools, typed, code):  # noqa: F811
    broker, terminal = terminal_agent
    confirming = ask(broker, tools, "Use the key?", SSH_ASKPASS_PROMPT="confirm")
    terminal.expect("Allow it? yes/NO: ")
    terminal.type(typed)
    assert confirming.wait(30) == code
    confirming.communicate()


def test_the_terminal_agent_stops_the_prompts_of_a_program(terminal_agent, tools):  # noqa: F811
    broker, terminal = terminal_agent
    first = ask(broker, tools, "first")
    # Input before the prompt would be discarded.
    terminal.expect("(Ctrl-D to cancel): ")
    terminal.type("\x04")
    assert first.wait(30) == 1
    # Another caller: the first one has to wait after its cancelled prompt.
    second = ask(broker, ["/bin/sh", "-c", '"$0" "$1"; exit $?', tools / "watchword-askpass"], "second")
    terminal.expect("(Ctrl-D to cancel): ", times=2)
    terminal.type("\x04")
    terminal.answer({"? y/N: ": "y"})
    assert second.wait(30) == 1
    third = ask(broker, tools, "third")
    assert b"prompts of this program are stopped" in third.communicate(timeout=30)[1]
    for process in (first, second):
        process.communicate()
