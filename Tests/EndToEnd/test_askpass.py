"""`watchword-askpass` asks through an agent: with a scripted agent, and as the askpass program of ssh, ssh-add, git and sudo."""
import json
import os
import pathlib
import signal
import subprocess

import pytest

from rig import audit
from rig.bodies import eventually
from rig.fixtures import new_password, reachable_folder
from rig.manager import SSHD_CONFIGURATION, SudoUser
from rig.servers import free_port
from rig.subjects import PromptAgent
from rig.terminal import Shell, Terminal
from rig.waiting import ended, started
from test_bridges import repository, tools  # noqa: F401

KEY_TEXT = "Enter passphrase for key"


class Desk:
    """A broker with a scripted agent, and programs without a terminal whose askpass program is ours."""

    def __init__(self, stage, tools):  # noqa: F811
        self.stage, self.broker, self.askpass = stage, stage.broker(), str(tools / "watchword-askpass")
        self.agent = self.new_agent()
        self.environment = {
            **Shell(self.broker).environment, "LC_ALL": "C", "SSH_ASKPASS": self.askpass, "GIT_ASKPASS": self.askpass,
            "SSH_ASKPASS_REQUIRE": "force", "GIT_CONFIG_NOSYSTEM": "1"}

    def new_agent(self, **more):
        return PromptAgent(self.stage.client(broker=self.broker, delivery=None), **more)

    def start(self, *command, **environment):
        return subprocess.Popen(
            command, env={**self.environment, **environment}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True)

    def ask(self, text, **environment):
        return self.start(self.askpass, text, **environment)

    def events(self, kind):
        return [event for event in audit.events(self.broker) if event["kind"] == kind]


@pytest.fixture
def desk(stage, tools):  # noqa: F811
    return Desk(stage, tools)


def outcome(process):
    output, errors = process.communicate(timeout=30)
    return process.returncode, output.decode(), errors.decode()


# With a scripted agent

def test_the_answer_of_the_agent_is_printed(stage, desk):
    secret = stage.secret()
    asking = desk.ask("Password for \x1b[31mbob:\nsecond line ")
    prompt = desk.agent.next()
    params = prompt["params"]
    assert params["text"] == "Password for \ufffd[31mbob:\nsecond line " and params["kind"] == "secret"
    assert params["program"].startswith("python3"), "the program that has started askpass"
    assert params["requester"]["pid"] == asking.pid and params["requester"]["subject"].endswith("/watchword")
    desk.agent.answer(prompt, secret)
    assert outcome(asking) == (0, secret + "\n", "")
    audit.wait_for(lambda: desk.events("promptAnswered"))
    [event] = desk.events("promptAnswered")
    assert (event["action"], event["program"], event["client"]["pid"]) == ("answer", params["program"], asking.pid)
    assert event["agent"]["name"] == "scripted"


def test_the_secret_is_nowhere_else(stage, desk):
    """Not in the log, the audit log, the arguments, the environment, the events, or the traffic of others."""
    secret = stage.secret()
    observer = stage.client(broker=desk.broker, name="observer")
    assert "result" in observer.call("events/subscribe", {})
    other = desk.new_agent(priority=-1)
    asking = desk.ask("Password: ")
    prompt = desk.agent.next()
    process = pathlib.Path(f"/proc/{asking.pid}")
    arguments, environment = (process / "cmdline").read_bytes(), (process / "environ").read_bytes()
    desk.agent.answer(prompt, secret)
    assert outcome(asking)[1] == secret + "\n"
    audit.wait_for(lambda: desk.events("promptAnswered"))
    assert observer.call("ping")["result"] == {} and other.client.call("ping")["result"] == {}
    assert b"promptAnswered" in observer.received_bytes and not other.asked()
    for place in (observer.received_bytes, other.client.received_bytes, desk.agent.client.received_bytes, arguments, environment):
        assert secret.encode() not in place
    assert secret not in desk.broker.log and secret not in json.dumps(audit.events(desk.broker))
    listed = stage.client(broker=desk.broker, delivery=None).call("credential/list", {})["result"]
    assert listed["credentials"] == [], "nothing is stored"


