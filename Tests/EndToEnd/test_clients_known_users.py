"""The clients of all languages choose among the stored logins that a challenge lists, and receive the outcome of the answer.

Their handlers run with the real broker and two logins in a real keyring; the login that the server receives is compared byte by
byte.
"""
import json
import subprocess

import pytest

from rig.clients import CLIENTS, scripted
from rig.keyring import description
from rig.languages import built
from rig.scripted import basic, basic_server
from rig.terminal import Terminal

LANGUAGES = ["python", "asyncio", "shell", "node", "perl", "go", "rust"]


@pytest.fixture
def choose(stage, gnome, tmp_path_factory):
    """`choose(language, users, wanted)` returns the output of its program, and the login that the server received. Each user
    has a password of its own, and the server requires that of `wanted`."""
    def choose(name, users, wanted):
        language = built({"asyncio": "python"}.get(name, name), tmp_path_factory)
        command = language.program("known")
        passwords = {user: stage.secret() for user in users}
        server = stage.server(basic_server(wanted, passwords[wanted]))
        stage.allow(passwords[wanted], server)
        for user, password in passwords.items():
            gnome.put(password, **description(server, user))
        broker = stage.broker(environment=gnome.for_broker)
        done = language.run(f"{server.url} {wanted}{' async' if name == 'asyncio' else ''}", broker.socket, command=command)
        assert done.returncode == 0, done.stderr.decode()
        said = (done.stdout + done.stderr).decode()
        assert not any(password in said for password in passwords.values())
        told = dict(line.split(" ", 1) for line in said.splitlines() if line.startswith(("known ", "resolved ", "body ")))
        return told, server, basic(wanted, passwords[wanted])
    return choose


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_stored_login_is_chosen_and_its_outcome_reported(choose, language):
    told, server, right = choose(language, ["bob", "alice"], "alice")
    assert sorted(told["known"].split(",")) == ["alice", "bob"]
    assert told["resolved"] == "accepted alice" and "body" in told
    assert server.authorizations == [None, right]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("users, wanted", [(["k", "\u212a"], "\u212a"), (["cafe\u0301", "caf\u00e9"], "caf\u00e9")], ids=["kelvin", "nfc"])
def test_names_that_look_the_same_are_different_users(choose, language, users, wanted):
    told, server, right = choose(language, users, wanted)
    assert sorted(told["known"].split(",")) == sorted(users) and told["resolved"] == f"accepted {wanted}"
    assert server.authorizations == [None, right]


# The shell's own prompt

KNOWN = [{"id": "keyring:/1", "user": "alice", "source": "keyring"}, {"id": "session:2", "user": "bob", "domain": "CORP", "source": "session"},
         {"id": "session:3", "user": "\u212a", "source": "session"}]
CHALLENGE = {"accepts": ["password"], "url": "https://h/", "knownUsers": KNOWN,
             "protectionSpace": {"protocol": "https", "host": "h", "port": 443, "realm": "Staff"}}


@pytest.mark.parametrize("typed, identifier", [
    ("alice", "keyring:/1"), ("CORP\\bob", "session:2"), ("\u212a", "session:3"), ("bob", None), ("Alice", None), ("K", None),
    (" alice", None)])
def test_the_shell_takes_the_name_of_a_saved_login(tmp_path, typed, identifier):
    (tmp_path / "challenge").write_text(json.dumps(CHALLENGE))
    terminal = Terminal(
        "/bin/bash", "-c", f". {CLIENTS}/shell/watchword.sh; watchword_answer <{tmp_path}/challenge >{tmp_path}/answer",
        environment={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LC_ALL": "C.UTF-8", "TERM": "dumb"})
    terminal.expect("Saved logins: \"alice\", \"CORP\\bob\", \"\u212a\". Type one of these names to use it.")
    terminal.answer({"User: ": typed})
    if not identifier:
        terminal.answer({"Password: ": "x"})
    assert terminal.end() == 0
    credential = json.loads((tmp_path / "answer").read_text())["credential"]
    assert credential == (
        {"type": "stored", "id": identifier} if identifier else {"type": "password", "user": typed, "password": "x"})


def test_the_shell_ends_at_an_error_without_an_id(tmp_path):
    """The broker sends an error without an id in reply to a request that it cannot parse."""
    tmp_path.chmod(0o700)
    error = {"code": -32700, "message": "Parse error", "data": {"kind": "unreadable"}}
    with scripted(tmp_path, lambda asked: [{"id": None, "error": error}]) as path:
        done = subprocess.run(
            ["/bin/bash", "-c", f". {CLIENTS}/shell/watchword.sh; watchword_fetch http://h/"], capture_output=True, timeout=30,
            env={"PATH": "/usr/bin:/bin", "WATCHWORD_SOCKET": path}, check=False)
    assert done.returncode == 1 and b"Parse error (unreadable)" in done.stderr and not done.stdout
