"""`watchword doctor`: the problems that it finds, the fixes that it suggests, and that it changes nothing; and the tables `[oauth."URL"]` of
the configuration with the secrets of clients."""
import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess

import pytest

from rig import memory
from rig.bodies import eventually
from rig.broker import program
from rig.scripted import response
from rig.servers import free_port, private, written
from rig.terminal import Shell


def run(environment, *arguments):
    return subprocess.run(
        [program("watchword"), "doctor", *arguments], env=environment, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)


def findings(environment, *arguments):
    done = run(environment, "--json", *arguments)
    return done.returncode, {finding["name"]: finding for finding in json.loads(done.stdout)["findings"]}


@pytest.fixture
def alone(tmp_path):
    """The environment of a user directly after login, without a broker."""
    runtime, home = tmp_path / "run", tmp_path / "home"
    runtime.mkdir(mode=0o700), home.mkdir()
    return {"HOME": str(home), "XDG_RUNTIME_DIR": str(runtime), "PATH": os.environ["PATH"], "KRB5CCNAME": f"FILE:{home}/none"}


def test_a_broker_that_runs(stage):
    code, found = findings(Shell(stage.broker()).environment)
    assert code == 0
    assert found["Socket"]["verdict"] == "good" and found["Broker"]["text"].startswith("Version ")
    assert found["Keyring"]["verdict"] == "doubtful" and "session bus" in found["Keyring"]["text"]
    assert found["Agent"]["verdict"] == "doubtful" and "watchword agent" in found["Agent"]["advice"]
    assert found["Libraries"]["verdict"] == found["Lock"]["verdict"] == found["Certificates"]["verdict"] == "good"


def test_an_agent_a_keyring_and_a_lock_are_reported(stage, gnome):
    environment = Shell(stage.broker(environment=gnome.environment)).environment
    client = stage.client()
    client.call("agent/register", {"name": "desk"})
    code, found = findings(environment)
    assert code == 0 and found["Agent"]["text"] == "desk prompts you for other programs."
    assert found["Keyring"] == {"name": "Keyring", "verdict": "good", "text": "It can be used.", "advice": None}
    client.call("broker/lock", {})
    code, found = findings(environment)
    assert code == 0 and found["Lock"]["advice"] == "Run: watchword unlock"


def test_none_is_started_and_nothing_written(alone):
    code, found = findings(alone)
    assert code == 0 and found["Broker"]["text"] == "It is not running."
    assert "systemctl --user enable --now watchword.socket" in found["Broker"]["advice"]
    assert os.listdir(alone["XDG_RUNTIME_DIR"]) == [] and os.listdir(alone["HOME"]) == []


@pytest.mark.parametrize("prepare, words, found", [
    (lambda run: (run / "watchword").mkdir(mode=0o755), [], ("advice", "Run: chmod 700 ")),
    (lambda run: run.rmdir(), [], ("advice", "XDG_RUNTIME_DIR")),
    (lambda run: None, ["--socket", "/tmp/" + "x" * 120], ("text", "longer than 107 bytes"))], ids=["others", "none", "long"])
def test_a_socket_that_cannot_be_made(alone, prepare, words, found):
    prepare(pathlib.Path(alone["XDG_RUNTIME_DIR"]))
    code, findings_ = findings(alone, *words)
    assert code == 1 and found[1] in findings_["Socket"][found[0]]


def test_a_configuration_with_a_mistake(alone):
    path = private(written(alone["HOME"], {".config/watchword/config.toml": ""}) / ".config/watchword/config.toml", "[fetch]\nalow = []\n")
    code, found = findings(alone)
    assert code == 1 and "alow" in found["Configuration"]["text"]
    path.write_text('[proxy]\nurl = "http://proxy.example:3128"\n')
    code, found = findings(alone)
    assert code == 0 and found["Configuration"]["text"] == f"{path} is valid."


def test_a_proxy_that_the_configuration_names(stage):
    """Its host, of 253 characters, is shown whole."""
    host = "www.mybank.example-login." + ".".join(letter * 63 for letter in "abc") + "." + "d" * 22 + ".evil.example"
    broker = stage.configured(f'[proxy]\nurl = "http://{host}:3128"\n')
    _, found = findings({**Shell(broker).environment, "https_proxy": "http://other.example"})
    assert found["Proxy"] == {"name": "Proxy", "verdict": "good", "text": f"The broker uses http://{host}:3128.", "advice": None}


def test_the_choice_of_upstream_proxies(stage):
    rules = '[[proxy.rule]]\nhosts = ["a.test"]\nuse = ["http://127.0.0.1:1"]\n'
    script = private(stage.folder / "proxy.pac", "function FindProxyForURL() { return 'DIRECT'; }")
    broker = stage.configured(f'[proxy]\npac = "file://{script}"\n{rules}')
    code, found = findings(Shell(broker).environment)
    assert code == 0 and found["Upstream proxies"]["text"].startswith("The broker uses 1 rule and the PAC file file:///")
    assert found["Proxy"] == {"name": "Proxy", "verdict": "good", "text": "There is no proxy for all hosts.", "advice": None}
    assert "error" in stage.client(broker=broker).fetch("http://a.test/")
    code, found = findings(Shell(broker).environment)
    assert code == 0 and found["Upstream proxies"]["verdict"] == "doubtful"
    assert found["Upstream proxies"]["text"] == "http://127.0.0.1:1 could not be reached lately."


