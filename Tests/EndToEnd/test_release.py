"""credential/get: the only way to release a secret, for programs that the configuration names; and none is released where the program
could be made to reveal it."""
import os
import signal
import subprocess
import sys

import pytest

from rig import audit, memory
from rig.bodies import eventually

PROGRAM = os.path.realpath(sys.executable)
SITE = {"protocol": "https", "host": "git.example.com"}


def allowing(stage, rule, password=None):
    """A broker with this rule, in whose session the password is stored."""
    broker = stage.configured(f'[credentials]\nhand-out = ["{rule}"]\n')
    if password:
        store(stage.client(broker=broker), password)
    return broker


def store(client, password, user="bob", **more):
    space = {**SITE, **more.pop("space", {})}
    credential = {"type": "password", "user": user, "password": password, "persistence": more.pop("persistence", "forSession")}
    return client.call("credential/store", {"protectionSpace": space, "credential": credential})["result"]["id"]


def get(client, **params):
    return client.call("credential/get", {"protectionSpace": SITE, **params})


def kind(reply):
    return reply["error"]["data"]["kind"]


@pytest.fixture
def password():
    return "handed" + os.urandom(8).hex()


def test_rule_a5_no_stored_secret_is_released_by_default(stage, password):
    client = stage.client()
    store(client, password)
    reply = get(client)
    assert kind(reply) == "denied" and "credentials.hand-out" in reply["error"]["message"]
    assert password.encode() not in client.received_bytes


def test_a_listed_program_gets_the_credentials_of_its_hosts(stage, password):
    client = stage.client(broker=allowing(stage, f"{PROGRAM} git.example.com"))
    assert kind(get(client)) == "keyringUnavailable", "the session is empty, and there is no keyring"
    store(client, password)
    assert get(client)["result"] == {
        "credential": {"type": "password", "user": "bob", "password": password, "persistence": "forSession"}, "source": "session"}
    other = client.call("credential/get", {"protectionSpace": {**SITE, "host": "www.example.com"}})
    assert kind(other) == "denied" and f'"{PROGRAM} www.example.com"' in other["error"]["message"]
    assert kind(get(client, user="amy")) == "keyringUnavailable"


def test_a_release_is_recorded_without_the_secret(stage, password):
    broker = allowing(stage, f"{PROGRAM} git.example.com")
    client = stage.client(broker=broker)
    store(client, password)
    get(client)
    audit.wait_for_kinds(broker, "credentialStored", "credentialHandedOut")
    event = audit.events(broker)[-1]
    assert event["protectionSpace"]["host"] == "git.example.com" and event["client"]["executable"] == PROGRAM
    assert password not in "".join(audit.lines(broker))
    assert password not in broker.log


def test_a_process_that_has_become_another_program_is_refused(stage, password, tmp_path):
    """It connects as the named program, and sends its request as another one."""
    broker = allowing(stage, f"{PROGRAM} git.example.com", password)
    connect = ("import os, socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); os.dup2(s.fileno(), 0);"
               " os.set_inheritable(0, True); s.sendall(b'{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"ping\"}\\n'); s.recv(100);"
               " os.execv('/usr/bin/perl', ['perl', '-e', sys.argv[2]])")
    ask = ('use IO::Handle; open(my $s, "+<&=", 0); syswrite($s, qq({"jsonrpc":"2.0","id":1,"method":"credential/get","params":'
           '{"protectionSpace":{"protocol":"https","host":"git.example.com"}}}\\n)); sysread($s, my $got, 4096); print $got;')
    done = subprocess.run([PROGRAM, "-c", connect, broker.socket, ask], capture_output=True, text=True, timeout=30)
    assert '"denied"' in done.stdout, done
    assert password not in done.stdout


def test_rule_i1_a_request_from_before_the_identification_is_refused(stage, password):
    """Another program connects, sends its request, and becomes the named program before the broker looks at it. Its parent, which
    has the socket as well, reads the reply."""
    broker = allowing(stage, f"{PROGRAM} git.example.com", password)
    ask = ("use Socket; $^F = 1000; socket(my $s, PF_UNIX, SOCK_STREAM, 0); connect($s, sockaddr_un($ARGV[0])) or die; syswrite($s,"
           ' qq({"jsonrpc":"2.0","id":1,"method":"credential/get","params":{"protectionSpace":{"protocol":"https",'
           '"host":"git.example.com"}}}\n)); my $pid = $$; if (fork()) {'
           " exec($ARGV[1], '-c', 'import time; time.sleep(20)'); } print 'sent'; STDOUT->flush(); sysread($s, my $got, 4096);"
           " kill 'KILL', $pid; print $got;")
    os.kill(broker.process.pid, signal.SIGSTOP)
    try:
        process = subprocess.Popen(
            ["/usr/bin/perl", "-MIO::Handle", "-e", ask, broker.socket, PROGRAM], stdout=subprocess.PIPE, text=True)
        assert process.stdout.read(4) == "sent"
        eventually(lambda: os.readlink(f"/proc/{process.pid}/exe") == PROGRAM, "it is the named program", 20)
    finally:
        os.kill(broker.process.pid, signal.SIGCONT)
    got = process.stdout.read()
    process.wait(20)
    assert '"denied"' in got and "before the broker had identified" in got, got
    assert password not in got


