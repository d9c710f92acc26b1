"""Logins of a netrc file, as servers receive them: `credentials.netrc` of the configuration."""
import os
import pathlib

import pytest

from rig.bodies import eventually
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
