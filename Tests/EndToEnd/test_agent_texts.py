"""The agent's texts for hosts, URLs and names, in its windows and in the fallbacks."""
import subprocess

import pytest

from test_agent import Dialogue, message, question
from test_agent_looks import LONG_HOST

from watchword_agent import escaping, texts
from watchword_agent.fallbacks import conversation, pinentry, zenity

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
    (tmp_path / "pinentry").write_text("#!/bin/sh\n")
    (tmp_path / "pinentry").chmod(0o755)
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


def test_a_host_is_shown_whole_and_only_paths_are_shortened():
    assert escaping.host(LONG_HOST) == LONG_HOST and len(LONG_HOST) == 253
    shown = escaping.url(f"https://bob:pw@{LONG_HOST}:8443/" + "x" * 4000 + "?last")
    assert shown.startswith(f"https://{LONG_HOST}:8443/xxx") and shown.endswith("x?last") and len(shown) < 480 and "x…x" in shown


@pytest.mark.parametrize("url, shown", [
    ("https://mybank.example@evil.example\\@x", "https://evil.example\\@x"), ("https://a\u202eb/\x1b", "https://a‹U+202E›b/‹U+001B›"),
    ("http://[::1]:8080/a?b#c", "http://[::1]:8080/a?b#c"), ("no URL", "no URL"), (None, ""),
    ("https://" + "mybank.example." * 400 + "evil.example/", "https://…" + ("mybank.example." * 20 + "evil.example")[-259:] + "/")],
    ids=["user", "marks", "address", "text", "nothing", "long"])
def test_urls_are_shown_without_user_information_and_escaped(url, shown):
    assert escaping.url(url) == shown


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


def test_only_the_buttons_of_pinentry_have_marks_of_keys():
    assert pinentry._command("SETDESC", "my_host 100%\n") == "SETDESC my_host 100%25%0A"
    assert pinentry._button("my_host") == "my__host"


def test_zenity_reads_no_underscore_as_a_mark_and_has_no_line_that_is_wider_than_the_screen():
    assert zenity._beside_a_field("pay_pal.example", "User") == "pay__pal.example\n\nUser:"
    assert zenity._plain("pay_pal.example") == "pay_pal.example"
    lines = zenity._plain(f"Log in to {LONG_HOST}").split("\n")
    assert max(map(len, lines)) <= 80 and "".join(lines).endswith(LONG_HOST)


@pytest.mark.skipif(not pinentry.shutil.which("pinentry-curses"), reason="pinentry-curses is not installed")
def test_the_real_pinentry_takes_the_longest_line():
    line = pinentry._command("SETDESC", "\n" * 2000)
    said = subprocess.run(["pinentry-curses"], input=f"{line}\nBYE\n".encode(), capture_output=True, timeout=30)
    assert said.stdout.count(b"OK") == 3, said
