"""Passwords printed by configured commands, as servers receive them: `credentials.commands` of the configuration."""
import os
import pathlib
import re
import subprocess
import time

import pytest

from rig.bodies import eventually
from rig.scripted import basic_server
from rig.terminal import Shell
from test_netrc import OFF, Desk, basic

NOT_USED = "a configured command supplied no password"
UNUSABLE = "the first line of its output is empty, longer than "


def script(folder, text, name="ask"):
    """A program that notes its calls in the file `calls`, and then runs `text` in a shell."""
    file = folder / name
    file.write_text(f'#!/bin/sh\necho "$0 $*" >> {folder}/calls\n{text}\n')
    file.chmod(0o700)
    return file


class Command(Desk):
    def __init__(self, stage):
        super().__init__(stage)
        (stage.folder / "store").mkdir()
        self.config = self.using(script(stage.folder, f"cat {stage.folder}/store/first"))
        self.store(self.password)

    def store(self, *lines):
        (self.stage.folder / "store" / "first").write_text("".join(f"{line}\n" for line in lines))

    def using(self, file, *arguments, place=None, more=""):
        place = place or f"127.0.0.1:{self.server.port}"
        line = " ".join([place, "bob", str(file), *arguments])
        return f'{OFF}[credentials]\ncommands = ["{line}"]\n{more}'

    @property
    def calls(self):
        file = self.stage.folder / "calls"
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def desk(stage):
    return Command(stage)


def test_the_first_line_of_the_output_is_the_password(desk):
    desk.store(desk.password, "login: carol", "a note")
    desk.start()
    assert desk.calls == []
    result = desk.fetch()
    assert (result["status"], result["auth"]) == (200, {"authenticationMethod": "httpBasic", "source": "command", "user": "bob"})
    assert desk.server.authorizations == [None, basic("bob", desk.password)] and desk.asked == []
    # The session answers now.
    assert desk.fetch()["auth"]["source"] == "session" and len(desk.calls) == 1
    assert desk.stage.client(broker=desk.broker).call("server/status")["result"]["answeredFrom"]["command"] == 1


def test_arguments_are_passed_without_a_shell(desk):
    file = script(desk.stage.folder, f'[ "$#" = 2 ] && [ "$2" = "*" ] && cat {desk.stage.folder}/store/"$1"')
    desk.start(desk.using(file, "first", "*"))
    assert desk.fetch()["auth"]["source"] == "command"


@pytest.mark.parametrize("place", ["localhost", "127.0.0.1:1", "*.example"])
def test_no_command_is_run_for_another_host_or_port(desk, place):
    desk.start(desk.using(desk.stage.folder / "ask", place=place))
    assert desk.fetch()["status"] == 401 and desk.calls == [] and len(desk.asked) == 1


def test_the_password_goes_to_no_user_but_its_own(desk):
    other = desk.stage.secret(desk.server)
    desk.start()
    own = {"type": "password", "user": "carol", "password": other}
    assert desk.fetch(credential=own)["status"] == 401
    assert desk.server.authorizations == [None, basic("carol", other)]


def test_a_person_at_a_terminal_learns_which_password_was_refused(desk):
    wrong = desk.stage.secret(desk.server)
    desk.store(wrong)
    desk.start()
    terminal = Shell(desk.broker).at_terminal("fetch", desk.server.url)
    terminal.expect("The server has refused the login from the configured command (1 failed so far).")
    terminal.answer({"User [bob]: ": "", "Password for bob: ": desk.password})
    assert terminal.end() == 0
    assert desk.server.authorizations == [None, basic("bob", wrong), basic("bob", desk.password)]


@pytest.mark.parametrize("text, reason", [
    ("echo {password}; exit 3", "it exited with status 3"), ("true", UNUSABLE), ("echo", UNUSABLE),
    ("printf 'a\\tb'", UNUSABLE), ("head -c 9000 /dev/zero | tr '\\0' a", UNUSABLE),
    ("kill -9 $$", "it was ended by signal 9"), ("yes | head -c 70000", "its output is longer than 65536 bytes"),
    (None, "cannot run it: No such file or directory"),
])
def test_a_command_that_fails_leads_to_a_question(desk, text, reason):
    file = desk.stage.folder / "missing"
    if text is not None:
        file = script(desk.stage.folder, text.format(password=desk.password), "failing")
    desk.start(desk.using(file))
    assert desk.fetch()["status"] == 401 and desk.server.authorizations == [None] and len(desk.asked) == 1
    eventually(lambda: NOT_USED in desk.broker.log, "nothing was logged")
    assert reason in desk.broker.log and desk.password not in desk.broker.log


def test_a_child_that_keeps_the_output_open_is_ended_and_the_output_used(desk):
    seconds = f"6{desk.server.port}"
    file = script(desk.stage.folder, f"sleep {seconds} & cat {desk.stage.folder}/store/first")
    desk.start(desk.using(file))
    # At its limit of 30 s, the command would have failed.
    assert desk.fetch()["auth"]["source"] == "command"
    eventually(lambda: f"sleep {seconds}" not in processes(), "a child of the command is left")


def processes():
    return subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout.splitlines()


