"""The commands of the helper for stored credentials, their import, the lock, the keyring and the configuration; and texts at a terminal,
in which the end of a host, which identifies its owner, is never hidden."""
import json
import os
import pathlib
import shutil
import subprocess

import pytest

from rig import audit
from rig.bodies import eventually
from rig.broker import program
from rig.scripted import ScriptedServer, basic, basic_server, response
from rig.servers import executable, private, written
from rig.terminal import Shell

SITE = "https://intranet.example"


@pytest.fixture
def shell(stage):
    shell = Shell(stage.broker())
    yield shell
    assert not any(secret.encode() in shell.printed for secret in stage.secrets)


def store(shell, user, password, *arguments, site=SITE):
    return shell.run("credentials", "store", site, "--user", user, "--password-stdin", *arguments, input=password.encode())


def listed(shell, *arguments):
    return json.loads(shell.run("credentials", "list", "--json", *arguments).stdout)["credentials"]


def says(done, code, *words):
    """Whether standard error is one line with this text, and nothing else was printed."""
    assert done.returncode == code and done.stdout == b"", done
    assert done.stderr.count(b"\n") == 1 and all(word.encode() in done.stderr for word in words), done.stderr
    return True


def refuses_usage(command, done, *words):
    """Whether the usage of this command was printed, which also is not that of one of its subcommands."""
    usage = [line.decode() for line in done.stderr.splitlines() if line.startswith(b"Usage: ")]
    assert len(usage) == 1 and f"{usage[0]} ".startswith((f"Usage: watchword {command} [", f"Usage: watchword {command} <")), done.stderr
    return done.returncode == 64 and done.stdout == b"" and all(word.encode() in done.stderr for word in words)


# Storing

def test_a_stored_credential_is_used_without_a_question(stage, shell):
    server, password = stage.protected()
    assert store(shell, "bob", password + "\n", site=server.url + "/some/path").stdout == b"Stored in the session as session:1.\n"
    assert shell.run("fetch", server.url).stdout == b"welcome"
    assert [entry["user"] for entry in listed(shell)] == ["bob"]


def test_storing_at_a_terminal_asks_twice_without_echo(stage, shell):
    server, password = stage.protected()
    terminal = shell.at_terminal("credentials", "store", server.url, "--user", "bob", "--realm", "Staff", "--scheme", "basic")
    terminal.answer({"Password for bob: ": password})
    terminal.expect("Repeat it: ")
    assert password.encode() not in open(f"/proc/{terminal.child}/cmdline", "rb").read()
    terminal.type(password + "\n")
    assert terminal.end() == 0
    assert b"Stored in the session as session:1." in terminal.shown and password.encode() not in terminal.shown
    assert shell.run("fetch", server.url).stdout == b"welcome"


@pytest.mark.parametrize("typed, code, words", [
    ("other\n", 1, b"do not match"), ("\x04", 1, b"no password entered"), ("\x03", 130, b"Repeat it:")])
def test_storing_at_a_terminal_can_end_otherwise(stage, shell, typed, code, words):
    password = stage.secret()
    terminal = shell.at_terminal("credentials", "store", SITE, "--user", "bob")
    terminal.answer({"Password for bob: ": password})
    terminal.expect("Repeat it: ")
    terminal.type(typed)
    assert terminal.end() == code
    assert words in terminal.shown and password.encode() not in terminal.shown
    assert listed(shell) == []


def test_the_password_on_standard_input_is_one_line_and_no_terminal(stage, shell):
    for number, ending in enumerate(["", "\n", "\r\n", "\nurl: somewhere\n"]):
        server, password = stage.protected()
        assert store(shell, "bob", password + ending, site=server.url).returncode == 0
        assert shell.run("fetch", server.url).stdout == b"welcome", ending
    assert says(store(shell, "bob", ""), 1, "standard input is empty")
    assert says(store(shell, "bob", "a" * 4097), 1, "4096 bytes")
    assert store(shell, "bob", "a" * 4096 + "\n").returncode == 0
    assert says(store(shell, "bob", "a\tb"), 1, "control character")
    assert says(shell.run("credentials", "store", SITE, "--user", "bob", "--password-stdin", input=b"\xff"), 1, "UTF-8")
    assert says(shell.run("credentials", "store", SITE, "--user", "bob", stdin=subprocess.DEVNULL), 1, "no terminal", "--password-stdin")
    # A terminal would show the password.
    terminal = shell.at_terminal("credentials", "store", SITE, "--user", "bob", "--password-stdin")
    assert terminal.end() == 1 and b"omit the option" in terminal.shown


