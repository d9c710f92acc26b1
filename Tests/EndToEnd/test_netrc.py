"""Logins of a netrc file and of configured commands, as servers receive them: `credentials.netrc` and `credentials.commands`."""
import os
import pathlib
import re
import subprocess
import time

import pytest

from rig.bodies import eventually
from rig.scripted import basic, basic_server
from rig.servers import executable
from rig.terminal import Shell

OFF = "[keyring]\nenabled = false\n"
NOT_USED = "the netrc file cannot be used"


class Desk:
    """A broker with a netrc file, a server with a password, and clients that record their challenges."""

    def __init__(self, stage):
        self.stage, self.file, self.asked = stage, stage.folder / "logins.netrc", []
        self.server, self.password = stage.protected()
        self.write(f"machine 127.0.0.1:{self.server.port} login bob password {self.password}\n")
        self.config = f'{OFF}[credentials]\nnetrc = "{self.file}"\n'

    def write(self, text, mode=0o600):
        self.file.write_text(text)
        self.file.chmod(mode)

    def start(self, config=None, **more):
        self.broker = self.stage.configured(self.config if config is None else config, **more)
        return self

    def fetch(self, url=None, answer=None, **more):
        client = self.stage.client(broker=self.broker, answer=answer or {"action": "continue"})
        result = client.fetch(url or self.server.url, **more)["result"]
        self.asked += client.asked
        return result


@pytest.fixture
def desk(stage):
    return Desk(stage)


def test_an_entry_is_used_after_a_challenge_and_remembered_for_the_session(desk):
    desk.start()
    result = desk.fetch()
    assert (result["status"], result["auth"]) == (200, {"authenticationMethod": "httpBasic", "source": "netrc", "user": "bob"})
    assert desk.server.authorizations == [None, basic("bob", desk.password)] and desk.asked == []
    assert desk.fetch()["auth"]["source"] == "session"
    assert desk.server.authorizations[2:] == [basic("bob", desk.password)]
    shell = Shell(desk.broker)
    eventually(lambda: b"as bob, from the netrc file" in shell.run("log").stdout, "the log does not contain the login")
    answered = desk.stage.client(broker=desk.broker, delivery=None).call("server/status")["result"]["answeredFrom"]
    assert answered["netrc"] == 1 and answered["session"] == 1


def test_rule_l6_a_netrc_file_is_not_used_unless_it_is_configured(desk, stage):
    desk.start("")
    (desk.broker.home / ".netrc").write_text("machine 127.0.0.1 login bob password nothing\n")
    assert desk.fetch()["status"] == 401 and len(desk.asked) == 1
    assert desk.server.authorizations == [None] and NOT_USED not in desk.broker.log


def test_a_reload_switches_it_on_and_off(desk):
    desk.start("")
    assert desk.fetch()["status"] == 401
    desk.broker.reload(desk.config)
    assert desk.fetch()["auth"]["source"] == "netrc"
    desk.broker.reload("")
    desk.stage.client(broker=desk.broker, delivery=None).call("session/clear")
    assert desk.fetch()["status"] == 401
    assert desk.server.authorizations == [None, None, basic("bob", desk.password), None]


def link(file):
    file.rename(file.with_suffix(".real"))
    file.symlink_to(file.with_suffix(".real"))


def pipe(file):
    file.unlink()
    os.mkfifo(file, 0o600)


def other_access(mode):
    return lambda file: file.chmod(mode), f'(mode 0{mode:o}); run "chmod 600" on it'


@pytest.mark.parametrize("spoil, said", [
    other_access(0o640), other_access(0o604), other_access(0o602), other_access(0o644), (link, "is a symbolic link"),
    (pipe, "is not a regular file"), (lambda file: (file.unlink(), file.mkdir(0o700)), "is not a regular file"),
    (lambda file: os.truncate(file, (1 << 20) + 1), "is larger than 1048576 bytes"), (pathlib.Path.unlink, "does not exist"),
    pytest.param(lambda file: os.chown(file, 1234, 0), "belongs to user 1234", marks=pytest.mark.skipif(
        os.geteuid() != 0, reason="only root gives files away"))])
def test_an_unusable_file_is_ignored_and_the_log_has_the_reason_once(desk, spoil, said):
    spoil(desk.file)
    desk.start()
    for _ in range(2):
        assert desk.fetch()["status"] == 401
    assert desk.server.authorizations == [None, None] and len(desk.asked) == 2
    reported = lambda: [line.replace("\\", "") for line in desk.broker.log.splitlines() if NOT_USED in line]
    assert len(reported()) == 1 and said in reported()[0] and str(desk.file) in reported()[0]
    desk.broker.reload(desk.config)
    eventually(lambda: len(reported()) == 2, "the problem was not logged again after the reload")


