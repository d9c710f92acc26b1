"""A password is not in the broker's memory any more after its last use."""
import json
import os
import signal
import subprocess
import time

import pytest

from rig import memory
from rig.bodies import eventually
from rig.client import password_answer
from rig.keyring import settle
from rig.subjects import PromptAgent
from rig.scripted import DigestCheck, basic_server, ScriptedServer, response

if os.geteuid() != 0:
    pytest.fail("only root may read the memory of another process; run the tests as root", pytrace=False)


def places_after(broker, secret, seconds=30):
    """Searches the memory after a moment: the broker is still cleaning up when the client receives the end of its fetch."""
    end = time.monotonic() + seconds
    while (found := memory.places(broker.process.pid, secret)) and time.monotonic() < end:
        time.sleep(0.1)
    return found


def servers_for(scheme, password):
    return basic_server("bob", password) if scheme == "basic" else ScriptedServer(DigestCheck("bob", password, algorithm="SHA-256"))


@pytest.fixture(params=["basic", "digest"])
def logged_in(stage, request):
    """A session that contains a password."""
    password = stage.secret()
    server = stage.server(servers_for(request.param, password))
    stage.allow(password, server)
    client = stage.client(answer=lambda challenge: password_answer("bob", password, persistence="forSession"))
    assert client.fetch(server.url + "/a", allowInsecureAuth=True)["result"]["status"] == 200
    assert memory.places(stage.brokers[0].process.pid, password), "the scan does not find the password"
    return stage.brokers[0], client, server, password


def test_no_copy_remains_after_forgetting(stage, logged_in):
    broker, client, server, password = logged_in
    assert client.call("session/clear", {})["result"]["removed"] == 1
    assert places_after(broker, password) == []


def test_no_copy_remains_after_a_lock(logged_in):
    broker, client, server, password = logged_in
    assert "result" in client.call("broker/lock", {})
    assert places_after(broker, password) == []


def test_no_copy_remains_after_sigusr1(logged_in):
    broker, client, server, password = logged_in
    broker.process.send_signal(signal.SIGUSR1)
    assert places_after(broker, password) == []


def test_no_copy_remains_at_the_end_of_the_process(logged_in):
    broker, _, _, password = logged_in
    tracer = memory.Tracer(broker.process.pid)
    broker.process.send_signal(signal.SIGTERM)
    tracer.wait_for_end()
    try:
        assert memory.places(broker.process.pid, password) == []
    finally:
        tracer.release()


def test_no_copy_remains_after_the_session_expired(stage):
    server, password = stage.protected("bob")
    broker = stage.configured("[limits]\nsession-idle-s = 1\n")
    client = stage.client(answer=lambda challenge: password_answer("bob", password, persistence="forSession"), broker=broker)
    assert client.fetch(server.url, allowInsecureAuth=True)["result"]["status"] == 200
    # The broker checks every five seconds.
    assert places_after(broker, password, seconds=30) == []


def fetched(stage, password, **params):
    server = stage.server(basic_server("bob", password))
    stage.allow(password, server)
    client = stage.client(answer=lambda challenge: password_answer("bob", password, persistence="none"))
    url = params.pop("url", server.url)
    assert client.fetch(url.replace("PORT", str(server.port)), allowInsecureAuth=True, **params)["result"]["status"] == 200
    return stage.brokers[0], client, server


def test_no_copy_remains_after_the_fetch(stage):
    password = stage.secret()
    broker, _, _ = fetched(stage, password)
    assert places_after(broker, password) == []


def test_no_copy_remains_after_a_fetch_with_the_password_in_its_url(stage):
    password = stage.secret()
    broker, client, _ = fetched(stage, password, url=f"http://bob:{password}@127.0.0.1:PORT/")
    client.call("session/clear", {})
    assert places_after(broker, password) == []


