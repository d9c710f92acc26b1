"""A password is not in the broker's memory any more after its last use, and no part of one of 16 bytes or more; and the daemon's allocator
(CWipingHeap), which wipes freed memory."""
import base64
import contextlib
import json
import os
import secrets
import signal
import struct
import subprocess

import pytest

from rig.bodies import eventually
from rig.broker import ROOT
from rig.client import password_answer
from rig.forwarding import Socks5Server
from rig.keyring import settle
from rig.memory import Scanner, Tracer, places, remaining
from rig.scripted import DigestCheck, ScriptedServer, basic_server, response
from rig.servers import private
from rig.subjects import PromptAgent

if os.geteuid() != 0:
    pytest.fail("only root may read the memory of another process; run the tests as root", pytrace=False)


@pytest.fixture(params=["basic", "digest"])
def logged_in(stage, request):
    """A session that contains a password."""
    password = stage.secret()
    is_basic = request.param == "basic"
    server = stage.server(basic_server("bob", password) if is_basic else DigestCheck("bob", password, algorithm="SHA-256"))
    stage.allow(password, server)
    client = stage.client(answer=password_answer("bob", password, persistence="forSession"))
    assert client.fetch(server.url + "/a")["result"]["status"] == 200
    assert places(stage.brokers[0].process.pid, password), "the scan does not find the password"
    return stage.brokers[0], client, server, password


@pytest.mark.parametrize("end", ["session/clear", "broker/lock", "SIGUSR1"])
def test_no_copy_remains_after_the_end_of_the_session(logged_in, end):
    broker, client, _, password = logged_in
    if end == "SIGUSR1":
        broker.process.send_signal(signal.SIGUSR1)
    else:
        assert "result" in client.call(end, {})
    assert remaining(broker, password) == []


def test_no_copy_remains_at_the_end_of_the_process(logged_in):
    broker, _, _, password = logged_in
    tracer = Tracer(broker.process.pid)
    broker.process.send_signal(signal.SIGTERM)
    tracer.wait_for_end()
    try:
        assert places(broker.process.pid, password) == []
    finally:
        tracer.release()


def test_no_copy_remains_after_the_session_expired(stage):
    server, password = stage.protected("bob")
    broker = stage.configured("[limits]\nsession-idle-s = 1\n")
    client = stage.client(answer=password_answer("bob", password, persistence="forSession"), broker=broker)
    assert client.fetch(server.url)["result"]["status"] == 200
    # The broker checks every five seconds.
    assert remaining(broker, password) == []


@pytest.mark.parametrize("place", ["answer", "URL"])
def test_no_copy_remains_after_the_fetch(stage, place):
    server, password = stage.protected()
    client = stage.client(answer=password_answer("bob", password, persistence="none"))
    url = server.url if place == "answer" else server.url.replace("//", f"//bob:{password}@")
    assert client.fetch(url)["result"]["status"] == 200
    if place == "URL":
        client.call("session/clear", {})
    assert remaining(stage.brokers[0], password) == []


@pytest.mark.parametrize("framing", ["lines", "headers"])
@pytest.mark.parametrize("ends", ["cancel", "leave", "refused", "unfinished"])
def test_no_copy_remains_of_an_answer_without_effect(stage, framing, ends):
    password = stage.secret()
    server = stage.server(ScriptedServer(
        lambda request: None if request.authorization and ends != "refused" else response(401, b"", 'WWW-Authenticate: Basic realm="r"')))
    stage.allow(password, server)
    client = stage.client(framing=framing)
    broker, call = stage.brokers[0], client.start("fetch/run", {"url": server.url})
    challenge = client.challenges.get(timeout=30)
    answer = password_answer("bob", password, persistence="forSession")
    if ends == "unfinished":
        client.send_bytes(b'{"jsonrpc":"2.0","id":%d,"result":{"action":"credential","credential":{"password":"%s' % (
            challenge["id"], password.encode()))
        eventually(lambda: places(broker.process.pid, password), "it has not come")
        client.close()
    else:
        client.reply(challenge, answer)
        if ends == "refused":
            client.reply(client.challenges.get(timeout=30), {"action": "cancel"})
        else:
            eventually(lambda: len(server.requests) == 2, "it is not sent")
            assert places(broker.process.pid, password)
            client.close() if ends == "leave" else client.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": call}})
    assert remaining(broker, password) == []


@pytest.mark.parametrize("path", ["/staff/page.txt", "/private/"])
def test_no_copy_remains_after_sending_over_tls(stage, nginx_tls, account, tls, path):
    """The fetch uses HTTP/2, so the search includes the memory of libcurl, nghttp2 and OpenSSL."""
    user, password = account
    broker = stage.broker("--ca-file", str(tls / "ca.pem"))
    client = stage.client(answer=password_answer(user, password, persistence="forSession"), broker=broker)
    for _ in range(3):
        assert client.fetch(f"https://localhost:{nginx_tls.port}/staff/page.txt")["result"]["status"] == 200
    assert places(broker.process.pid, password)
    client.call("session/clear", {})
    assert remaining(broker, password) == []