def test_a_corrected_file_below_the_home_is_used_without_a_restart(desk):
    desk.start(OFF + '[credentials]\nnetrc = "~/.netrc"\n')
    file = desk.file.rename(desk.broker.home / ".netrc")
    try:
        file.chmod(0o644)
        assert desk.fetch()["status"] == 401
        file.chmod(0o600)
        assert desk.fetch()["auth"]["source"] == "netrc"
        # The same problem is reported again once the file has been used in between.
        desk.stage.client(broker=desk.broker, delivery=None).call("session/clear")
        file.chmod(0o644)
        assert desk.fetch()["status"] == 401
        assert desk.broker.log.count("(mode 0644)") == 2
    finally:
        file.unlink()


NOT_SUPPLIED = "a configured command supplied no password"
UNUSABLE = "the first line of its output is empty, longer than "


def script(folder, text, name="ask"):
    """A program that notes its calls in the file `calls`, and then runs `text` in a shell."""
    return executable(folder / name, f'#!/bin/sh\necho "$0 $*" >> {folder}/calls\n{text}\n')


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
def command(stage):
    return Command(stage)


def test_the_first_line_of_the_output_is_the_password(command):
    command.store(command.password, "login: carol", "a note")
    command.start()
    assert command.calls == []
    result = command.fetch()
    assert (result["status"], result["auth"]) == (200, {"authenticationMethod": "httpBasic", "source": "command", "user": "bob"})
    assert command.server.authorizations == [None, basic("bob", command.password)] and command.asked == []
    # The session answers now.
    assert command.fetch()["auth"]["source"] == "session" and len(command.calls) == 1
    assert command.stage.client(broker=command.broker).call("server/status")["result"]["answeredFrom"]["command"] == 1


def test_arguments_are_passed_without_a_shell(command):
    file = script(command.stage.folder, f'[ "$#" = 2 ] && [ "$2" = "*" ] && cat {command.stage.folder}/store/"$1"')
    command.start(command.using(file, "first", "*"))
    assert command.fetch()["auth"]["source"] == "command"


@pytest.mark.parametrize("place", ["localhost", "127.0.0.1:1", "*.example"])
def test_no_command_is_run_for_another_host_or_port(command, place):
    command.start(command.using(command.stage.folder / "ask", place=place))
    assert command.fetch()["status"] == 401 and command.calls == [] and len(command.asked) == 1


def test_the_password_goes_to_no_user_but_its_own(command):
    other = command.stage.secret(command.server)
    command.start()
    own = {"type": "password", "user": "carol", "password": other}
    assert command.fetch(credential=own)["status"] == 401
    assert command.server.authorizations == [None, basic("carol", other)]


def test_a_person_at_a_terminal_learns_which_password_was_refused(command):
    wrong = command.stage.secret(command.server)
    command.store(wrong)
    command.start()
    terminal = Shell(command.broker).at_terminal("fetch", command.server.url)
    terminal.expect("The server has refused the login from the configured command (1 failed so far).")
    terminal.answer({"User [bob]: ": "", "Password for bob: ": command.password})
    assert terminal.end() == 0
    assert command.server.authorizations == [None, basic("bob", wrong), basic("bob", command.password)]


@pytest.mark.parametrize("text, reason", [
    ("echo {password}; exit 3", "it exited with status 3"), ("true", UNUSABLE), ("echo", UNUSABLE),
    ("printf 'a\\tb'", UNUSABLE), ("head -c 9000 /dev/zero | tr '\\0' a", UNUSABLE),
    ("kill -9 $$", "it was ended by signal 9"), ("yes | head -c 70000", "its output is longer than 65536 bytes"),
    (None, "cannot run it: No such file or directory"),
])
def test_a_command_that_fails_leads_to_a_question(command, text, reason):
    file = command.stage.folder / "missing"
    if text is not None:
        file = script(command.stage.folder, text.format(password=command.password), "failing")
    command.start(command.using(file))
    assert command.fetch()["status"] == 401 and command.server.authorizations == [None] and len(command.asked) == 1
    eventually(lambda: NOT_SUPPLIED in command.broker.log, "nothing was logged")
    assert reason in command.broker.log and command.password not in command.broker.log


def test_a_child_that_keeps_the_output_open_is_ended_and_the_output_used(command):
    seconds = f"6{command.server.port}"
    file = script(command.stage.folder, f"sleep {seconds} & cat {command.stage.folder}/store/first")
    command.start(command.using(file))
    # At its limit of 30 s, the command would have failed.
    assert command.fetch()["auth"]["source"] == "command"
    eventually(lambda: f"sleep {seconds}" not in processes(), "a child of the command is left")


def processes():
    return subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout.splitlines()


def test_few_commands_run_at_the_same_time(command):
    pipe = command.stage.folder / "pipe"
    os.mkfifo(pipe)
    command.start(command.using(script(command.stage.folder, f"cat {pipe}"), place="127.0.0.1"))
    client = command.stage.client(broker=command.broker)
    servers = [command.stage.server(basic_server("bob", command.password)) for _ in range(4)]
    for server in servers:
        client.start("fetch/run", {"url": server.url})
    eventually(lambda: len(command.calls) == 4, lambda: f"{len(command.calls)} commands were run")
    assert command.fetch()["status"] == 401 and len(command.calls) == 4
    assert "4 commands are already running" in command.broker.log


