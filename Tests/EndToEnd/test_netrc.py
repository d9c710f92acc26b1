"""Logins of a netrc file, as servers receive them: `credentials.netrc` of the configuration."""
import itertools
import os
import pathlib

import pytest

from rig.bodies import eventually
from rig.client import Client, password_answer
from rig.keyring import heard
from rig.scripted import DigestCheck, ScriptedServer, basic, basic_server, response
from rig.subjects import Consenter, Relay, flatpak
from rig.terminal import Shell
from rig.tls import TlsServer

OFF = "[keyring]\nenabled = false\n"
NOT_USED = "the netrc file cannot be used"


class Desk:
    """A broker with a netrc file, a server with a password, and clients that record their challenges."""

    def __init__(self, stage):
        self.stage, self.file, self.asked = stage, stage.folder / "logins.netrc", []
        self.password = stage.secret()
        self.server = stage.server(basic_server("bob", self.password))
        stage.allow(self.password, self.server)
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


def test_an_accepted_login_is_announced(desk):
    desk.start()
    watcher = desk.stage.client(broker=desk.broker)
    desk.fetch()
    watcher.call("ping")
    eventually(lambda: [(one["change"], one["source"], one["user"]) for one in heard(watcher, "credential/changed")] == [
        ("stored", "session", "bob")], "the login was not stored in the session")


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


def test_a_proposed_login_is_not_sent_after_a_reload_without_the_file(desk):
    """The question was open during the reload."""
    desk.start()

    def answered(params):
        desk.asked.append(params)
        if len(desk.asked) > 1:
            return {"action": "continue"}
        desk.reload(OFF)
        return {"action": "credential", "credential": {"type": "proposed"}}

    client = desk.stage.client(broker=desk.broker, answer=answered)
    assert "result" in client.call("auth/subscribe", {"mode": "everything"})
    assert client.fetch(desk.server.url)["result"]["status"] == 401
    assert desk.server.authorizations == [None]
    assert [(one.get("error") or {}).get("kind") for one in desk.asked] == [None, "nothingProposed"]


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


def test_an_entry_is_for_its_host_and_port_alone(desk):
    port = desk.server.port
    desk.write(f"machine 127.0.0.1 login bob password {desk.password}\nmachine 127.0.0.1:{port + 1} login bob password {desk.password}\n"
               f"machine localhost:{port} login bob password {desk.password}\ndefault login bob password {desk.password}\n")
    desk.start()
    assert desk.fetch()["status"] == 401
    assert desk.server.authorizations == [None]
    assert desk.fetch(f"http://localhost:{port}/")["auth"]["source"] == "netrc"


def test_no_entry_is_sent_after_a_redirect_to_another_host(desk):
    other = desk.stage.server(basic_server("bob", "another"))
    desk.server.handler = lambda request: response(302, b"", f"Location: {other.url}/") if request.authorization else response(
        401, b"", 'WWW-Authenticate: Basic realm="Staff"')
    desk.start()
    assert desk.fetch()["status"] == 401
    assert desk.server.authorizations == [None, basic("bob", desk.password)]
    assert other.authorizations == [None] and len(desk.asked) == 1


def test_a_wrong_password_is_sent_once_and_the_client_is_asked(desk):
    right = desk.stage.secret()
    server = desk.stage.server(basic_server("bob", right))
    desk.stage.allow(right, server), desk.stage.allow(desk.password, server)
    desk.write(f"machine 127.0.0.1:{server.port} login bob password {desk.password}\n")
    desk.start()
    result = desk.fetch(server.url, password_answer("bob", right))
    assert (result["status"], result["auth"]["source"]) == (200, "client")
    assert server.authorizations == [None, basic("bob", desk.password), basic("bob", right)]
    assert [(one["previousFailureCount"], one["proposedCredential"]["source"]) for one in desk.asked] == [(1, "netrc")]


def test_a_refused_password_is_not_tried_by_the_next_program_until_it_is_another(desk):
    right = desk.stage.secret()
    server = desk.stage.server(basic_server("bob", right))
    desk.stage.allow(right, server), desk.stage.allow(desk.password, server)
    desk.write(f"machine 127.0.0.1:{server.port} login bob password {desk.password}\n")
    desk.start()
    assert [desk.fetch(server.url)["status"] for _ in range(3)] == [401] * 3
    assert server.authorizations == [None, basic("bob", desk.password), None, None]
    desk.write(f"machine 127.0.0.1:{server.port} login bob password {right}\n")
    assert desk.fetch(server.url)["auth"]["source"] == "netrc"


def test_a_server_with_another_realm_each_time_gets_a_wrong_password_once(desk):
    count = itertools.count()
    desk.server.handler = lambda request: response(401, b"", f'WWW-Authenticate: Basic realm="at {next(count)}"')
    desk.start()
    assert [desk.fetch()["status"] for _ in range(2)] == [401] * 2
    assert desk.server.authorizations == [None, basic("bob", desk.password), None] and len(desk.asked) == 2


def test_a_machine_without_a_keyring_needs_no_configuration(desk):
    desk.start(desk.config.removeprefix(OFF))
    assert desk.fetch()["status"] == 200
    assert not desk.asked