@pytest.mark.parametrize("text, hint, kind, reply, expected", [
    ("Allow use of the key?", "confirm", "confirmation", "allow", (0, "yes\n")),
    ("Allow use of the key?", "confirm", "confirmation", "cancel", (1, "")),
    ("continue connecting (yes/no/[fingerprint])? ", "", "confirmation", "allow", (0, "yes\n")),
    ("continue connecting (yes/no/[fingerprint])? ", "", "confirmation", "cancel", (0, "no\n")),
    ("Touch the token", "none", "information", "cancel", (0, "")),
])
def test_questions_without_a_secret(desk, text, hint, kind, reply, expected):
    asking = desk.ask(text, SSH_ASKPASS_PROMPT=hint)
    prompt = desk.agent.next()
    assert prompt["params"]["kind"] == kind
    getattr(desk.agent, reply)(prompt)
    assert outcome(asking) == (*expected, "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_window_closes_with_askpass(desk, number):
    """ssh ends askpass when the token was touched."""
    asking = desk.ask("Touch the token", SSH_ASKPASS_PROMPT="none")
    prompt = desk.agent.next()
    asking.send_signal(number)
    assert desk.agent.next("$/cancelRequest")["params"] == {"id": prompt["id"]}
    assert outcome(asking)[1] == ""


def test_the_window_closes_when_the_caller_has_gone(desk):
    asking = desk.ask("Password: ")
    prompt = desk.agent.next()
    asking.stdout.close()
    assert desk.agent.next("$/cancelRequest")["params"] == {"id": prompt["id"]}
    assert asking.wait(30) == 1
    asking.stderr.close()


def test_the_error_names_what_is_missing(desk):
    """An agent is not asked by its own askpass program."""
    code, _, errors = outcome(desk.ask("Password: ", WATCHWORD_ASKPASS_OF_AGENT="1"))
    assert code == 1 and "set its SSH_ASKPASS to another program" in errors and not desk.agent.asked()
    desk.agent.client.close()
    eventually(lambda: desk.stage.client(broker=desk.broker, delivery=None).call("server/status")["result"]["agents"] == [],
               "the agent is still registered")
    code, output, errors = outcome(desk.ask("Password: "))
    assert (code, output) == (1, "")
    assert errors.startswith("watchword: no terminal available to ask at, and no agent: ") and "start watchword-agent" in errors
    desk.broker.stop()
    code, _, errors = outcome(desk.ask("Password: "))
    assert code == 1 and "no terminal available" in errors and "start watchwordd" in errors


@pytest.mark.parametrize("required, place", [("", "terminal"), ("never", "terminal"), ("force", "agent"), ("prefer", "agent")])
def test_a_terminal_is_preferred_unless_ssh_requires_a_window(desk, required, place):
    out = desk.broker.folder / "answer"
    environment = {**desk.environment, "SSH_ASKPASS_REQUIRE": required}
    terminal = Terminal("/bin/sh", "-c", f'"{desk.askpass}" "Passphrase: " > "{out}"', environment=environment)
    if place == "agent":
        desk.agent.answer(desk.agent.next(), "from the agent")
    else:
        terminal.answer({"Passphrase: ": "from the terminal"})
    assert terminal.end() == 0
    assert out.read_text() == f"from the {place}\n" and bool(desk.agent.asked()) is False


def test_the_terminal_is_used_if_no_agent_runs(desk):
    desk.agent.client.close()
    terminal = Terminal(desk.askpass, "Passphrase: ", environment=desk.environment)
    terminal.answer({"Passphrase: ": "x"})
    assert terminal.end() == 0 and b"x" in terminal.shown


def test_a_terminal_in_whose_background_the_program_runs_is_not_used(desk):
    """As an editor that was started with `&`: reading from the terminal would stop it."""
    out = desk.broker.folder / "answer"
    environment = {**desk.environment, "SSH_ASKPASS_REQUIRE": ""}
    terminal = Terminal("/bin/sh", "-m", "-c", f'"{desk.askpass}" "Passphrase: " > "{out}" & wait', environment=environment)
    desk.agent.answer(desk.agent.next(), "from the agent")
    assert terminal.end() == 0
    assert out.read_text() == "from the agent\n" and b"Passphrase" not in terminal.shown


# With real programs

@pytest.fixture
def key(desk, stage):
    """An encrypted key, and its passphrase."""
    secret, path = stage.secret(), desk.broker.home / "key"
    made = subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", secret, "-C", "bob", "-f", str(path)], stdin=subprocess.DEVNULL)
    assert made.returncode == 0
    return path, secret


@pytest.fixture
def ssh_agent(desk):
    path = desk.broker.folder / "ssh-agent"
    process = desk.start("ssh-agent", "-D", "-a", str(path))
    eventually(path.exists, "ssh-agent did not start")
    yield str(path)
    process.kill()
    process.communicate()


def test_ssh_add_gets_the_passphrase_of_a_key(desk, key, ssh_agent):
    """The first answer is wrong, so ssh-add asks again."""
    path, secret = key
    adding = desk.start("ssh-add", str(path), SSH_AUTH_SOCK=ssh_agent)
    prompt = desk.agent.next()
    assert prompt["params"]["text"].startswith(f"Enter passphrase for {path}") and prompt["params"]["program"] == "ssh-add"
    desk.agent.answer(prompt, "wrong")
    prompt = desk.agent.next()
    assert "Bad passphrase" in prompt["params"]["text"]
    desk.agent.answer(prompt, secret)
    code, _, errors = outcome(adding)
    assert code == 0 and "Identity added" in errors
    assert outcome(desk.start("ssh-add", "-l", SSH_AUTH_SOCK=ssh_agent))[1].count("bob") == 1


@pytest.fixture
def sshd(desk, key):
    """A real sshd that accepts the encrypted key. Returns its port."""
    folder, port = desk.broker.home, free_port()
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "host")], check=True, stdin=subprocess.DEVNULL)
    (folder / "sshd_config").write_text(SSHD_CONFIGURATION.format(port=port, folder=folder, more=f"AuthorizedKeysFile {folder}/key.pub"))
    os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    log = folder / "sshd.log"
    process = started(["/usr/sbin/sshd", "-D", "-e", "-f", str(folder / "sshd_config")], log)
    eventually(lambda: f"Server listening on 127.0.0.1 port {port}" in log.read_text(), log.read_text)
    yield port
    process.kill()
    process.wait(20)