def test_a_password_among_the_arguments_is_refused_and_taken_away(stage, shell):
    password = stage.secret()
    for arguments in [["--user", f"bob:{password}", SITE], [f"--user=bob:{password}", SITE], [f"-ubob:{password}", SITE]]:
        assert refuses_usage("credentials store", shell.run("credentials", "store", *arguments), "--user takes only a name")
    for command in [["credentials", "store", "--user", "bob"], ["credentials", "list"], ["credentials", "forget", "--site"], ["session", "clear"]]:
        assert refuses_usage(" ".join(command[:2]), shell.run(*command, SITE.replace("//", f"//bob:{password}@")), "SITE must not contain a user")
        assert refuses_usage(" ".join(command[:2]), shell.run(*command, f"bob:{password}@intranet.example"), "SITE must start with http")


@pytest.mark.parametrize("site", ["", "intranet.example", "ftp://h", "https://", "https://h:0", "https://h:x", "https://a b", "https://[::1", "https:/h"])
def test_a_site_is_a_url(shell, site):
    assert refuses_usage("credentials list", shell.run("credentials", "list", site), "SITE ")


def test_permanent_storage_needs_a_keyring(stage, shell):
    assert says(store(shell, "bob", stage.secret(), "--keep", "keyring"), 1, "no session bus", "nothing was stored", "--keep session")
    assert refuses_usage("credentials store", store(shell, "bob", "x", "--keep", "none"), "keep")
    assert refuses_usage("credentials store", store(shell, "bob", "x", "--scheme", "ntlm"), "scheme")
    assert listed(shell) == []


# Listing and forgetting

def test_the_list_is_a_table(stage, shell):
    assert shell.run("credentials", "list").stdout == b"No stored credentials.\n"
    store(shell, "bob", stage.secret(), "--realm", "Staff", "--scheme", "basic")
    store(shell, "carol", stage.secret(), "--realm", "会社", "--scheme", "digest", site=SITE + ":8443")
    store(shell, "dave", stage.secret(), site="HTTP://[::1]/x?y")
    done = shell.run("credentials", "list")
    lines = done.stdout.decode().splitlines()
    assert lines[0].split() == ["ID", "TYPE", "USER", "SITE", "REALM", "SCHEME", "STORED", "DEFAULT", "CERTIFICATE"]
    assert [line.split()[:7] for line in lines[1:]] == [
        ["session:1", "password", "bob", SITE, "Staff", "Basic", "session"],
        ["session:2", "password", "carol", SITE + ":8443", "会社", "Digest", "session"],
        ["session:3", "password", "dave", "http://[::1]", "(any)", "(any)", "session"],
    ]
    # Two wide characters take four columns.
    columns = [lines[1].index("Basic"), lines[2].index("Digest") + 2, lines[3].rindex("(any)")]
    assert columns == [lines[0].index("SCHEME")] * 3
    assert b"keyring not used" in done.stderr and done.stderr.count(b"\n") == 1
    assert [entry["user"] for entry in listed(shell, SITE + "/path")] == ["bob"]
    assert shell.run("credentials", "list", "https://other.example").stdout == b"No stored credentials.\n"


def test_forgetting_by_id_and_by_site(stage, shell):
    for user, realm in [("a", "One"), ("b", "Two"), ("c", "Two"), ("d", "Two")]:
        store(shell, user, stage.secret(), "--realm", realm)
    store(shell, "e", stage.secret(), site="https://other.example")
    assert shell.run("credentials", "forget", "session:2").stdout == b"1 credential forgotten\n"
    assert says(shell.run("credentials", "forget", "session:2"), 1, "watchword credentials list")
    done = shell.run("credentials", "forget", "--site", SITE, "--realm", "Two")
    assert done.stdout == b"2 credentials forgotten\n" and b"keyring not used" in done.stderr
    assert [entry["user"] for entry in listed(shell)] == ["a", "e"]
    assert shell.run("credentials", "forget", "--site", SITE).stdout == b"1 credential forgotten\n"
    assert shell.run("credentials", "forget", "--site", SITE).stdout == b"0 credentials forgotten\n"
    for arguments in [[], ["session:1", "--site", SITE], ["session:1", "--realm", "One"], ["--realm", "One"], ["bob"]]:
        assert refuses_usage("credentials forget", shell.run("credentials", "forget", *arguments), "ID")


