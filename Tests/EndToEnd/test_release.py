"""credential/get: the only way to release a secret, for programs that the configuration names."""
import os
import signal
import subprocess
import sys

import pytest

from rig import audit, memory
from rig.bodies import eventually
from rig.client import Client

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
    broker = allowing(stage, f"{PROGRAM} git.example.com")
    client = stage.client(broker=broker)
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


def test_nothing_is_released_on_the_restricted_socket(stage, password):
    broker = allowing(stage, f"{PROGRAM} git.example.com", password)
    other = Client(os.path.join(os.path.dirname(broker.socket), "restricted.sock"))
    stage.clients.append(other)
    assert kind(get(other)) == "denied"
    assert password.encode() not in other.received_bytes


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


def test_a_matching_keyring_item_is_released(stage, gnome, password):
    broker = stage.configured(f'[credentials]\nhand-out = ["{PROGRAM} git.example.com"]\n', environment=gnome.environment)
    client = stage.client(broker=broker)
    store(client, password, persistence="permanent")
    found = get(client)["result"]
    assert found["source"] == "keyring" and found["credential"]["password"] == password
    store(client, password + "2", user="amy", persistence="permanent")
    assert get(client)["result"]["credential"]["user"] == "bob", "the first is the default"
    assert get(client, user="amy")["result"]["credential"]["password"] == password + "2"
    plain = client.call("credential/get", {"protectionSpace": {"protocol": "http", "host": "git.example.com"}, "user": "amy"})
    assert kind(plain) == "unknownCredential", "a login stored for https is not used for http"


def test_a_sandboxed_program_is_refused(stage, password):
    broker = allowing(stage, f"{PROGRAM} git.example.com", password)
    assert kind(get(stage.sandbox())) == "denied"


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
