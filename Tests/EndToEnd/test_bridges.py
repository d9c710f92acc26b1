"""Programs that log in by themselves: git with its helper, and programs that run an askpass program; released tokens that their server
refuses; and a credential is one unit: user, domain, path, expiry and refresh token stay together in answers, session and keyring."""
import base64
import os
import signal
import subprocess
import time

import pytest

from rig import audit
from rig.broker import program
from rig.client import password_answer
from rig.keyring import SCHEMA, description, settle
from rig.login_sites import Site, forgotten, logged_in
from rig.scripted import basic, response
from rig.terminal import Git, Shell, Terminal, install_helper

HELPER = os.path.realpath(program("watchword"))


@pytest.fixture
def site(stage, gnome):
    """A site with a login, whose access token is revoked at the server, but not in the session."""
    site = Site(stage)
    site.running = site.broker(text=f'[credentials]\nhand-out = ["{HELPER} 127.0.0.1"]\n', environment=gnome.for_broker)
    site.client = stage.client(broker=site.running)
    logged_in(site.client, site)
    site.server.revoke_access()
    return site


def tokens(site):
    return [token.value for token in site.server.access_tokens]


def helper(site, operation, *lines, options=()):
    text = "".join(f"{line}\n" for line in ["protocol=http", f"host=127.0.0.1:{site.resource.port}", *lines, ""])
    done = subprocess.run([HELPER, "git-credential", "--socket", site.running.socket, *options, operation],
                          input=text, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_git_2_46_gets_another_token_after_a_refusal(site):
    bearer, old = "capability[]=authtype", tokens(site)[0]
    assert f"credential={old}\n" in helper(site, "get", bearer)
    assert helper(site, "erase", bearer, "authtype=Bearer", f"credential={old}") == ""
    assert len(tokens(site)) == 2 and f"credential={tokens(site)[1]}\n" in helper(site, "get", bearer)
    # The login is still there, for fetches, too.
    assert not forgotten(site.client, site) and len(tokens(site)) == 2 and len(site.server.authorizations) == 1


def test_git_of_debian_12_gets_another_token_after_a_refusal(stage, site, tmp_path):
    """git itself reports the refusal."""
    def repository(request):
        scheme, _, text = (request.authorization or "").partition(" ")
        password = base64.b64decode(text).decode().partition(":")[2] if scheme == "Basic" else None
        if not site.server.valid_token(password):
            return response(401, b"", 'WWW-Authenticate: Basic realm="git"')
        return response(200, b"", "Content-Type: text/plain")

    site.resource.fail("/x.git/info/refs", repository)
    git = Git(site.running, install_helper(tmp_path / "bin"), "credential.helper=watchword --token-user oauth2")
    url = f"http://127.0.0.1:{site.resource.port}/x.git"
    first, second = git("ls-remote", url), git("ls-remote", url)
    assert first.returncode != 0 and "Authentication failed" in first.stderr
    assert second.returncode == 0, second.stderr
    requests = [request for request in site.resource.requests if request.path.startswith("/x.git") and request.authorization]
    sent = [base64.b64decode(request.authorization.partition(" ")[2]).decode() for request in requests]
    assert list(dict.fromkeys(sent)) == [f"oauth2:{token}" for token in tokens(site)] and len(tokens(site)) == 2


def test_the_command_prints_another_token(site):
    printed = [Shell(site.running).run("token", *options, site.url).stdout.decode() for options in [(), ("--renew",), ()]]
    assert printed == [f"{tokens(site)[index]}\n" for index in (0, 1, 1)] and len(tokens(site)) == 2


def test_a_token_from_a_client_stays_until_it_is_forgotten(stage):
    """The broker cannot obtain another one."""
    broker = stage.configured(f'[credentials]\nhand-out = ["{HELPER} git.example.com"]\n')
    space = {"protocol": "https", "host": "git.example.com", "authenticationMethod": "bearer"}
    stage.client(broker=broker).call("credential/store", {
        "protectionSpace": space, "credential": {"type": "token", "token": "abc.def", "persistence": "forSession"}})
    assert Shell(broker).run("token", "--renew", "https://git.example.com").stdout == b"abc.def\n"


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


@pytest.mark.parametrize("said, problem", [
    *((f"{text}\n\n".encode(), "") for text in [
        "protocol=ssh\nhost=git.example.com", "protocol=https", "host=git.example.com", "", "protocol=https\nhost=a/b",
        "protocol=https\nhost=git.example.com\nunheard-of=1"]),
    *((text + b"\n\n", "input from git") for text in [b"no sense", b"host=\xff", b"x=" + b"y" * 70_000])], ids=range(9))
def test_unrelated_input_is_ignored_and_malformed_input_refused_in_one_line(stage, tools, said, problem):
    environment = Shell(allowing(stage, "git.example.com")).environment
    done = subprocess.run([tools / "git-credential-watchword", "get"], input=said, env=environment, capture_output=True, timeout=20)
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == ((1, b"", 1) if problem else (0, b"", 0))
    assert problem.encode() in done.stderr


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


def test_askpass_answers_git_with_a_stored_login(stage, tools, repository, nginx, account):
    broker, (user, password), (url, commit) = allowing(stage, "127.0.0.1"), account, repository
    Shell(broker).run("credentials", "store", f"http://127.0.0.1:{nginx.port}", "--user", user, "--password-stdin", input=password.encode())
    git = Git(broker, tools)
    done = git("ls-remote", url, environment={"GIT_ASKPASS": str(tools / "watchword-askpass")})
    assert done.returncode == 0 and commit in done.stdout, done.stderr


def test_askpass_asks_at_the_terminal_for_the_rest(stage, tools):
    out = stage.folder / "answer"
    terminal = Terminal("/bin/sh", "-c", f'"{tools}/watchword-askpass" "Passphrase for key \x1b[31m:" > "{out}"',
                        environment=Shell(stage.broker()).environment)
    terminal.answer({"Passphrase for key ": "open sesame"})
    assert terminal.end() == 0 and out.read_text() == "open sesame\n"
    assert b"sesame" not in terminal.shown and b"\x1b[31m" not in terminal.shown


@pytest.mark.parametrize("answer, code", [("yes", 0), ("no", 1), ("", 1)])
def test_askpass_confirms_for_ssh(stage, tools, answer, code):
    environment = {**Shell(stage.broker()).environment, "SSH_ASKPASS_PROMPT": "confirm"}
    terminal = Terminal(str(tools / "watchword-askpass"), "Allow use of the key?", environment=environment)
    terminal.answer({"Allow use of the key?": answer})
    assert terminal.end() == code


GIT_PLACE = ["protocol=https", "host=git.example.com"]
PLACE = "\n".join([*GIT_PLACE, ""]).encode()


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


@pytest.fixture
def ntlm_broker(stage, gnome):
    return lambda: stage.configured('[schemes]\nntlm = ["127.0.0.1"]\n', environment=gnome.for_broker)


def never(challenge):
    pytest.fail("unexpected challenge")


def test_the_domain_of_an_ntlm_login_is_stored_in_the_keyring(stage, gnome, ntlm_broker, ntlm, ntlm_users):
    stage.watch(ntlm)
    broker = ntlm_broker()
    client = stage.client(broker=broker, answer=lambda challenge: password_answer(
        "alice", ntlm_users["alice"], domain="TESTDOM", persistence="permanent"))
    assert client.fetch(ntlm.url)["result"]["status"] == 200
    settle(client)
    exactly = description(ntlm, "alice", authtype="ntlm", domain="TESTDOM")
    assert gnome.items() == [({**exactly, "xdg:schema": SCHEMA, "watchword-default": "1"}, ntlm_users["alice"])]
    broker.stop()
    fresh = stage.client(broker=ntlm_broker(), answer=never)
    result = fresh.fetch(ntlm.url)["result"]
    assert (result["status"], result["auth"]["source"]) == (200, "keyring")
    assert [user for _, _, user in ntlm.handler.served] == ["TESTDOM\\alice"] * 2 and ntlm.handler.refused == []
    listed = fresh.call("credential/list", {})["result"]["credentials"]
    assert {(one["source"], one["user"], one["domain"], one["protectionSpace"]["realm"]) for one in listed} == {
        ("session", "alice", "TESTDOM", None), ("keyring", "alice", "TESTDOM", None)}


# Expiry, and the lines that git's helper for libsecret (git 2.41) writes

def in_git_s_words(password, expiry, token="refresh"):
    return f"{password}\npassword_expiry_utc={int(expiry)}\noauth_refresh_token={token}"


def test_an_item_written_by_git_s_helper_is_read_line_by_line(stage, gnome):
    server, password = stage.protected("bob")
    gnome.put(in_git_s_words(password, time.time() + 3600), **description(server))
    result = stage.client(broker=stage.broker(environment=gnome.for_broker), answer=never).fetch(server.url)["result"]
    assert (result["status"], result["auth"]["source"]) == (200, "keyring")
    assert server.authorizations == [None, basic("bob", password)]


@pytest.mark.parametrize("persistence", ["forSession", "permanent"])
def test_expiry_and_refresh_token_stay_with_an_answer(stage, gnome, persistence):
    server, password = stage.protected("bob")
    client = stage.client(broker=stage.broker(environment=gnome.for_broker), answer=lambda challenge: password_answer(
        "bob", password, expiresAt="2096-10-02T08:06:40+01:00", refreshToken="refresh", persistence=persistence))
    assert client.fetch(server.url)["result"]["status"] == 200
    settle(client)
    listed = client.call("credential/list", {})["result"]["credentials"]
    assert {one["expiresAt"] for one in listed} == {"2096-10-02T07:06:40.000Z"} and "refreshToken" not in listed[0]
    kept = [secret for _, secret in gnome.items()]
    assert kept == ([in_git_s_words(password, 4_000_000_000)] if persistence == "permanent" else [])


def two_repositories(stage):
    """One server with a separate account for each of two paths."""
    accounts = {"/one/": ("bob", stage.secret()), "/two/": ("carol", stage.secret())}
    allowed = {path: basic(*account) for path, account in accounts.items()}
    server = stage.server(lambda request: response(200) if request.authorization == allowed[request.target[:5]] else response(
        401, b"", 'WWW-Authenticate: Basic realm="Staff"'))
    for _, password in accounts.values():
        stage.allow(password, server)
    return server, accounts


@pytest.mark.parametrize("persistence", ["forSession", "permanent"])
def test_a_path_is_stored_by_hand_and_listed(stage, gnome, persistence):
    server, accounts = two_repositories(stage)
    client = stage.client(broker=stage.broker(environment=gnome.for_broker), answer=never)
    for path, (user, password) in accounts.items():
        credential = {"type": "password", "user": user, "password": password, "path": path.rstrip("/"), "persistence": persistence}
        space = {"protocol": "http", "host": "127.0.0.1", "port": server.port}
        assert "result" in client.call("credential/store", {"protectionSpace": space, "credential": credential})
    listed = client.call("credential/list", {})["result"]["credentials"]
    assert sorted((one["path"], one["user"], one["isDefault"]) for one in listed) == [("/one", "bob", True), ("/two", "carol", True)]
    for path in ["/one/a", "/two/a"]:
        assert client.fetch(server.url + path)["result"]["status"] == 200


# git's helper

@pytest.fixture
def git(stage, gnome, tools):
    environment = Shell(allowing(stage, "git.example.com", environment=gnome.environment)).environment

    def say(operation, *lines, keep="keyring"):
        done = subprocess.run(
            [tools / "git-credential-watchword", "--keep", keep, operation], input="".join(f"{line}\n" for line in [*GIT_PLACE, *lines, ""]),
            env=environment, capture_output=True, text=True, timeout=30)
        assert (done.returncode, done.stderr) == (0, ""), done
        return dict(line.split("=", 1) for line in done.stdout.splitlines())

    return say


@pytest.mark.parametrize("keep", ["session", "keyring"])
def test_git_gets_back_what_it_has_stored_whole(git, gnome, keep):
    lines = ["username=bob", "password=first", "password_expiry_utc=4000000000", "oauth_refresh_token=refresh"]
    git("store", *lines, keep=keep)
    assert git("get") == dict(line.split("=", 1) for line in lines)
    assert [secret for _, secret in gnome.items()] == ([in_git_s_words("first", 4_000_000_000)] if keep == "keyring" else [])
    git("store", "username=bob", "password=first", f"password_expiry_utc={int(time.time()) - 1}", keep=keep)
    assert git("get") == {}, "the password has expired"


@pytest.mark.parametrize("keep", ["session", "keyring"])
def test_each_repository_has_its_own_account(git, keep):
    """git's option useHttpPath."""
    for user in ["one", "two"]:
        git("store", f"path={user}/r.git", f"username={user}", f"password=pw-{user}", keep=keep)
    for user in ["one", "two"]:
        assert git("get", f"path={user}/r.git") == {"username": user, "password": f"pw-{user}", "path": f"{user}/r.git"}
    assert git("get", "path=three/r.git") == {} and git("get") == {}
    git("erase", "path=one/r.git", "username=one", "password=pw-one")
    assert git("get", "path=one/r.git") == {} and git("get", "path=two/r.git")["password"] == "pw-two"


@pytest.mark.parametrize("keep", ["session", "keyring"])
def test_a_repository_without_a_password_does_not_erase_the_login_of_the_server(git, keep):
    git("store", "username=bob", "password=first", keep=keep)
    for lines in [["path=a.git"], ["path=a.git", "username=bob"], ["path=a.git", "username=bob", "password=other"]]:
        git("erase", *lines)
        assert git("get") == {"username": "bob", "password": "first"}
    git("erase", "path=a.git", "username=bob", "password=first")
    assert git("get") == {}


def test_a_login_that_git_got_for_the_whole_server_is_not_stored_again_for_a_path(git, gnome):
    git("store", "username=bob", "password=first")
    got = git("get", "path=one/r.git")
    assert got == {"username": "bob", "password": "first"}
    git("store", "path=one/r.git", "username=bob", "password=first")
    assert len(gnome.items()) == 1


def test_at_a_terminal_the_name_of_a_saved_login_is_enough(stage, gnome):
    server, password = stage.protected("alice")
    gnome.put(stage.secret(), **description(server, "bob"))
    gnome.put(password, **description(server, "alice"))
    terminal = Shell(stage.broker(environment=gnome.for_broker)).at_terminal("fetch", "--fail", server.url)
    terminal.expect("Saved logins: ")
    terminal.answer({"User: ": "alice"})
    assert terminal.end() == 0
    assert server.authorizations == [None, basic("alice", password)]
