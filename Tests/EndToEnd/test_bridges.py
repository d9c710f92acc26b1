"""Programs that log in by themselves: git with its helper, and programs that run an askpass program."""
import os
import signal
import subprocess

import pytest

from rig import audit
from rig.broker import program
from rig.terminal import Git, Shell, Terminal, install_helper

HELPER = os.path.realpath(program("watchword"))


@pytest.fixture
def tools(tmp_path):
    return install_helper(tmp_path / "bin")


@pytest.fixture
def repository(nginx, tmp_path):
    """A repository that real nginx serves behind Basic, for git's oldest protocol."""
    place = nginx.log_path.parent / "www" / "staff" / f"{tmp_path.name}.git"
    run = lambda *command, **more: subprocess.run(command, check=True, capture_output=True, **more)  # noqa: E731
    run("git", "init", "-q", "--bare", str(place))
    tree = run("git", "-C", str(place), "mktree", input=b"").stdout.decode().strip()
    author = {**os.environ, **{f"GIT_{who}_{what}": "x@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}}
    commit = run("git", "-C", str(place), "commit-tree", "-m", "first", tree, env=author).stdout.decode().strip()
    run("git", "-C", str(place), "update-ref", "refs/heads/main", commit)
    run("git", "-C", str(place), "update-server-info")
    subprocess.run(["chmod", "-R", "a+rX", str(place)], check=True)
    return f"http://127.0.0.1:{nginx.port}/staff/{tmp_path.name}.git", commit


def allowing(stage, *hosts, **more):
    return stage.configured(f'[credentials]\nhand-out = ["{HELPER} {" ".join(hosts)}"]\n', **more)


def test_git_fetches_with_a_stored_login(stage, tools, repository, nginx, account):
    broker, (user, password), (url, commit) = allowing(stage, "127.0.0.1"), account, repository
    git = Git(broker, tools, "credential.helper=watchword")
    assert "could not read Username" in git("ls-remote", url).stderr, "nothing is stored yet"
    site = f"http://127.0.0.1:{nginx.port}"
    shell = Shell(broker)
    assert shell.run("credentials", "store", site, "--user", user, "--password-stdin", input=password.encode()).returncode == 0
    done = git("ls-remote", url)
    assert done.returncode == 0 and commit in done.stdout, done.stderr
    audit.wait_for(lambda: "credentialHandedOut" in audit.kinds(broker))
    assert password not in done.stdout + done.stderr


def test_git_gets_no_credentials_of_unlisted_hosts(stage, tools, repository, nginx, account):
    broker, (user, password), (url, _) = allowing(stage, "git.example.com"), account, repository
    shell = Shell(broker)
    shell.run("credentials", "store", f"http://127.0.0.1:{nginx.port}", "--user", user, "--password-stdin", input=password.encode())
    done = Git(broker, tools, "credential.helper=watchword")("ls-remote", url)
    assert done.returncode != 0
    assert "does not release passwords for 127.0.0.1" in done.stderr and "credentials.hand-out" in done.stderr
    quiet = Git(broker, tools, "credential.helper=watchword --quiet")("ls-remote", url)
    assert quiet.returncode != 0 and "hand-out" not in quiet.stderr


def test_the_login_of_git_is_stored(stage, tools, gnome):
    broker = allowing(stage, "git.example.com", environment=gnome.environment)
    git = Git(broker, tools, "credential.helper=watchword")
    say = ["protocol=https", "host=git.example.com", "username=bob", "password=first"]
    assert git.credential("approve", *say).returncode == 0
    filled = git.credential("fill", *say[:2])
    assert "username=bob\npassword=first\n" in filled.stdout, filled
    listed = Shell(broker).run("credentials", "list").stdout.decode()
    assert "bob" in listed and "keyring" in listed


def test_only_the_refused_login_is_erased(stage, tools):
    git = Git(allowing(stage, "git.example.com"), tools, "credential.helper=watchword --keep session")
    place = ["protocol=https", "host=git.example.com"]
    git.credential("approve", *place, "username=bob", "password=newer")
    git.credential("reject", *place, "username=bob", "password=older")
    assert "password=newer" in git.credential("fill", *place).stdout, "a newer password stays stored"
    git.credential("reject", *place, "username=amy", "password=newer")
    assert "password=newer" in git.credential("fill", *place).stdout, "the login of another user stays stored"
    git.credential("reject", *place, "username=bob", "password=newer")
    assert "password=" not in git.credential("fill", *place).stdout


def test_a_server_alone_erases_all_its_logins(stage, tools):
    """gitcredentials(7): erase removes what matches, and a description without a user matches any."""
    git = Git(allowing(stage, "git.example.com", "other.example.com"), tools, "credential.helper=watchword --keep session")
    place, other = ["protocol=https", "host=git.example.com"], ["protocol=https", "host=other.example.com"]
    for user in ["bob", "amy"]:
        git.credential("approve", *place, f"username={user}", "password=pw")
    git.credential("approve", *place, "path=repo", "username=carol", "password=pw")
    git.credential("approve", *other, "username=bob", "password=pw")
    git.credential("reject", *place, "username=amy")
    assert "password=" not in git.credential("fill", *place, "username=amy").stdout
    assert "password=pw" in git.credential("fill", *place, "username=bob").stdout
    git.credential("reject", "protocol=http", "host=git.example.com")
    assert "password=pw" in git.credential("fill", *place, "username=bob").stdout, "it is another server"
    git.credential("reject", *place)
    assert "password=" not in git.credential("fill", *place).stdout
    assert "password=pw" in git.credential("fill", *other).stdout


def test_git_stores_nothing_for_unlisted_hosts(stage, tools):
    broker = allowing(stage, "other.example.com")
    git = Git(broker, tools, "credential.helper=watchword")
    git.credential("approve", "protocol=https", "host=git.example.com", "username=bob", "password=first")
    assert b"No stored credentials" in Shell(broker).run("credentials", "list").stdout


@pytest.mark.parametrize("said", [
    "protocol=ssh\nhost=git.example.com\n\n", "protocol=https\n\n", "host=git.example.com\n\n", "\n", "protocol=https\nhost=a/b\n\n",
    "protocol=https\nhost=git.example.com\nunheard-of=1\n\n"])
def test_unrelated_input_is_ignored(stage, tools, said):
    broker = allowing(stage, "git.example.com")
    done = subprocess.run(
        [tools / "git-credential-watchword", "get"], input=said.encode(), env=Shell(broker).environment, capture_output=True, timeout=20)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_tokens_are_for_versions_of_git_with_support_for_authtype(stage, tools):
    broker = allowing(stage, "git.example.com")
    client = stage.client(broker=broker)
    client.call("credential/store", {
        "protectionSpace": {"protocol": "https", "host": "git.example.com", "authenticationMethod": "bearer"},
        "credential": {"type": "token", "token": "abc.def", "persistence": "forSession"}})

    def ask(said, *options, operation="get"):
        command = [tools / "git-credential-watchword", *options, operation]
        return subprocess.run(command, input=said, env=Shell(broker).environment, capture_output=True, timeout=20).stdout

    place = b"protocol=https\nhost=git.example.com\n\n"
    bearer = b"capability[]=authtype\nauthtype=Bearer\nephemeral=1\ncredential=abc.def\n"
    older = ("--token-user", "oauth2")
    assert ask(place) == b""
    assert ask(b"capability[]=authtype\n" + place) == ask(b"capability[]=authtype\n" + place, *older) == bearer
    assert ask(place, *older) == ask(b"username=oauth2\n" + place, *older) == b"username=oauth2\npassword=abc.def\n"
    assert ask(b"username=bob\n" + place, *older) == b""
    for operation in ["store", "erase"]:
        assert ask(b"username=oauth2\npassword=abc.def\n" + place, *older, operation=operation) == b""
        listed = client.call("credential/list", {})["result"]["credentials"]
        assert [one["type"] for one in listed] == ["token"], "it is neither stored as a password nor removed"


def test_git_before_2_46_logs_in_with_a_token(stage, tools, repository, nginx, account):
    """The user and the token are those of a server that accepts tokens as passwords."""
    broker, (user, password), (url, commit) = allowing(stage, "127.0.0.1"), account, repository
    stage.client(broker=broker).call("credential/store", {
        "protectionSpace": {"protocol": "http", "host": "127.0.0.1", "port": nginx.port, "authenticationMethod": "bearer"},
        "credential": {"type": "token", "token": password, "persistence": "forSession"}})
    done = Git(broker, tools, f"credential.helper=watchword --token-user {user}")("ls-remote", url)
    assert done.returncode == 0 and commit in done.stdout, done.stderr


def test_askpass_answers_git_with_a_stored_login(stage, tools, repository, nginx, account):
    broker, (user, password), (url, commit) = allowing(stage, "127.0.0.1"), account, repository
    Shell(broker).run("credentials", "store", f"http://127.0.0.1:{nginx.port}", "--user", user, "--password-stdin", input=password.encode())
    git = Git(broker, tools)
    done = git("ls-remote", url, environment={"GIT_ASKPASS": str(tools / "watchword-askpass")})
    assert done.returncode == 0 and commit in done.stdout, done.stderr


def test_askpass_asks_at_the_terminal_for_the_rest(stage, tools):
    broker = stage.broker()
    environment = Shell(broker).environment
    out = broker.folder / "answer"
    terminal = Terminal("/bin/sh", "-c", f'"{tools}/watchword-askpass" "Passphrase for key \x1b[31m:" > "{out}"', environment=environment)
    terminal.expect("Passphrase for key ")
    terminal.type("open sesame\n")
    assert terminal.end() == 0
    assert out.read_text() == "open sesame\n"
    assert b"sesame" not in terminal.shown and b"\x1b[31m" not in terminal.shown


@pytest.mark.parametrize("answer, code", [("yes\n", 0), ("no\n", 1), ("\n", 1)])
def test_askpass_confirms_for_ssh(stage, tools, answer, code):
    environment = {**Shell(stage.broker()).environment, "SSH_ASKPASS_PROMPT": "confirm"}
    terminal = Terminal(str(tools / "watchword-askpass"), "Allow use of the key?", environment=environment)
    terminal.expect("Allow use of the key?")
    terminal.type(answer)
    assert terminal.end() == code


PLACE = b"protocol=https\nhost=git.example.com\n"


def test_an_empty_line_ends_the_input(stage, tools):
    """The caller keeps its end of the pipe open while it waits for the answer."""
    git = subprocess.Popen(
        [tools / "git-credential-watchword", "get"], env=Shell(allowing(stage, "git.example.com")).environment, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE)
    git.stdin.write(PLACE + b"\n")
    git.stdin.flush()
    try:
        assert git.wait(20) == 0
    finally:
        git.kill()
        git.communicate()


@pytest.mark.parametrize("persistence", ["forSession", "permanent"])
def test_the_users_other_logins_there_survive(stage, tools, gnome, persistence):
    """One user with passwords for two realms, one of which git reports as refused."""
    git = Git(allowing(stage, "git.example.com", environment=gnome.environment), tools, "credential.helper=watchword")
    client = stage.client(broker=stage.brokers[-1])
    for realm, password in (("one", "first"), ("two", "second")):
        client.call("credential/store", {
            "protectionSpace": {"protocol": "https", "host": "git.example.com", "realm": realm},
            "credential": {"type": "password", "user": "bob", "password": password, "persistence": persistence}})
    realms = lambda: sorted(  # noqa: E731
        credential["protectionSpace"]["realm"] for credential in client.call("credential/list", {})["result"]["credentials"])
    place = ["protocol=https", "host=git.example.com", "username=bob"]
    assert git.credential("reject", *place, "password=third").returncode == 0
    assert realms() == ["one", "two"]
    assert git.credential("reject", *place, "password=second").returncode == 0
    assert realms() == ["one"]


@pytest.fixture
def stopped(stage):
    broker = allowing(stage, "git.example.com")
    os.kill(broker.process.pid, signal.SIGSTOP)
    yield broker
    os.kill(broker.process.pid, signal.SIGCONT)


@pytest.mark.tier3("waits for the limit of fifteen seconds")
def test_a_broker_that_is_stopped_does_not_stop_others(stopped, tools):
    """git and askpass prompt instead, and the doctor reports the stopped broker."""
    environment = Shell(stopped).environment
    more = {"env": environment, "stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "start_new_session": True}
    git = subprocess.Popen([tools / "git-credential-watchword", "get"], **more)
    ask = subprocess.Popen([tools / "watchword-askpass", "Password for 'https://git.example.com': "], **more)
    doctor = subprocess.Popen([tools / "watchword", "doctor"], **more)
    others = [subprocess.Popen([tools / "watchword", *words.split()], **more) for words in ("status", "lock", "credentials list")]
    try:
        assert b"does not answer" in git.communicate(PLACE + b"\n", timeout=30)[1] and git.returncode == 1
        assert b"no terminal available" in ask.communicate(timeout=30)[1] and ask.returncode == 1
        assert b"bad   Broker: It does not answer." in doctor.communicate(timeout=30)[0] and doctor.returncode == 1
        for other in others:
            assert b"does not answer" in other.communicate(timeout=30)[1] and other.returncode == 2
    finally:
        for process in (git, ask, doctor, *others):
            process.kill()
            process.wait()


@pytest.mark.parametrize("question", [
    "Password for 'https://git.example.com#.example.net': ", "Password for 'https://git.example.com?.example.net': ",
    "Password for 'https://git.example.com' of another user: ", "Password for 'https://%ff@git.example.com': "])
def test_askpass_answers_only_what_git_can_have_asked(stage, tools, question):
    broker = allowing(stage, "git.example.com")
    Git(broker, tools, "credential.helper=watchword").credential(
        "approve", "protocol=https", "host=git.example.com", "username=bob", "password=first")
    ask = lambda text: subprocess.run(  # noqa: E731
        [tools / "watchword-askpass", text], env=Shell(broker).environment, capture_output=True, timeout=20, start_new_session=True,
        stdin=subprocess.DEVNULL)
    assert ask("Password for 'https://git.example.com': ").stdout == b"first\n"
    done = ask(question)
    assert done.returncode == 1 and b"first" not in done.stdout
