"""A credential is one unit: user, domain, path, expiry and refresh token stay together in answers, session and keyring."""
import os
import subprocess
import time

import pytest
from rig.broker import program
from rig.client import password_answer
from rig.keyring import SCHEMA, description, settle
from rig.scripted import basic, response
from rig.terminal import Shell, Terminal


# The Windows domain

@pytest.fixture
def ntlm_broker(stage, gnome):
    return lambda: stage.configured('[schemes]\nntlm = ["127.0.0.1"]\n', environment=gnome.for_broker)


def never(challenge):
    pytest.fail("unexpected challenge")


def served_as(server):
    return [user for _, _, user in server.handler.served]


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
    assert served_as(ntlm) == ["TESTDOM\\alice"] * 2 and ntlm.handler.refused == []
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


# Paths

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

PLACE = ["protocol=https", "host=git.example.com"]


@pytest.fixture
def git(stage, gnome, tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ["git-credential-watchword", "watchword"]:
        (folder / name).symlink_to(os.path.realpath(program("watchword")))
    broker = stage.configured(
        f'[credentials]\nhand-out = ["{os.path.realpath(program("watchword"))} git.example.com"]\n', environment=gnome.environment)
    environment = {**Shell(broker).environment, "PATH": f"{folder}:{os.environ['PATH']}"}

    def say(operation, *lines, keep="keyring"):
        done = subprocess.run(
            [folder / "git-credential-watchword", "--keep", keep, operation], input="".join(f"{line}\n" for line in [*PLACE, *lines, ""]),
            env=environment, capture_output=True, text=True, timeout=30)
        assert (done.returncode, done.stderr) == (0, ""), done
        return dict(line.split("=", 1) for line in done.stdout.splitlines())

    say.broker = broker
    return say


@pytest.mark.parametrize("keep", ["session", "keyring"])
def test_git_gets_back_what_it_has_stored_whole(git, gnome, keep):
    lines = ["username=bob", "password=first", "password_expiry_utc=4000000000", "oauth_refresh_token=refresh"]
    git("store", *lines, keep=keep)
    assert git("get") == dict(line.split("=", 1) for line in lines)
    assert [secret for _, secret in gnome.items()] == ([in_git_s_words("first", 4_000_000_000)] if keep == "keyring" else [])


@pytest.mark.parametrize("keep", ["session", "keyring"])
def test_git_is_given_no_expired_password(git, keep):
    git("store", "username=bob", "password=first", f"password_expiry_utc={int(time.time()) - 1}", keep=keep)
    assert git("get") == {}


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


# Several matching logins

def several(stage, gnome):
    server, password = stage.protected("alice")
    gnome.put(stage.secret(), **description(server, "bob"))
    gnome.put(password, **description(server, "alice"))
    return server, password


def test_at_a_terminal_the_name_of_a_saved_login_is_enough(stage, gnome):
    server, password = several(stage, gnome)
    shell = Shell(stage.broker(environment=gnome.for_broker))
    terminal = Terminal(os.path.realpath(program("watchword")), "fetch", "--fail", server.url, environment=shell.environment)
    terminal.expect("Saved logins: ")
    terminal.expect("User: ")
    terminal.type("alice\n")
    assert terminal.end() == 0
    assert server.authorizations == [None, basic("alice", password)]
