"""One question for many processes, agents, and clients with the delivery `result` (SEMANTICS rules 8, 13 and 20 to 22)."""
import base64
import json
import os
import signal
import subprocess
import sys
import textwrap

from rig.audit import wait_for
from rig.bodies import eventually
from rig.client import password_answer

PROCESSES = 50


def basic(password):
    return "Basic " + base64.b64encode(f"bob:{password}".encode()).decode()


# A separate process that uses only the standard library: it makes one fetch, gives the answers, and prints the result.
CLIENT = textwrap.dedent("""
    import json, socket, sys
    path, url, answer = sys.argv[1], sys.argv[2], json.loads(sys.stdin.readline())
    wire = socket.socket(socket.AF_UNIX)
    wire.connect(path)
    stream = wire.makefile("rwb")
    def send(message):
        stream.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\\n")
        stream.flush()
    send({"id": "hello", "method": "initialize", "params": {"client": {"name": "one of many"}, "protocolVersion": 1,
          "capabilities": {"challenge": {}}}})
    send({"id": "fetch", "method": "fetch/run", "params": {"url": url}})
    asked = []
    for line in stream:
        message = json.loads(line)
        if message.get("method") == "auth/challenge":
            asked.append(message["params"]["previousFailureCount"])
            send({"id": message["id"], "result": answer})
        elif message.get("id") == "fetch":
            break
    kind = message.get("error", {}).get("data", {}).get("kind")
    print(json.dumps({"asked": asked, "status": message.get("result", {}).get("status"), "kind": kind}), flush=True)
""")


def crowd(broker, url, answers):
    """Runs a process for each of the answers, all at once; returns the output of each."""
    processes = [
        subprocess.Popen([sys.executable, "-c", CLIENT, broker.socket, f"{url}/{number}"], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True)
        for number in range(len(answers))]
    for process, answer in zip(processes, answers):
        process.stdin.write(json.dumps(answer) + "\n")
        process.stdin.flush()
    return [json.loads(process.communicate(timeout=60)[0]) for process in processes]


class Gate:
    """Delays the server's first response until `count` requests without a credential have arrived."""

    def __init__(self, server, count):
        self.inner, self.count, self.server = server.handler, count, server
        server.handler = self

    def __call__(self, request):
        if request.authorization is None:
            eventually(lambda: len(self.server.requests) >= self.count, lambda: f"{len(self.server.requests)} requests", 30)
        return self.inner(request)


def test_rule_20_fifty_processes_are_asked_once(stage):
    server, password = stage.protected()
    Gate(server, PROCESSES)
    outcomes = crowd(stage.broker(), server.url, [password_answer("bob", password)] * PROCESSES)
    assert [outcome["status"] for outcome in outcomes] == [200] * PROCESSES
    assert sum(len(outcome["asked"]) for outcome in outcomes) == 1
    assert len(server.requests) == 2 * PROCESSES
    assert set(server.authorizations) == {None, basic(password)}


def test_a_shell_script_makes_the_whole_exchange(stage):
    """With socat and jq, as SPECIFICATION.md shows it: the delivery `result`, over separate connections."""
    server, password = stage.protected(body=b"the page")
    broker = stage.broker()
    script = textwrap.dedent("""
        set -eu
        send() { socat -t 60 - "UNIX-CONNECT:$SOCKET"; }
        hello='{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"client":{"name":"sh"},"protocolVersion":1,"capabilities":{"challenge":{"delivery":"result"}}}}'
        first=$(jq -nc --arg url "$URL" '{jsonrpc:"2.0",id:1,method:"fetch/run",params:{url:$url}}')
        half=$(printf '%s\\n' "$hello" "$first" | send | tail -n 1)
        echo "$half" | jq -r '.result.challenge.protectionSpace.realm' >&2
        token=$(echo "$half" | jq -r .result.resume)
        jq -c --arg token "$token" '{jsonrpc:"2.0",id:2,method:"fetch/run",params:{resume:$token,answer:.}}' | send |
            jq -r .result.body.value
    """)
    done = subprocess.run(["bash", "-c", script], env={**os.environ, "SOCKET": broker.socket, "URL": server.url},
                          input=json.dumps(password_answer("bob", password)), capture_output=True, text=True, timeout=60)
    assert done.stdout == "the page\n", done.stderr
    assert done.stderr == "Staff\n"
    assert server.authorizations == [None, basic(password)]


def test_sigusr1_forgets_the_session_and_sighup_reads_the_configuration(stage):
    server, password = stage.protected()
    broker = stage.broker()
    client = stage.client(answer=lambda params: password_answer("bob", password))
    assert client.fetch(server.url)["result"]["exchanges"] == 2
    assert client.fetch(server.url)["result"]["exchanges"] == 1
    broker.process.send_signal(signal.SIGUSR1)
    wait_for(lambda: client.call("server/status")["result"]["session"]["entries"] == 0)
    assert client.fetch(server.url)["result"]["exchanges"] == 2
    configuration = broker.home / ".config" / "watchword" / "config.toml"
    configuration.parent.mkdir(parents=True)
    configuration.write_text('[fetch]\ndeny = ["127.0.0.1"]\n')
    configuration.chmod(0o600)
    broker.process.send_signal(signal.SIGHUP)
    wait_for(lambda: client.fetch(server.url).get("error", {}).get("data", {}).get("kind") == "denied")
    configuration.write_text('[fetch]\ndeny = [\n')
    broker.process.send_signal(signal.SIGHUP)
    wait_for(lambda: "configuration not changed" in broker.log)
    assert client.fetch(server.url)["error"]["data"]["kind"] == "denied"
    configuration.unlink()
    broker.process.send_signal(signal.SIGHUP)
    wait_for(lambda: client.fetch(server.url).get("result", {}).get("status") == 200)