def test_a_malformed_entry_gets_no_other_password(desk):
    port = desk.server.port
    desk.write(f"machine 127.0.0.1:{port} login bob password\nmachine other.example login carol password {desk.password}\n")
    desk.start()
    assert desk.fetch()["status"] == 401
    assert desk.server.authorizations == [None]


def test_no_entry_is_sent_to_a_proxy_or_over_plain_http_to_other_hosts(desk):
    """The configured proxy requires a login; requests without it are forwarded to a server that requires one."""
    def handle(request):
        if request.header("Proxy-Authorization") is None:
            return response(407, b"", 'Proxy-Authenticate: Basic realm="Way out"')
        return response(401, b"", 'WWW-Authenticate: Basic realm="Staff"')

    proxy = desk.stage.server(ScriptedServer(handle))
    lines = [f"machine {place} login bob password {desk.password}\n" for place in (
        f"127.0.0.1:{proxy.port}", "127.0.0.1", "h.test", "h.test:80", "h.test:443")]
    desk.write("".join(lines))
    desk.start(desk.config + f'[proxy]\nurl = "http://127.0.0.1:{proxy.port}"\n')
    answers = [password_answer("out", "other"), {"action": "continue"}]
    client = desk.stage.client(broker=desk.broker, answer=lambda params: desk.asked.append(params) or answers.pop(0))
    assert client.fetch("http://h.test/")["result"]["status"] == 401
    assert [(one["protectionSpace"]["isProxy"], one["previousFailureCount"]) for one in desk.asked] == [(True, 0), (False, 0)]
    assert [one.header("Proxy-Authorization") for one in proxy.requests] == [None, basic("out", "other")]
    assert proxy.authorizations == [None, None]


def test_no_entry_is_used_for_the_restricted_socket(desk):
    desk.start()
    other = Client(os.path.join(os.path.dirname(desk.broker.socket), "restricted.sock"), answer=lambda params: {"action": "continue"})
    desk.stage.clients.append(other)
    assert other.fetch(desk.server.url)["result"]["status"] == 401
    assert desk.server.authorizations == [None]


@pytest.mark.parametrize("allow", ["no", "once"])
def test_a_sandboxed_program_needs_consent(desk, allow):
    desk.start()
    agent = Consenter(desk.broker.socket, allow)
    desk.stage.clients.append(agent)
    command, info = flatpak()
    client = Relay(desk.broker.socket, *command, pass_fds=[info])
    os.close(info)
    try:
        status = client.fetch(desk.server.url)["result"]["status"]
    finally:
        client.close()
    assert (status, desk.server.authorizations[1:]) == ((200, [basic("bob", desk.password)]) if allow == "once" else (401, []))
    assert [(one["source"], one["user"], one["subject"]["sandboxed"]) for one in agent.asked] == [("netrc", "bob", True)]


@pytest.mark.parametrize("algorithm", ["MD5", "SHA-256"])
def test_digest_without_the_password_on_the_wire(desk, algorithm):
    server = desk.stage.server(DigestCheck("bob", desk.password, algorithm=algorithm))
    desk.write(f"machine 127.0.0.1:{server.port} login bob password {desk.password}\n")
    desk.start()
    result = desk.fetch(server.url)
    assert (result["status"], result["auth"]["authenticationMethod"], result["auth"]["source"]) == (200, "httpDigest", "netrc")


@pytest.mark.parametrize("challenge", ["NTLM", "Negotiate", "Basic", 'Digest realm="old", nonce="n"', 'Bearer realm="r"'])
def test_other_schemes_and_weak_challenges_are_not_answered(desk, challenge):
    server = desk.stage.server(lambda request: response(401, b"", f"WWW-Authenticate: {challenge}"))
    desk.write(f"machine 127.0.0.1:{server.port} login bob password {desk.password}\n")
    desk.start()
    assert desk.fetch(server.url)["status"] == 401
    assert server.authorizations == [None]


def test_over_tls_and_with_a_user_in_the_url(desk, certificates):
    carol = desk.stage.secret()
    right = basic("carol", carol)
    server = desk.stage.server(TlsServer(certificates, handler=lambda request: response(
        200, b"in") if request.authorization == right else response(401, b"", 'WWW-Authenticate: Basic realm="Staff"')))
    desk.stage.allow(carol, server)
    place = f"localhost:{server.port}"
    desk.write(f"machine {place} login bob password {desk.password}\nmachine {place} login carol password {carol}\n")
    desk.broker = desk.stage.configured(desk.config, "--ca-file", str(certificates / "ca.pem"))
    result = desk.fetch(f"https://carol@{place}/")
    assert (result["status"], result["auth"]["source"], result["auth"]["user"]) == (200, "netrc", "carol")
    assert server.authorizations == [None, right]


def test_nginx(desk, nginx, account):
    user, password = account
    desk.write(f"machine 127.0.0.1:{nginx.port} login {user} password {password}\n")
    desk.start()
    result = desk.fetch(f"http://127.0.0.1:{nginx.port}/staff/page.txt")
    assert (result["status"], result["auth"]["source"]) == (200, "netrc")