@pytest.mark.parametrize("persistence", ["forSession", "permanent"])
def test_no_copy_of_a_released_credential_is_left(stage, gnome, password, persistence):
    broker = stage.configured(f'[credentials]\nhand-out = ["{PROGRAM} git.example.com"]\n', environment=gnome.environment)
    client = stage.client(broker=broker)
    store(client, password, persistence=persistence)
    for _ in range(3):
        assert get(client)["result"]["credential"]["password"] == password
    client.call("session/clear", {})
    eventually(lambda: memory.places(broker.process.pid, password) == [], "a copy of the password is in memory", 10)


def test_another_file_with_the_same_path_is_refused(stage, password):
    """In a mount namespace of its own, a program can have any path."""
    broker = allowing(stage, "/usr/bin/git git.example.com", password)
    ask = ("use Socket; socket(my $s, PF_UNIX, SOCK_STREAM, 0); connect($s, sockaddr_un($ARGV[0])) or die; syswrite($s,"
           ' qq({"jsonrpc":"2.0","id":1,"method":"credential/get","params":{"protectionSpace":{"protocol":"https",'
           '"host":"git.example.com"}}}\n)); sysread($s, my $got, 4096); print readlink("/proc/self/exe"), $got;')
    perl = os.path.realpath("/usr/bin/perl")
    done = subprocess.run(
        ["bwrap", "--dev-bind", "/", "/", "--ro-bind", perl, "/usr/bin/git", "/usr/bin/git", "-e", ask, broker.socket],
        capture_output=True, text=True, timeout=30)
    assert done.stdout.startswith("/usr/bin/git{"), done
    assert '"denied"' in done.stdout and password not in done.stdout, done


PLACE = {"protocol": "http", "host": "intranet.example", "port": 80}
HAND_OUT = f'[credentials]\nhand-out = ["{os.path.realpath(sys.executable)} intranet.example"]\n'


def store_at(client, space, user, secret, **more):
    login = {"type": "password", "user": user, "password": secret, "persistence": "forSession", **more}
    assert "result" in client.call("credential/store", {"protectionSpace": space, "credential": login})


def released(client, space, **more):
    reply = client.call("credential/get", {"protectionSpace": space, **more})
    if "error" in reply:
        assert reply["error"]["data"]["kind"] in ("unknownCredential", "keyringUnavailable"), reply
        return None
    return reply["result"]["credential"]["password"]


@pytest.mark.parametrize("method", ["httpDigest", "ntlm"])
@pytest.mark.parametrize("protocol", ["http", "https"])
def test_rule_25_over_http_only_what_is_stored_for_basic_is_released(stage, method, protocol):
    client = stage.client(broker=stage.configured(HAND_OUT))
    place = {**PLACE, "protocol": protocol}
    store_at(client, {**place, "authenticationMethod": method}, "bob", "of-one-method")
    assert released(client, place) == ("of-one-method" if protocol == "https" else None)
    store_at(client, place, "amy", "of-any-method")
    assert released(client, place, user="amy") == "of-any-method"


@pytest.mark.parametrize("kind", [{}, {"authtype": "basic"}, {"authtype": "digest"}, {"authtype": "ntlm"}], ids=lambda kind: kind.get("authtype", "any"))
def test_rule_25_the_same_is_true_for_the_keyring(stage, kind):
    keyring = stage.keyring()
    keyring.start_rig(None, ({
        "xdg:schema": "org.gnome.keyring.NetworkPassword", "server": "intranet.example", "protocol": "http", "port": "80", "user": "bob",
        "domain": "Staff", **kind}, "of-the-keyring"))
    client = stage.client(broker=stage.configured(HAND_OUT, environment=keyring.for_broker))
    assert released(client, PLACE) == ("of-the-keyring" if kind.get("authtype") in (None, "basic") else None)


@pytest.mark.parametrize("path, is_covered", [
    ("/team1/x", True), ("/team1", True), ("/team1/a/../x", True), ("/team1/./x", True), ("/team2", False), ("/team1/../mallory/x", False),
    ("/team1/./../mallory", False), ("/team1/%2e%2e/mallory", False), ("/team1/.%2E/mallory", False), ("/team1/..%2fmallory", False)])
def test_rule_18_the_path_of_a_released_password_is_resolved_first(stage, path, is_covered):
    client = stage.client(broker=stage.configured(HAND_OUT))
    place = {**PLACE, "protocol": "https", "port": 443}
    store_at(client, place, "team", "of-the-team", path="/team1")
    assert released(client, place, path=path) == ("of-the-team" if is_covered else None)