def test_no_copy_remains_after_ntlm(stage, ntlm, ntlm_users):
    broker = stage.configured('[schemes]\nntlm = ["127.0.0.1"]\n')
    client = stage.client(answer=password_answer("TESTDOM\\alice", ntlm_users["alice"], persistence="forSession"), broker=broker)
    for _ in range(2):
        assert client.fetch(ntlm.url)["result"]["status"] == 200
    client.call("session/clear", {})
    assert remaining(broker, ntlm_users["alice"]) == []


def test_no_copy_remains_after_storing_in_the_keyring(stage, gnome):
    server, password = stage.protected("bob")
    broker = stage.broker(environment=gnome.environment)
    client = stage.client(answer=password_answer("bob", password, persistence="permanent"), broker=broker)
    assert client.fetch(server.url)["result"]["status"] == 200
    settle(client)
    client.call("broker/lock", {})
    assert remaining(broker, password) == []


def test_no_copy_remains_of_a_netrc_entry(stage):
    """The passwords of the file's other machines are searched for, too."""
    password, others = stage.secret(), stage.secret()
    server = stage.server(basic_server("bob", password))
    stage.allow(password, server)
    file = stage.folder / "logins.netrc"
    private(file, f"machine h login bob password {others}\nmachine 127.0.0.1:{server.port} login bob password {password}\n" * 20)
    broker = stage.configured(f'[keyring]\nenabled = false\n[credentials]\nnetrc = "{file}"\n')
    client = stage.client(broker=broker)
    assert client.fetch(server.url)["result"]["auth"]["source"] == "netrc"
    assert places(broker.process.pid, password), "the session has it"
    assert remaining(broker, others) == []
    client.call("session/clear", {})
    assert remaining(broker, password) == []


@pytest.mark.parametrize("crash", [signal.SIGSEGV, signal.SIGTRAP, signal.SIGQUIT])
def test_rule_m5_a_crash_writes_neither_memory_nor_a_core_file(stage, crash):
    """Swift's runtime would write down registers, and the memory that they point to."""
    broker = stage.broker()
    before = broker.log
    broker.process.send_signal(crash)
    assert broker.process.wait(30) == -crash
    assert broker.log == before
    assert not list(broker.folder.glob("**/core*"))


def test_no_copy_of_the_answer_to_a_prompt_remains(stage):
    """The answer passes from the agent to the program, and is stored nowhere."""
    secret, broker = stage.secret(), stage.broker()
    agent, program = PromptAgent(stage.client(broker=broker, delivery=None)), ask_in_another_process(broker)
    prompt = agent.next()
    agent.answer(prompt, secret)
    assert json.loads(program.communicate(timeout=30)[0])["result"] == {"value": secret}
    assert remaining(broker, secret) == []