def test_the_default_of_a_site(stage, shell):
    passwords = {user: stage.secret() for user in ["bob", "carol"]}
    keys = {basic(user, password): user for user, password in passwords.items()}

    def handle(request):
        user = keys.get(request.authorization)
        return response(200, user.encode()) if user else response(401, b"", 'WWW-Authenticate: Basic realm="Staff"')

    server = stage.server(handle)
    for user, password in passwords.items():
        stage.allow(password, server)
        assert shell.run("fetch", "-u", f"{user}:{password}", server.url).stdout == user.encode()
    ids = {entry["user"]: entry["id"] for entry in listed(shell)}
    for user in ["bob", "carol"]:
        assert shell.run("credentials", "default", ids[user]).stdout == f"{ids[user]} is now the default\n".encode()
        assert [entry["user"] for entry in listed(shell) if entry["isDefault"]] == [user]
        marked = [line for line in shell.run("credentials", "list").stdout.decode().splitlines() if line.endswith("  yes")]
        assert len(marked) == 1 and user in marked[0]
        assert shell.run("fetch", server.url).stdout == user.encode()
    assert says(shell.run("credentials", "default", "session:99"), 1, "with this id", "watchword credentials list")
    assert says(shell.run("credentials", "default", "keyring:/none"), 1, "with this id")
    assert refuses_usage("credentials default", shell.run("credentials", "default", "99"), "session:7")


def test_clearing_the_session(stage, shell):
    password = stage.secret()
    servers = [stage.server(basic_server("bob", password)) for _ in range(3)]
    for server in servers:
        stage.allow(password, server)
        assert shell.run("fetch", "-u", f"bob:{password}", server.url).returncode == 0
    assert shell.run("session", "clear", servers[0].url + "/x").stdout == b"1 login forgotten\n"
    assert shell.run("session", "clear").stdout == b"2 logins forgotten\n"
    assert shell.run("session", "clear").stdout == b"0 logins forgotten\n"
    assert shell.run("fetch", servers[0].url).returncode == 67


# Lock, keyring, status

def test_a_locked_broker_refuses(stage, shell):
    store(shell, "bob", stage.secret())
    assert shell.run("lock").stdout.startswith(b"Locked")
    assert b"Locked:      yes" in shell.run("status").stdout
    for command in [["credentials", "list"], ["credentials", "forget", "session:1"], ["credentials", "default", "session:1"], ["keyring", "unlock"]]:
        assert says(shell.run(*command), 1, "the broker is locked", "watchword unlock")
    assert says(store(shell, "bob", stage.secret()), 1, "watchword unlock")
    assert shell.run("unlock").stdout == b"Unlocked.\n"
    assert b"Locked:      no" in shell.run("status").stdout and listed(shell) == []


def test_the_keyring_that_is_not_there(shell):
    done = shell.run("keyring", "status")
    assert (done.returncode, done.stdout) == (0, b"unavailable: no session bus; is this a login session?\n")
    assert json.loads(shell.run("keyring", "status", "--json").stdout)["kind"] == "absent"
    assert says(shell.run("keyring", "unlock"), 1, "no session bus")


def test_the_status_shows_agents_and_waiting_fetches(stage, shell):
    server = stage.server(basic_server("bob", "x"))
    agent = stage.client(delivery="none")
    agent.call("agent/register", {"name": "desk\x1b[2J", "priority": 7})
    shown = shell.run("status").stdout.decode()
    assert "(priority 7)" in shown and "desk" in shown and "\x1b" not in shown
    fetches = [agent.start("fetch/run", {"url": server.url}) for _ in range(3)]
    challenge = agent.challenges.get(timeout=30)
    eventually(lambda: "3 running (2 waiting for another login), 0 done" in shell.run("status").stdout.decode(), "the others do not wait")
    agent.reply(challenge, {"action": "continue"})
    assert [agent.wait(fetch)["result"]["status"] for fetch in fetches] == [401] * 3
    agent.close()


# Without a broker

@pytest.fixture
def alone(tmp_path):
    environment = {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path), "PATH": os.environ["PATH"]}

    def run(*arguments, helper=None, **more):
        more.setdefault("env", environment)
        return subprocess.run([helper or program("watchword"), *arguments], capture_output=True, timeout=30, start_new_session=True, **more)

    run.environment = environment
    return run