@pytest.mark.parametrize("framing", ["lines", "headers"])
@pytest.mark.parametrize("ends", ["cancel", "leave", "refused", "unfinished"])
def test_no_copy_remains_of_an_answer_without_effect(stage, framing, ends):
    password = stage.secret()
    server = stage.server(ScriptedServer(
        lambda request: None if request.authorization and ends != "refused" else response(401, b"", 'WWW-Authenticate: Basic realm="r"')))
    stage.allow(password, server)
    client = stage.client(framing=framing)
    broker, call = stage.brokers[0], client.start("fetch/run", {"url": server.url, "allowInsecureAuth": True})
    challenge = client.challenges.get(timeout=30)
    answer = password_answer("bob", password, persistence="forSession")
    if ends == "unfinished":
        client.send_bytes(b'{"jsonrpc":"2.0","id":%d,"result":{"action":"credential","credential":{"password":"%s' % (
            challenge["id"], password.encode()))
        eventually(lambda: memory.places(broker.process.pid, password), "it has not come")
        client.close()
    else:
        client.reply(challenge, answer)
        if ends == "refused":
            client.reply(client.challenges.get(timeout=30), {"action": "cancel"})
        else:
            eventually(lambda: len(server.requests) == 2, "it is not sent")
            assert memory.places(broker.process.pid, password)
            client.close() if ends == "leave" else client.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": call}})
    assert places_after(broker, password) == []


@pytest.mark.parametrize("path", ["/staff/page.txt", "/private/"])
def test_no_copy_remains_after_sending_over_tls(stage, nginx_tls, account, tls, path):
    """The fetch uses HTTP/2, so the search includes the memory of libcurl, nghttp2 and OpenSSL."""
    user, password = account
    broker = stage.broker("--ca-file", str(tls / "ca.pem"))
    client = stage.client(answer=lambda challenge: password_answer(user, password, persistence="forSession"), broker=broker)
    for _ in range(3):
        assert client.fetch(f"https://localhost:{nginx_tls.port}/staff/page.txt")["result"]["status"] == 200
    assert memory.places(broker.process.pid, password)
    client.call("session/clear", {})
    assert places_after(broker, password) == []


def test_no_copy_remains_after_ntlm(stage, ntlm, ntlm_users):
    broker = stage.configured('[schemes]\nntlm = ["127.0.0.1"]\n')
    client = stage.client(answer=lambda challenge: password_answer("TESTDOM\\alice", ntlm_users["alice"], persistence="forSession"), broker=broker)
    for _ in range(2):
        assert client.fetch(ntlm.url)["result"]["status"] == 200
    client.call("session/clear", {})
    assert places_after(broker, ntlm_users["alice"]) == []


def test_no_copy_remains_after_storing_in_the_keyring(stage, gnome):
    server, password = stage.protected("bob")
    broker = stage.broker(environment=gnome.environment)
    client = stage.client(answer=lambda challenge: password_answer("bob", password, persistence="permanent"), broker=broker)
    assert client.fetch(server.url, allowInsecureAuth=True)["result"]["status"] == 200
    settle(client)
    client.call("broker/lock", {})
    assert places_after(broker, password) == []


def test_no_copy_remains_of_a_netrc_entry(stage):
    """The passwords of the file's other machines are searched for, too."""
    password, others = stage.secret(), stage.secret()
    server = stage.server(basic_server("bob", password))
    stage.allow(password, server)
    file = stage.folder / "logins.netrc"
    file.write_text(f"machine h login bob password {others}\nmachine 127.0.0.1:{server.port} login bob password {password}\n" * 20)
    file.chmod(0o600)
    broker = stage.configured(f'[keyring]\nenabled = false\n[credentials]\nnetrc = "{file}"\n')
    client = stage.client(broker=broker)
    assert client.fetch(server.url)["result"]["auth"]["source"] == "netrc"
    assert memory.places(broker.process.pid, password), "the session has it"
    assert places_after(broker, others) == []
    client.call("session/clear", {})
    assert places_after(broker, password) == []


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
    assert places_after(broker, secret) == []


def ask_in_another_process(broker):
    """Starts a program that prompts: a process is never asked about its own prompts."""
    call = {"jsonrpc": "2.0", "id": 1, "method": "prompt/ask", "params": {"text": "Password: ", "kind": "secret"}}
    script = ("import socket, sys\nwire = socket.socket(socket.AF_UNIX)\nwire.connect(sys.argv[1])\n"
              "wire.sendall(sys.argv[2].encode() + b'\\n')\nprint(wire.makefile().readline())")
    return subprocess.Popen(
        ["/usr/bin/python3", "-c", script, broker.socket, json.dumps(call)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