def ask_in_another_process(broker):
    """Starts a program that prompts: a process is never asked about its own prompts."""
    call = {"jsonrpc": "2.0", "id": 1, "method": "prompt/ask", "params": {"text": "Password: ", "kind": "secret"}}
    script = ("import socket, sys\nwire = socket.socket(socket.AF_UNIX)\nwire.connect(sys.argv[1])\n"
              "wire.sendall(sys.argv[2].encode() + b'\\n')\nprint(wire.makefile().readline())")
    return subprocess.Popen(
        ["/usr/bin/python3", "-c", script, broker.socket, json.dumps(call)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)


LENGTHS = [8, 15, 16, 31, 32, 33, 47, 48, 64, 127, 255, 256]


@pytest.fixture(scope="module")
def passwords():
    letters = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
    return ["".join(secrets.choice(letters) for _ in range(length)) for length in LENGTHS]


@pytest.fixture
def scanner(passwords, tmp_path_factory):
    return Scanner(passwords, tmp_path_factory.getbasetemp())


def check(broker, scanner, seconds=30):
    """Searches the memory after a moment: the broker is still cleaning up when the client receives the end of its fetch."""
    eventually(lambda: not scanner.places(broker.process.pid), lambda: scanner.places(broker.process.pid), seconds, pause=0.05)


def rotated(passwords, *words):
    """Returns some lengths. Much happens only at the first login, so each test begins with another length."""
    start = sum(map(ord, "".join(words))) % len(passwords)
    return (passwords[start:] + passwords[:start])[:5]


NTLM_CHALLENGE = "NTLM " + base64.b64encode(
    b"NTLMSSP\0" + struct.pack("<I", 2) + bytes(8) + struct.pack("<I", 0x888205) + b"12345678" + bytes(8)
    + struct.pack("<HHI", 10, 10, 48) + b"\2\0\2\0D\0\0\0\0\0").decode()

CHALLENGES = {
    "basic": 'Basic realm="r"', "digest-md5": 'Digest realm="r", nonce="n", qop="auth", algorithm=MD5',
    "digest-sha-256": 'Digest realm="r", nonce="n", qop="auth", algorithm=SHA-256',
    "digest-sha-512-256-sess": 'Digest realm="r", nonce="n", qop="auth", algorithm=SHA-512-256-sess',
    "bearer": 'Bearer realm="r"', "other": 'Custom realm="r"', "ntlm": "NTLM",
}


def accepting(challenge, proxy=False):
    """A server or proxy that accepts every login without checking it."""
    field, status = ("Proxy-Authenticate", 407) if proxy else ("WWW-Authenticate", 401)

    def handle(request):
        given = request.header("Proxy-Authorization" if proxy else "Authorization")
        if given and given.startswith("NTLM ") and base64.b64decode(given[5:])[8] == 1:
            return response(status, b"", f"{field}: {NTLM_CHALLENGE}")
        return response(200, b"welcome") if given else response(status, b"", f"{field}: {challenge}")

    return contextlib.closing(ScriptedServer(handle))


def credential(scheme, password):
    if scheme == "bearer":
        return {"type": "token", "token": password, "persistence": "none"}
    if scheme == "other":
        return {"type": "header", "scheme": "Custom", "value": password, "persistence": "none"}
    return {"type": "password", "user": "bob", "password": password, "persistence": "none"}


CONFIGURATION = '[schemes]\nntlm = ["127.0.0.1"]\n'


@pytest.mark.parametrize("scheme", CHALLENGES)
@pytest.mark.parametrize("way", ["answer", "own", "proxy-answer", "proxy-own"])
def test_rule_x8_no_fragment_is_left_of_a_credential_that_is_not_stored(stage, passwords, scanner, scheme, way):
    broker = stage.configured(CONFIGURATION)
    isProxy = way.startswith("proxy")
    with accepting(CHALLENGES[scheme], isProxy) as server:
        for password in rotated(passwords, scheme, way):
            given = credential(scheme, password)
            client = stage.client(answer={"action": "credential", "credential": given}, broker=broker)
            params = {}
            if isProxy:
                params["proxy"] = {"url": server.url, **({"credential": given} if way == "proxy-own" else {})}
            elif way == "own":
                params["credential"] = given
            url = "http://host.invalid/" if isProxy else server.url
            assert client.fetch(url, **params)["result"]["status"] == 200
            client.close()
            check(broker, scanner)


@pytest.mark.parametrize("length", LENGTHS)
def test_rule_x8_no_fragment_is_left_of_the_first_login(stage, passwords, scanner, length):
    password, broker = passwords[LENGTHS.index(length)], stage.configured(CONFIGURATION)
    with accepting(CHALLENGES["digest-sha-256"]) as server:
        client = stage.client(answer=password_answer("bob", password, persistence="none"), broker=broker)
        assert client.fetch(server.url)["result"]["status"] == 200
        client.close()
        check(broker, scanner)


def test_functions_are_found_before_the_program_starts(stage):
    """The lazy resolver of the dynamic linker would save vector registers on the stack."""
    program = os.readlink(f"/proc/{stage.broker().process.pid}/exe")
    assert "NOW" in subprocess.run(["readelf", "-d", program], check=True, capture_output=True, text=True).stdout


def test_the_scanner_finds_present_fragments(stage, passwords, scanner):
    broker = stage.configured(CONFIGURATION)
    with accepting(CHALLENGES["basic"]) as server:
        client = stage.client(answer=password_answer("bob", passwords[-1], persistence="forSession"), broker=broker)
        assert client.fetch(server.url)["result"]["status"] == 200
        assert places(broker.process.pid, passwords[-1]) and scanner.places(broker.process.pid)


@pytest.mark.parametrize("scheme", ["basic", "digest-sha-256", "ntlm"])
@pytest.mark.parametrize("way", ["url", "session", "stored"])
def test_rule_x8_no_fragment_is_left_of_a_credential_removed_from_the_session(stage, passwords, scanner, scheme, way):
    broker = stage.configured(CONFIGURATION)
    with accepting(CHALLENGES[scheme]) as server:
        for password in rotated(passwords, scheme, way):
            client = stage.client(answer=password_answer("bob", password, persistence="forSession"), broker=broker)
            url = server.url if way != "url" else server.url.replace("//", f"//bob:{password}@")
            if way == "stored":
                method = {"basic": "httpBasic", "digest-sha-256": "httpDigest", "ntlm": "ntlm"}[scheme]
                client.store(server, "bob", password, authenticationMethod=method, **({} if scheme == "ntlm" else {"realm": "r"}))
            assert client.fetch(url)["result"]["status"] == 200
            client.call("session/clear", {})
            client.close()
            check(broker, scanner)


@pytest.mark.parametrize("way", ["answer", "own"])
def test_no_fragment_is_left_of_a_socks_login(stage, passwords, scanner, way):
    broker = stage.configured(CONFIGURATION)
    with contextlib.closing(ScriptedServer(lambda request: response(200, b"welcome"))) as server:
        # A SOCKS login has no room for longer ones (RFC 1929).
        for password in filter(lambda password: len(password) <= 255, passwords):
            with contextlib.closing(Socks5Server({"bob": password})) as socks:
                given = credential("socks", password)
                client = stage.client(answer={"action": "credential", "credential": given}, broker=broker)
                proxy = {"url": f"socks5h://127.0.0.1:{socks.port}", **({"credential": given} if way == "own" else {})}
                assert client.fetch(server.url, proxy=proxy)["result"]["status"] == 200
                client.close()
                check(broker, scanner)


@pytest.mark.parametrize("scheme", ["basic", "digest-sha-256", "ntlm"])
@pytest.mark.parametrize("way", ["answer", "own"])
def test_no_fragment_is_left_of_a_tunnel_login(stage, passwords, scanner, scheme, way):
    """The server behind the tunnel does not speak TLS, so the fetch fails after the login."""
    broker = stage.configured(CONFIGURATION)
    with accepting(CHALLENGES[scheme], True) as proxy:
        for password in rotated(passwords, scheme, way, "tunnel"):
            given = credential(scheme, password)
            client = stage.client(answer={"action": "credential", "credential": given}, broker=broker)
            choice = {"url": proxy.url, **({"credential": given} if way == "own" else {})}
            count = len(proxy.requests)
            assert "error" in client.fetch("https://host.invalid/", proxy=choice)
            assert any(request.header("Proxy-Authorization") for request in proxy.requests[count:])
            client.close()
            check(broker, scanner)


@pytest.mark.parametrize("form", ["pkcs8", "pkcs12"])
def test_rule_x8_no_fragment_is_left_of_a_passphrase(stage, certificates, client_nginx, passwords, scanner, tmp_path, form):
    broker = stage.broker("--ca-file", str(certificates / "ca.pem"))
    server = client_nginx("on", "TLSv1.3")
    for password in passwords:
        key = tmp_path / f"{len(password)}.{form}"
        make = {"pkcs8": ["pkcs8", "-topk8", "-in", certificates / "client.key"],
                "pkcs12": ["pkcs12", "-export", "-in", certificates / "client.pem", "-inkey", certificates / "client.key"]}[form]
        subprocess.run(["openssl", *make, "-out", key, "-passout", "stdin"], input=password.encode(), check=True, capture_output=True)
        key.chmod(0o600)
        parts = {"certificate": str(certificates / "client.pem"), "privateKey": str(key)} if form == "pkcs8" else {"certificate": str(key)}
        own = {"type": "certificate", **parts, "passphrase": password, "persistence": "none"}
        client = stage.client(broker=broker)
        reply = client.fetch(f"{server.url}/page.txt", tls={"certificate": own})
        assert reply.get("result", {}).get("status") == 200, reply
        client.close()
        check(broker, scanner)


def test_no_fragment_is_left_of_secrets_in_the_keyring(stage, gnome, passwords, scanner):
    broker = stage.broker(environment=gnome.environment)
    with accepting(CHALLENGES["basic"]) as server:
        for password in passwords:
            client = stage.client(answer=password_answer("bob", password, persistence="permanent"), broker=broker)
            assert client.fetch(server.url)["result"]["status"] == 200
            client.call("broker/lock", {})
            check(broker, scanner)
            client.call("broker/unlock", {})
            client.close()


SOURCE = ROOT / "Sources" / "CWipingHeap"
PROGRAM = ROOT / "Tests" / "EndToEnd" / "programs" / "heap.c"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    built = tmp_path_factory.mktemp("heap") / "heap"
    # Without -fno-builtin the compiler removes memory that is only allocated and freed.
    subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-fno-builtin", "-I", SOURCE / "include", SOURCE / "heap.c",
                    PROGRAM, "-o", built, "-lpthread"], check=True)
    return built


@pytest.mark.parametrize("what", ["contents", "wiping", "bound", "threads"])
def test_blocks_are_whole_wiped_and_bounded(program, what):
    done = subprocess.run([program, what], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "good\n")


@pytest.mark.parametrize("what", ["twice", "returned"])
def test_a_block_freed_twice_ends_the_process(program, what):
    assert subprocess.run([program, what], capture_output=True, text=True, timeout=60).returncode == -signal.SIGABRT