@pytest.mark.parametrize("command", [
    "credentials list", "credentials forget session:1", f"credentials forget --site {SITE}", "credentials default session:1", "lock",
    "unlock", "keyring status", "keyring unlock", "session clear", "status", "run --no-start -- true", f"credentials store {SITE} --user bob --no-start"])
def test_no_broker_is_started_to_look(alone, tmp_path, command):
    assert says(alone(*command.split()), 2, "no broker listens", "start watchwordd")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command, code", [
    ("credentials store", 64), ("credentials forget", 64), ("credentials default", 64), ("credentials import", 64), ("session clear", 64),
    ("grants revoke", 64), ("log", 64), ("status", 64), ("agent", 64), ("askpass", 64), ("fetch", 2), ("config check", 64)])
def test_an_error_shows_the_usage_of_its_command(alone, command, code):
    done = alone(*command.split(), "--nonexistent")
    usage = [line for line in done.stderr.decode().splitlines() if line.startswith("Usage: ")]
    assert (done.returncode, done.stdout, len(usage)) == (code, b"", 1), done
    assert f"{usage[0]} ".startswith((f"Usage: watchword {command} [", f"Usage: watchword {command} <")), usage


@pytest.mark.parametrize("name", ["watchword/broker.sock", "private/its.sock"], ids=["default", "given"])
def test_storing_starts_a_broker(alone, tmp_path, name):
    socket, place = tmp_path / name, []
    if "its" in name:
        socket.parent.mkdir(mode=0o700)
        place = ["--socket", str(socket)]
    done = alone("credentials", "store", SITE, "--user", "bob", "--password-stdin", *place, input=b"pw")
    try:
        assert done.stdout == b"Stored in the session as session:1.\n", done
        assert b"bob" in alone("credentials", "list", *place).stdout
        # The fetch, too, uses this broker, and starts no second one.
        assert alone("fetch", *place, "http://127.0.0.1:1/").returncode == 7
        assert not place or says(alone("credentials", "list"), 2, "no broker listens"), "nothing listens at the default path"
        assert (tmp_path / "watchword").exists() is not bool(place)
    finally:
        os.kill(int(pathlib.Path(f"{socket}.lock").read_text()), 15)


def test_config_path(alone, tmp_path):
    assert alone("config", "path").stdout == f"{tmp_path}/.config/watchword/config.toml\n".encode()
    assert alone("config", "path", env={**alone.environment, "XDG_CONFIG_HOME": "/c"}).stdout == b"/c/watchword/config.toml\n"
    assert says(alone("config", "path", env={}), 1, "$HOME")