def test_few_commands_run_at_the_same_time(desk):
    pipe = desk.stage.folder / "pipe"
    os.mkfifo(pipe)
    desk.start(desk.using(script(desk.stage.folder, f"cat {pipe}"), place="127.0.0.1"))
    client = desk.stage.client(broker=desk.broker)
    servers = [desk.stage.server(basic_server("bob", desk.password)) for _ in range(4)]
    for server in servers:
        client.start("fetch/run", {"url": server.url})
    eventually(lambda: len(desk.calls) == 4, lambda: f"{len(desk.calls)} commands were run")
    assert desk.fetch()["status"] == 401 and len(desk.calls) == 4
    assert "4 commands are already running" in desk.broker.log


def test_a_waiting_command_delays_no_other_fetch(desk):
    pipe = desk.stage.folder / "pipe"
    os.mkfifo(pipe)
    desk.start(desk.using(script(desk.stage.folder, f"cat {pipe}")))
    client = desk.stage.client(broker=desk.broker)
    fetch = client.start("fetch/run", {"url": desk.server.url})
    eventually(lambda: desk.calls, "the command was not run")
    other = desk.stage.server(basic_server("carol", "x"))
    assert desk.fetch(other.url)["status"] == 401
    pipe.write_text(f"{desk.password}\n")
    assert client.wait(fetch)["result"]["auth"]["source"] == "command"


def test_a_waiting_command_ends_with_the_broker(desk):
    seconds = f"7{desk.server.port}"
    desk.start(desk.using(script(desk.stage.folder, f"sleep {seconds}")))
    desk.stage.client(broker=desk.broker).start("fetch/run", {"url": desk.server.url})
    eventually(lambda: f"sleep {seconds}" in processes(), "the command was not run")
    desk.broker.process.terminate()
    assert desk.broker.process.wait(20) == 0
    assert f"sleep {seconds}" not in processes()


@pytest.mark.tier3("waits for the time limit of 30 s")
def test_a_command_has_30_seconds(desk):
    desk.start(desk.using(script(desk.stage.folder, "sleep 90")))
    begin = time.monotonic()
    client = desk.stage.client(broker=desk.broker, answer=lambda params: {"action": "continue"})
    assert client.fetch(desk.server.url, 60)["result"]["status"] == 401
    assert 29 < time.monotonic() - begin < 40 and "it did not end within 30" in desk.broker.log


def test_the_environment_and_the_descriptors_of_a_command(desk):
    folder = desk.stage.folder
    desk.start(desk.using(script(folder, f"env > {folder}/env; ls -l /proc/self/fd > {folder}/fds; cat {folder}/store/first")))
    assert desk.fetch()["auth"]["source"] == "command"
    names = {line.partition("=")[0] for line in (folder / "env").read_text().splitlines()}
    assert {"HOME", "PATH"} <= names and "LD_PRELOAD" not in names
    fds = re.findall(r" (\d+) -> (\S+)", (folder / "fds").read_text())
    assert [one for one in fds if int(one[0]) > 2 and not one[1].startswith("/proc")] == [], fds
    assert dict(fds)["0"] == "/dev/null" and dict(fds)["2"] == "/dev/null"


def test_no_signal_is_blocked_in_a_command(desk):
    # A shell would unblock them itself.
    file = desk.stage.folder / "mask"
    file.write_text(f"#!/usr/bin/python3\nimport signal\nprint({desk.password!r} if not signal.pthread_sigmask(signal.SIG_BLOCK, []) else '')\n")
    file.chmod(0o700)
    desk.start(desk.using(file))
    assert desk.fetch()["auth"]["source"] == "command", desk.broker.log


def test_the_netrc_file_comes_first(desk):
    other = desk.stage.secret(desk.server)
    desk.server.close()
    desk.server = desk.stage.server(basic_server("carol", other))
    desk.stage.allow(other, desk.server)
    desk.write(f"machine 127.0.0.1:{desk.server.port} login carol password {other}\n")
    ask = desk.stage.folder / "ask"
    desk.start(desk.using(ask, more=f'netrc = "{desk.file}"\n'))
    assert desk.fetch()["auth"] == {"authenticationMethod": "httpBasic", "source": "netrc", "user": "carol"}
    assert desk.calls == []


def test_pass(desk):
    """The password manager pass(1), with a key of GnuPG without a passphrase."""
    home = desk.stage.folder / "home"
    home.mkdir(exist_ok=True)
    environment = {"HOME": str(home), "PATH": os.environ["PATH"]}

    def run(*command, text=None):
        subprocess.run(command, env=environment, input=text, text=True, check=True, capture_output=True, timeout=60)

    try:
        key = ["Watchword test <test@example.org>", "future-default", "default", "never"]
        run("gpg", "--batch", "--passphrase", "", "--quick-generate-key", *key)
        run("pass", "init", "test@example.org")
        run("pass", "insert", "--multiline", "work/site", text=f"{desk.password}\nlogin: bob\n")
        desk.start(desk.using("/usr/bin/pass", "show", "work/site"), environment={"HOME": str(home)})
        result = desk.fetch()
        assert (result["status"], result["auth"]["source"]) == (200, "command"), desk.broker.log
    finally:
        subprocess.run(["gpgconf", "--kill", "all"], env=environment, check=False, timeout=20)


def test_a_reload_with_another_command_takes_effect(desk):
    desk.store("no longer valid")
    desk.start()
    second = script(desk.stage.folder, f"cat {desk.stage.folder}/store/second", "second")
    (pathlib.Path(desk.stage.folder) / "store" / "second").write_text(f"{desk.password}\n")
    desk.reload(desk.using(second))
    assert desk.fetch()["auth"]["source"] == "command"
    assert [line.split()[0] for line in desk.calls] == [str(second)]