def ssh(desk, key, port, *command):
    known = desk.broker.home / "known"
    options = [f"UserKnownHostsFile={known}", "IdentitiesOnly=yes", "GlobalKnownHostsFile=/dev/null", "StrictHostKeyChecking=ask"]
    words = [word for option in options for word in ("-o", option)]
    return desk.start("ssh", "-F", "/dev/null", *words, "-i", str(key[0]), "-p", str(port), "127.0.0.1", *command)


def test_ssh_asks_about_the_host_and_for_the_passphrase(desk, key, sshd):
    connecting = ssh(desk, key, sshd, "echo", "logged in")
    question = desk.agent.next()
    assert question["params"]["kind"] == "confirmation" and question["params"]["program"] == "ssh"
    assert "ED25519 key fingerprint is SHA256:" in question["params"]["text"]
    desk.agent.allow(question)
    prompt = desk.agent.next()
    assert prompt["params"]["kind"] == "secret" and prompt["params"]["text"].startswith(KEY_TEXT)
    desk.agent.answer(prompt, key[1])
    code, output, errors = outcome(connecting)
    assert (code, output) == (0, "logged in\n"), errors
    assert key[1] not in errors


def test_git_gets_user_and_password(desk, stage, repository, account):  # noqa: F811
    (user, password), (url, commit) = account, repository
    fetching = desk.start("git", "ls-remote", url)
    prompt = desk.agent.next()
    assert prompt["params"]["kind"] == "text" and prompt["params"]["text"].startswith("Username for 'http://127.0.0.1")
    assert prompt["params"]["program"].startswith("git")
    desk.agent.answer(prompt, user)
    prompt = desk.agent.next()
    assert prompt["params"]["kind"] == "secret" and prompt["params"]["text"].startswith("Password for 'http://")
    desk.agent.answer(prompt, password)
    code, output, errors = outcome(fetching)
    assert code == 0 and commit in output, errors


@pytest.fixture
def user():
    """A user with a running broker, and the password."""
    assert os.geteuid() == 0, "only root can give a user a password; run the tests as root"
    password = new_password()
    with reachable_folder("sudo") as folder:
        user = SudoUser(folder, password)
        broker = started(user.inside(f"{folder}/binaries/watchwordd"), folder / "broker.log")
        try:
            eventually((user.runtime / "watchword" / "broker.sock").exists, lambda: (folder / "broker.log").read_text())
            yield user, password
            assert password not in (folder / "broker.log").read_text()
        finally:
            ended(broker)
            user.end()


def test_sudo_gets_its_password_from_the_agent(user):
    user, password = user
    agent = Terminal(*user.inside(f"{user.folder}/binaries/watchword", "agent"), environment=dict(os.environ))
    agent.expect("showing the questions of all programs")
    sudo = subprocess.Popen(
        user.inside("sudo", "-A", "id", "-u"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    agent.expect('"sudo" asks (its name and text are not verified):\r\n    [sudo] password for desk:')
    agent.answer({"Your answer (Ctrl-D to cancel): ": "wrong"})
    # sudo asks again after a wrong password.
    agent.expect("Your answer (Ctrl-D to cancel): ", times=2)
    agent.type(password + "\n")
    output, errors = sudo.communicate(timeout=60)
    assert (sudo.returncode, output) == (0, b"0\n"), errors
    refused = subprocess.Popen(
        user.inside("sudo", "-k", "-A", "true"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True)
    agent.expect("Your answer (Ctrl-D to cancel): ", times=3)
    agent.type("\x04")
    assert b"no password was provided" in refused.communicate(timeout=60)[1] and refused.returncode == 1
    agent.type("\x03")
    assert agent.end() == 130
    assert password.encode() not in agent.shown