def test_config_speaks_json(alone, tmp_path):
    file = tmp_path / ".config" / "watchword" / "config.toml"
    assert json.loads(alone("config", "path", "--json").stdout) == {"path": str(file)}
    assert json.loads(alone("config", "check", "--json").stdout) == {
        "exists": False, "inOrder": True, "lines": [f"{file} does not exist; the defaults apply"]}
    named = alone("config", "check", "--json", str(tmp_path / "absent"))
    assert named.returncode == 1 and not json.loads(named.stdout)["exists"] and not json.loads(named.stdout)["inOrder"]
    file.parent.mkdir(parents=True)
    private(file, "[fetch]\nalow = []\nx = 1\n")
    done = alone("config", "check", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 1 and found["exists"] and not found["inOrder"] and "alow" in found["lines"][1] and len(found["lines"]) == 3


def test_config_check_is_the_brokers_own(alone, tmp_path):
    file = tmp_path / ".config" / "watchword" / "config.toml"
    assert alone("config", "check").stdout == f"{file} does not exist; the defaults apply\n".encode()
    written(file.parent, {file.name: "[limits]\nsession-idel-s = 1\n"})
    expected = subprocess.run([program("watchwordd"), "--check-config"], env=alone.environment, capture_output=True)
    done = alone("config", "check")
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", expected.stderr) and b"session-idle-s" in done.stderr
    other = tmp_path / "-other.toml"
    other.write_text("[limits]\nsession-idle-s = 60\n")
    assert alone("config", "check", str(other)).stdout == f"{other}: valid\n".encode()
    assert alone("config", "check", "--", "-other.toml", cwd=tmp_path).stdout == b"-other.toml: valid\n"
    missing = alone("config", "check", str(tmp_path / "none.toml"))
    assert missing.returncode == 1 and b"does not exist" in missing.stderr


def test_config_check_finds_the_broker_in_the_path(alone, tmp_path):
    helper = shutil.copy(program("watchword"), tmp_path / "watchword")
    assert says(alone("config", "check", helper=helper, env={**alone.environment, "PATH": "/nonexistent"}), 2, "cannot find watchwordd")
    path = {**alone.environment, "PATH": os.path.dirname(program("watchwordd"))}
    assert alone("config", "check", helper=helper, env=path).returncode == 0


@pytest.mark.parametrize("script, reason", [("kill -KILL $$", "ended by signal 9"), ("exit 5", "exited with code 5")])
def test_a_broker_that_ends_while_it_starts(alone, tmp_path, script, reason):
    helper = shutil.copy(program("watchword"), tmp_path / "watchword")
    executable((tmp_path / "watchwordd"), f"#!/bin/sh\n{script}\n")
    assert says(alone("fetch", "http://127.0.0.1:1/", helper=helper), 2, "cannot start the broker", reason)


def test_the_cause_of_a_failed_start_is_reported(alone, tmp_path):
    file = tmp_path / ".config" / "watchword" / "config.toml"
    written(file.parent, {file.name: "[limits]\nsession-idel-s = 1\n"})
    fetch = ["fetch", "http://127.0.0.1:1/"]
    assert says(alone(*fetch), 2, f"cannot start the broker: invalid configuration file {file}: line 2: limits.session-idel-s: ")
    # More than a pipe takes.
    file.write_text("[limits]\n" + "".join(f"zz{number} = 1\n" for number in range(1000)))
    assert says(alone(*fetch), 2, f"cannot start the broker: invalid configuration file {file}: line 2: limits.zz0: ")
    file.unlink()
    folder = tmp_path / "open"
    folder.mkdir(mode=0o755)
    assert says(alone(*fetch, "--socket", str(folder / "broker.sock")), 2, f"cannot start the broker: cannot use the directory {folder}")


@pytest.mark.parametrize("arguments, similar", [
    (["ftech", "http://127.0.0.1:1/"], "fetch"), (["credentials", "lsit"], "list"), (["config", "chek"], "check")])
def test_a_mistyped_command_is_answered_with_a_similar_one(alone, arguments, similar):
    assert says(alone(*arguments), 64, " is not a command of watchword", f'did you mean "{similar}"?')


COMMANDS = [
    "", "fetch", "status", "lock", "unlock", "credentials", "credentials list", "credentials store", "credentials forget", "credentials default",
    "session", "session clear", "keyring", "keyring status", "keyring unlock", "config", "config check", "config path"]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(alone, command):
    shown = alone(*command.split(), "--help").stdout.decode()
    assert shown.startswith("OVERVIEW: ")
    example = shown.split("\nExample", 1)[1].split("USAGE:")[0]
    assert f"watchword {command}".rstrip() in example
    assert command or all(f"\n  {one} " in shown for one in COMMANDS if one and " " not in one)


def test_a_lock_with_a_passphrase(stage, shell):
    passphrase = stage.secret()
    terminal = shell.at_terminal("lock", "--passphrase")
    for prompt in ["New passphrase: ", "Repeat it: "]:
        terminal.answer({prompt: passphrase})
    assert terminal.end() == 0 and passphrase.encode() not in terminal.shown
    assert says(shell.run("unlock"), 1, "was locked with a passphrase")
    assert says(shell.run("unlock", "--passphrase-stdin", input=b"wrong\n"), 1, "wrong passphrase", "in 1 s")
    # Sent together, so that nothing but the broker's clock decides whether the second one comes too soon.
    client = stage.client()
    attempts = [client.start("broker/unlock", {"passphrase": text}) for text in ("wrong", passphrase)]
    assert "retry in" in client.wait(attempts[0])["error"]["message"]
    assert client.wait(attempts[1])["error"]["data"]["kind"] == "busy"
    eventually(lambda: shell.run("unlock", "--passphrase-stdin", input=passphrase.encode()).stdout == b"Unlocked.\n", "it stays locked", 20)
    assert shell.run("unlock").returncode == 0


#: 253 characters; libcurl resolves names below localhost to this machine.
HOST = "www.mybank.example-login." + ".".join(letter * 63 for letter in "abc") + "." + "d" * 21 + ".evil.localhost"


def test_rule_x3_a_long_host_is_shown_whole_in_prompts_and_lists(stage):
    assert len(HOST) == 253
    server, password = stage.protected()
    site, broker = f"http://{HOST}:{server.port}", stage.broker()
    shell = Shell(broker)
    terminal = shell.at_terminal("fetch", f"{site}/{'x' * 500}")
    terminal.expect("User: ")
    asked = terminal.shown.decode().replace("\r\n", "\n")
    assert f"{site} requires a login." in asked and f"\n  The host name is long and ends in {'d' * 21}.evil.localhost\n" in asked
    terminal.type("bob\n")
    terminal.answer({"Password for bob: ": password})
    assert terminal.end() == 0
    assert f"  {site}  " in shell.run("credentials", "list").stdout.decode()
    audit.wait_for(lambda: "credentialUsed" in audit.kinds(broker))
    assert f"used a login for {site} " in shell.run("log").stdout.decode()


def test_redirects_are_shown_with_the_whole_host(stage):
    place = f"http://{HOST}"
    server = stage.server(ScriptedServer(lambda request: response(
        302, b"", f"Location: {place}:{request.header('host').rpartition(':')[2]}/{'x' * 500}last")
        if "/start" in request.target else response(200, b"there")))
    done = Shell(stage.broker()).run("fetch", "-v", "-L", f"{server.url}/start")
    assert done.stdout == b"there", done
    line = next(line for line in done.stderr.decode().splitlines() if "redirected to " in line)
    assert f"{place}:{server.port}/xxx" in line and line.endswith("xlast") and "…" in line


def test_gits_store_is_imported_and_used(stage, shell, tmp_path):
    server, password = stage.protected()
    file = private(tmp_path / ".git-credentials", f"http://bob:{password}@127.0.0.1:{server.port}\nhttps://eve@h\n")
    done = shell.run("credentials", "import", str(file), "--dry-run")
    assert done.returncode == 3 and b"not stored (--dry-run)" in done.stdout
    assert shell.run("fetch", "-s", server.url).returncode == 67
    done = shell.run("credentials", "import", str(file))
    assert done.returncode == 3, done
    assert done.stdout.decode() == f"http://127.0.0.1:{server.port} as bob: stored in the session\n"
    # The middle of a long path is left out.
    said = "/.git-credentials, line 2: not stored: no user and password, or invalid percent-encoding\n"
    assert done.stderr.decode().endswith(said) and done.stderr.count(b"\n") == 2
    assert done.stderr.startswith(b"watchword: stored 1 of 2 logins; not these:\n")
    count = len(server.requests)
    assert shell.run("fetch", "-s", server.url).stdout == b"welcome"
    assert server.authorizations[count:] == [None, basic("bob", password)]
    private(file, "https://one:pw@a.example\n")
    done = shell.run("credentials", "import", str(file))
    assert (done.returncode, done.stderr) == (0, b""), "a whole import has the status 0"


def test_a_netrc_file_is_imported(stage, shell, tmp_path):
    password = stage.secret()
    file = tmp_path / "netrc"
    file.write_text(f"machine h.example login bob password {password}\ndefault login any password x\n")
    file.chmod(0o644)
    done = shell.run("credentials", "import", str(file))
    assert done.returncode == 3 and done.stdout == b"https://h.example:443 as bob: stored in the session\n"
    assert b"other users can read or change" in done.stderr and b"line 2: not stored: default" in done.stderr
    listed = stage.client(delivery=None).call("credential/list", {})["result"]["credentials"]
    assert [(one["user"], one["protectionSpace"]["host"], one["protectionSpace"]["port"]) for one in listed] == [("bob", "h.example", 443)]


@pytest.mark.parametrize("make, said", [
    (lambda path: None, "cannot read"), (lambda path: path.mkdir(), "not a regular file"),
    (lambda path: path.write_text(""), "no login found"), (lambda path: os.mkfifo(path), "not a regular file"),
    (lambda path: path.write_text("x" * (1 << 20) + "y"), "larger than")])
def test_a_file_of_another_format_is_refused(shell, tmp_path, make, said):
    make(tmp_path / ".netrc")
    done = shell.run("credentials", "import", str(tmp_path / ".netrc"))
    assert done.returncode == 1 and said in done.stderr.decode(), done


def test_a_name_that_says_nothing_needs_a_format(shell, tmp_path):
    done = shell.run("credentials", "import", str(tmp_path / "passwords"))
    assert done.returncode == 64 and b"--format" in done.stderr
