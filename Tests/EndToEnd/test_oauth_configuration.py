"""The tables `[oauth."URL"]` of the configuration, and the files with the secrets of clients."""
import json
import os
import pathlib
import subprocess

import pytest

from rig import memory
from rig.bodies import eventually
from rig.broker import program
from rig.scripted import response

NOT_USED = "a file that the configuration names cannot be used"
KEY = 'oauth."https://api.example/v1".client-secret-file'


def table(secret):
    return ('[oauth."https://api.example/v1"]\nissuer = "https://login.example"\nclient-id = "watchword"\n'
            f'client-secret-file = "{secret}"\nflow = "client-credentials"\n')


class Desk:
    """A configuration with a client whose secret is in a file."""

    def __init__(self, stage):
        self.stage, self.file = stage, stage.folder / "client.secret"
        self.secret = stage.secret()
        self.write()

    def write(self, text=None, mode=0o600):
        self.file.unlink(missing_ok=True)
        self.file.write_text(f"{self.secret}\n" if text is None else text)
        self.file.chmod(mode)

    def check(self, text, home=None):
        path = self.stage.folder / "checked.toml"
        path.write_text(text)
        path.chmod(0o600)
        environment = {**os.environ, "HOME": str(home or self.stage.folder)}
        done = subprocess.run([program("watchword"), "config", "check", str(path)], env=environment, capture_output=True, text=True, timeout=30)
        assert self.secret not in done.stdout + done.stderr
        return done.returncode, done.stdout + done.stderr, path

    def reload(self, broker, text=None):
        """Returns the log since then."""
        if text is not None:
            pathlib.Path(broker.options[broker.options.index("--config") + 1]).write_text(text)
        before = broker.log
        os.kill(broker.process.pid, 1)
        eventually(lambda: broker.log.count("\n") > before.count("\n") and
                   any(text in broker.log[len(before):] for text in ["configuration reloaded", "configuration not changed"]),
                   "the configuration was not reloaded")
        # The problems of files follow in the same turn of the loop.
        self.stage.client(broker=broker).call("ping")
        return broker.log[len(before):]


@pytest.fixture
def desk(stage):
    return Desk(stage)


def test_config_check_accepts_tables_and_their_secrets(desk):
    assert desk.check(table(desk.file)) == (0, f"{desk.stage.folder}/checked.toml: valid\n", desk.stage.folder / "checked.toml")
    assert desk.check(table("~/client.secret"))[0] == 0


@pytest.mark.parametrize("text, line, problem", [
    ('[oauth."http://api.example"]\nclient-id = "w"\n', 1, "oauth: expected https://"),
    ('[oauth."https://bob:hunter2@api.example"]\nclient-id = "w"\n', 1, "oauth: remove the user name or the password"),
    ('[oauth."https://api.example"]\n', 1, 'oauth."https://api.example": client-id is missing'),
    ('[oauth."https://api.example"]\nclient-id = "w"\nisuer = "x"\n', 3, 'oauth."https://api.example".isuer: unknown option; did you mean issuer?'),
    ('[oauth."https://api.example"]\nclient-id = "w"\nredirect-port = 80\n', 3, "expected a whole number from 1024 to 65535, found 80")])
def test_config_check_names_line_and_key_of_a_mistake(desk, text, line, problem):
    code, output, _ = desk.check(text)
    assert code == 1 and f"line {line}: " in output and problem in output and "hunter2" not in output, output


def test_a_broker_starts_without_a_secret_and_says_why(desk):
    """The rest of the configuration is in effect."""
    desk.write(mode=0o644)
    broker = desk.stage.configured(table(desk.file) + '[fetch]\ndeny = ["denied.example"]\n')
    assert broker.log.count(NOT_USED) == 1 and f"line 4: {KEY}: other users have access" in broker.log
    client = desk.stage.client(broker=broker)
    assert client.fetch("http://denied.example/")["error"]["data"]["kind"] == "denied"
    server = desk.stage.server(lambda request: response(200, b"here"))
    assert client.fetch(server.url)["result"]["status"] == 200


def test_a_reload_reads_the_secret_again(desk):
    broker = desk.stage.configured(table(desk.file))
    assert NOT_USED not in broker.log
    desk.file.unlink()
    assert f"line 4: {KEY}: cannot read {desk.file}: No such file" in desk.reload(broker)
    desk.write()
    assert NOT_USED not in desk.reload(broker)
    desk.write(mode=0o640)
    assert desk.reload(broker).count(NOT_USED) == 1
    # Tables need no restart.
    assert "restart the broker" not in desk.reload(broker, '[oauth."https://other.example"]\nclient-id = "w"\n')
    assert "configuration not changed" in desk.reload(broker, '[oauth."https://other.example"]\n')
    assert "unknown option" in desk.reload(broker, '[oauth."https://other.example"]\nclient = "w"\n')


def test_the_secret_is_wiped_when_its_table_is_removed(desk):
    broker = desk.stage.configured(table(desk.file))
    pid = broker.process.pid
    assert len(memory.places(pid, desk.secret)) == 1, "the secret is not in protected memory only"
    desk.reload(broker, "")
    eventually(lambda: not memory.places(pid, desk.secret), "the secret is still in the memory of the broker")


def test_config_check_speaks_json_about_a_secret(desk):
    desk.write(mode=0o640)
    _, _, path = desk.check(table(desk.file))
    done = subprocess.run([program("watchword"), "config", "check", "--json", str(path)], capture_output=True, text=True, timeout=30)
    found = json.loads(done.stdout)
    assert done.returncode == 1 and not found["inOrder"] and KEY in found["lines"][1] and len(found["lines"]) == 2
