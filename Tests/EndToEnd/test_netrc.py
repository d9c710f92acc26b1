"""Logins of a netrc file, as servers receive them: `credentials.netrc` of the configuration."""
import os
import pathlib

import pytest

from rig.bodies import eventually
from rig.client import Client
from rig.scripted import basic
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

    def reload(self, config):
        pathlib.Path(self.broker.options[self.broker.options.index("--config") + 1]).write_text(config)
        read = self.broker.log.count("configuration reloaded")
        os.kill(self.broker.process.pid, 1)
        eventually(lambda: self.broker.log.count("configuration reloaded") > read, "the configuration was not reloaded")

    def fetch(self, url=None, answer=None, **more):
        def answered(params):
            self.asked.append(params)
            return answer or {"action": "continue"}

        return self.stage.client(broker=self.broker, answer=answered).fetch(url or self.server.url, **more)["result"]


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


def test_a_path_below_the_home(desk):
    desk.start(OFF + '[credentials]\nnetrc = "~/.netrc"\n')
    file = desk.broker.home / ".netrc"
    desk.file.rename(file)
    try:
        assert desk.fetch()["auth"]["source"] == "netrc"
    finally:
        file.unlink()


def test_a_reload_switches_it_on_and_off(desk):
    desk.start("")
    assert desk.fetch()["status"] == 401
    desk.reload(desk.config)
    assert desk.fetch()["auth"]["source"] == "netrc"
    desk.reload("")
    desk.stage.client(broker=desk.broker, delivery=None).call("session/clear")
    assert desk.fetch()["status"] == 401
    assert desk.server.authorizations == [None, None, basic("bob", desk.password), None]


def test_errors_in_the_file_are_logged_at_the_start_and_at_each_reload(desk):
    desk.file.chmod(0o644)
    desk.start()
    for times in (1, 2):
        eventually(lambda: desk.broker.log.count(NOT_USED) == times, "the problem was not logged as often as expected")
        desk.reload(desk.config)


def link(file):
    file.rename(file.with_suffix(".real"))
    file.symlink_to(file.with_suffix(".real"))


def pipe(file):
    file.unlink()
    os.mkfifo(file, 0o600)


def large(file):
    with open(file, "a") as out:
        out.write("#" * (1 << 20))


@pytest.mark.parametrize("spoil, said", [
    (lambda file: file.chmod(0o640), '(mode 0640); run \\"chmod 600\\" on it'),
    (lambda file: file.chmod(0o602), "other users have access to"), (link, "is a symbolic link"), (pipe, "is not a regular file"),
    (lambda file: (file.unlink(), file.mkdir(0o700)), "is not a regular file"), (large, "is larger than 1048576 bytes"),
    (lambda file: file.unlink(), "does not exist"),
    pytest.param(lambda file: os.chown(file, 1234, 0), "belongs to user 1234", marks=pytest.mark.skipif(
        os.geteuid() != 0, reason="only root gives files away"))])
def test_an_unusable_file_is_ignored_and_the_log_has_the_reason(desk, spoil, said):
    spoil(desk.file)
    desk.start()
    for _ in range(2):
        assert desk.fetch()["status"] == 401
    assert desk.server.authorizations == [None, None] and len(desk.asked) == 2
    said = said.replace("\\", "")
    lines = [line for line in desk.broker.log.replace("\\", "").splitlines() if NOT_USED in line]
    assert len(lines) == 1 and said in lines[0] and str(desk.file) in lines[0], "once, and not for each fetch"


def test_a_corrected_file_is_used_without_a_restart(desk):
    desk.file.chmod(0o644)
    desk.start()
    assert desk.fetch()["status"] == 401
    desk.file.chmod(0o600)
    assert desk.fetch()["auth"]["source"] == "netrc"


def test_no_entry_is_used_for_the_restricted_socket(desk):
    desk.start()
    other = Client(os.path.join(os.path.dirname(desk.broker.socket), "restricted.sock"), answer=lambda params: {"action": "continue"})
    desk.stage.clients.append(other)
    assert other.fetch(desk.server.url)["result"]["status"] == 401
    assert desk.server.authorizations == [None]


def test_nginx(desk, nginx, account):
    user, password = account
    desk.write(f"machine 127.0.0.1:{nginx.port} login {user} password {password}\n")
    desk.start()
    result = desk.fetch(f"http://127.0.0.1:{nginx.port}/staff/page.txt")
    assert (result["status"], result["auth"]["source"]) == (200, "netrc")