def test_a_pac_file_by_plain_http_and_one_that_cannot_be_used(stage):
    server = stage.server(lambda request: response(200, b"function FindProxyForURL() { return 'DIRECT'; }"))
    # Linux connects to this machine, although this is not one of its addresses.
    broker = stage.configured(f'[proxy]\npac = "http://0.0.0.0:{server.port}/p?token=secret"\n')
    code, found = findings(Shell(broker).environment)
    assert (code, found["Upstream proxies"]["verdict"]) == (0, "doubtful")
    assert found["Upstream proxies"]["text"].startswith(f"http://0.0.0.0:{server.port}/p is fetched by http")
    broker = stage.configured('[proxy]\npac = "file:///nonexistent/proxy.pac"\n')
    assert "error" in stage.client(broker=broker).fetch("http://a.test/")
    code, found = findings(Shell(broker).environment)
    assert (code, found["Upstream proxies"]["verdict"]) == (1, "bad")
    assert "cannot read the PAC file /nonexistent/proxy.pac" in found["Upstream proxies"]["text"]
    assert "proxy.url" in found["Upstream proxies"]["advice"]


def test_a_proxy_that_only_the_environment_names(alone):
    code, found = findings({**alone, "https_proxy": "http://bob:open@proxy.example:3128"})
    assert code == 0 and found["Proxy"]["verdict"] == "doubtful" and "proxy.url" in found["Proxy"]["advice"]
    assert "open" not in json.dumps(found["Proxy"]), "the variable may contain a password"


def test_kerberos_with_a_ticket_and_without(alone, realm, kerberos_users):
    _, found = findings({**alone, **realm.environment()})
    assert found["Kerberos"]["verdict"] == "doubtful" and "kinit" in found["Kerberos"]["advice"]
    _, found = findings({**alone, **realm.log_in("alice", kerberos_users["alice"], "doctor")})
    assert found["Kerberos"]["verdict"] == "good" and "valid ticket" in found["Kerberos"]["text"]


def test_without_the_daemon(alone, tmp_path):
    shutil.copy(program("watchword"), tmp_path / "watchword")
    done = subprocess.run([tmp_path / "watchword", "doctor", "--json"], env={**alone, "PATH": "/nowhere"}, capture_output=True, timeout=60)
    found = {finding["name"]: finding for finding in json.loads(done.stdout)["findings"]}
    assert done.returncode == 1 and "$PATH" in found["Libraries"]["text"]


def test_for_people_it_is_lines_and_for_terminals_coloured(stage):
    shell = Shell(stage.broker())
    lines = run(shell.environment).stdout.splitlines()
    assert lines[0].startswith("ok    Socket: /") and any(line.startswith("warn  Agent: ") for line in lines)
    coloured = shell.at_terminal("doctor")
    coloured.end()
    assert b"Socket: /" in coloured.shown and b"\x1b[" not in coloured.shown, "TERM=dumb"
    for extra, is_coloured in [({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False)]:
        shell.environment.update(extra)
        terminal = shell.at_terminal("doctor")
        terminal.end()
        assert (b"\x1b[32m" in terminal.shown) == is_coloured


def test_fronts_that_listen_and_one_that_cannot(stage):
    port = free_port()
    for problem in [False, True]:
        with socket.create_server(("127.0.0.1", port)) if problem else contextlib.nullcontext():
            broker = stage.configured(f'[front]\nproxy = "127.0.0.1:{port}"\nhosts = ["h.example"]\n')
            shell = Shell(broker)
            code, found = findings(shell.environment)
            status = shell.run("front", "status")
            assert f"127.0.0.1:{port}".encode() in status.stdout and (code, status.returncode) == (problem, problem)
            if problem:
                assert found["Fronts"]["verdict"] == "bad"
                assert "Address already in use" in found["Fronts"]["text"] and b"Address already in use" in status.stderr
            else:
                assert found["Fronts"]["text"] == '1 front, without an upstream proxy; see "watchword front status".'
            assert broker.stop() == 0


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

    def write(self, mode=0o600):
        self.file.unlink(missing_ok=True)
        private(self.file, f"{self.secret}\n", mode)

    def check(self, text, *options):
        path = private(self.stage.folder / "checked.toml", text)
        environment = {**os.environ, "HOME": str(self.stage.folder)}
        done = subprocess.run([program("watchword"), "config", "check", *options, str(path)], env=environment, capture_output=True, text=True, timeout=30)
        assert self.secret not in done.stdout + done.stderr
        return done.returncode, done.stdout + done.stderr

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


def test_config_check_reads_tables_and_their_secrets(desk):
    assert desk.check(table(desk.file)) == (0, f"{desk.stage.folder}/checked.toml: valid\n")
    assert desk.check(table("~/client.secret"))[0] == 0
    desk.write(mode=0o640)
    code, text = desk.check(table(desk.file), "--json")
    found = json.loads(text)
    assert code == 1 and not found["inOrder"] and KEY in found["lines"][1] and len(found["lines"]) == 2


def test_a_broker_starts_without_a_secret_and_says_why(desk):
    """The rest of the configuration is in effect."""
    desk.write(mode=0o644)
    broker = desk.stage.configured(table(desk.file) + '[fetch]\ndeny = ["denied.example"]\n')
    assert broker.log.count(NOT_USED) == 1 and f"line 4: {KEY}: other users have access" in broker.log
    client = desk.stage.client(broker=broker)
    assert client.fetch("http://denied.example/")["error"]["data"]["kind"] == "denied"
    assert client.fetch(desk.stage.server(lambda request: response(200, b"here")).url)["result"]["status"] == 200


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