def test_a_waiting_command_delays_no_other_fetch(command):
    pipe = command.stage.folder / "pipe"
    os.mkfifo(pipe)
    command.start(command.using(script(command.stage.folder, f"cat {pipe}")))
    client = command.stage.client(broker=command.broker)
    fetch = client.start("fetch/run", {"url": command.server.url})
    eventually(lambda: command.calls, "the command was not run")
    other = command.stage.server(basic_server("carol", "x"))
    assert command.fetch(other.url)["status"] == 401
    pipe.write_text(f"{command.password}\n")
    assert client.wait(fetch)["result"]["auth"]["source"] == "command"


def test_a_waiting_command_ends_with_the_broker(command):
    seconds = f"7{command.server.port}"
    command.start(command.using(script(command.stage.folder, f"sleep {seconds}")))
    command.stage.client(broker=command.broker).start("fetch/run", {"url": command.server.url})
    eventually(lambda: f"sleep {seconds}" in processes(), "the command was not run")
    command.broker.process.terminate()
    assert command.broker.process.wait(20) == 0
    assert f"sleep {seconds}" not in processes()


@pytest.mark.tier3("waits for the time limit of 30 s")
def test_a_command_has_30_seconds(command):
    command.start(command.using(script(command.stage.folder, "sleep 90")))
    begin = time.monotonic()
    client = command.stage.client(broker=command.broker, answer=lambda params: {"action": "continue"})
    assert client.fetch(command.server.url, 60)["result"]["status"] == 401
    assert 29 < time.monotonic() - begin < 40 and "it did not end within 30" in command.broker.log


def test_the_environment_and_the_descriptors_of_a_command(command):
    folder = command.stage.folder
    command.start(command.using(script(folder, f"env > {folder}/env; ls -l /proc/self/fd > {folder}/fds; cat {folder}/store/first")))
    assert command.fetch()["auth"]["source"] == "command"
    names = {line.partition("=")[0] for line in (folder / "env").read_text().splitlines()}
    assert {"HOME", "PATH"} <= names and "LD_PRELOAD" not in names
    fds = re.findall(r" (\d+) -> (\S+)", (folder / "fds").read_text())
    assert [one for one in fds if int(one[0]) > 2 and not one[1].startswith("/proc")] == [], fds
    assert dict(fds)["0"] == "/dev/null" and dict(fds)["2"] == "/dev/null"


def test_no_signal_is_blocked_in_a_command(command):
    # A shell would unblock them itself.
    text = f"import signal\nprint({command.password!r} if not signal.pthread_sigmask(signal.SIG_BLOCK, []) else '')"
    command.start(command.using(executable(command.stage.folder / "mask", f"#!/usr/bin/python3\n{text}\n")))
    assert command.fetch()["auth"]["source"] == "command", command.broker.log


def test_the_netrc_file_comes_first(command):
    other = command.stage.secret(command.server)
    command.server.close()
    command.server = command.stage.server(basic_server("carol", other))
    command.stage.allow(other, command.server)
    command.write(f"machine 127.0.0.1:{command.server.port} login carol password {other}\n")
    ask = command.stage.folder / "ask"
    command.start(command.using(ask, more=f'netrc = "{command.file}"\n'))
    assert command.fetch()["auth"] == {"authenticationMethod": "httpBasic", "source": "netrc", "user": "carol"}
    assert command.calls == []


def test_pass(command):
    """The password manager pass(1), with a key of GnuPG without a passphrase."""
    home = command.stage.folder / "home"
    home.mkdir(exist_ok=True)
    environment = {"HOME": str(home), "PATH": os.environ["PATH"]}

    def run(*command, text=None):
        subprocess.run(command, env=environment, input=text, text=True, check=True, capture_output=True, timeout=60)

    try:
        key = ["Watchword test <test@example.org>", "future-default", "default", "never"]
        run("gpg", "--batch", "--passphrase", "", "--quick-generate-key", *key)
        run("pass", "init", "test@example.org")
        run("pass", "insert", "--multiline", "work/site", text=f"{command.password}\nlogin: bob\n")
        command.start(command.using("/usr/bin/pass", "show", "work/site"), environment={"HOME": str(home)})
        result = command.fetch()
        assert (result["status"], result["auth"]["source"]) == (200, "command"), command.broker.log
    finally:
        subprocess.run(["gpgconf", "--kill", "all"], env=environment, check=False, timeout=20)


def test_a_reload_with_another_command_takes_effect(command):
    command.store("no longer valid")
    command.start()
    second = script(command.stage.folder, f"cat {command.stage.folder}/store/second", "second")
    (pathlib.Path(command.stage.folder) / "store" / "second").write_text(f"{command.password}\n")
    command.broker.reload(command.using(second))
    assert command.fetch()["auth"]["source"] == "command"
    assert [line.split()[0] for line in command.calls] == [str(second)]
