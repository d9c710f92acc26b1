"""A user who stops all prompts for a program, and the reported reason why no respondent was asked (SEMANTICS rule 28)."""
import json
import subprocess
import sys

from rig import audit
from rig.bodies import eventually
from rig.broker import program
from rig.client import password_answer
from rig.scripted import basic_server

STOP = {"action": "cancel", "stopAsking": True}
FETCH = """
import json, socket, sys
link = socket.socket(socket.AF_UNIX)
link.connect(sys.argv[1])
link.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "fetch/run", "params": {"url": sys.argv[2]}}).encode() + b"\\n")
print(link.makefile().readline())
"""


def fetch_elsewhere(broker, url):
    """Makes a fetch in another process of the same program."""
    done = subprocess.run([sys.executable, "-c", FETCH, broker.socket, url], capture_output=True, text=True, timeout=30)
    return json.loads(done.stdout)["result"]


def test_the_questions_of_a_program_are_stopped_until_it_is_resumed(stage):
    broker = stage.broker()
    password = stage.secret()
    servers = [stage.server(basic_server("bob", password, f"Realm{number}")) for number in range(3)]
    for server in servers:
        stage.allow(password, server)
    answers = [STOP]
    asked = []

    def answer(challenge):
        asked.append(challenge["protectionSpace"]["realm"])
        return answers[-1]

    desk = stage.client(answer=answer, broker=broker, delivery=None)
    assert "result" in desk.call("agent/register", {"name": "desk"})
    client = stage.client(delivery=None, broker=broker)
    assert client.fetch(servers[0].url)["error"]["data"]["kind"] == "challengeCancelled"
    subject = desk.call("prompt/list")["result"]["stopped"][0]["subject"]
    for result in (client.fetch(servers[1].url)["result"], fetch_elsewhere(broker, servers[2].url)):
        assert result["status"] == 401 and result["noRespondent"] == "stopped"
        assert result["unanswered"] == [{"scheme": "Basic", "reason": "noRespondent"}]
    assert asked == ["Realm0"]
    assert desk.call("prompt/list")["result"]["stopped"][0]["unasked"] == 2
    # socat is another program.
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "fetch/run", "params": {"url": servers[1].url}})
    answers.append(password_answer("bob", password))
    done = subprocess.run(["socat", "-t", "30", "-", f"UNIX-CONNECT:{broker.socket}"], input=request + "\n",
                          capture_output=True, text=True, timeout=60)
    assert json.loads(done.stdout.splitlines()[0])["result"]["status"] == 200 and asked == ["Realm0", "Realm1"]
    assert desk.call("prompt/resume", {"subject": subject})["result"] == {"resumed": 1}
    assert client.fetch(servers[2].url)["result"]["status"] == 200 and asked[-1] == "Realm2"
    eventually(lambda: {"promptsStopped", "promptsResumed"} <= set(audit.kinds(broker)), "no audit records")


def test_rule_28_the_shell_helper_shows_the_reasons_with_v_only(stage):
    server = stage.server(basic_server("bob", stage.secret()))
    broker = stage.broker()
    done = subprocess.run(
        [program("watchword"), "fetch", "-v", "--socket", broker.socket, server.url], stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=30, start_new_session=True)
    assert done.returncode == 67, done.stderr
    quiet = subprocess.run(
        [program("watchword"), "fetch", "--socket", broker.socket, server.url], stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=30, start_new_session=True)
    line = "* no login to the server with Basic: no agent answered"
    assert line in done.stderr.splitlines() and "no login to the server" not in quiet.stderr
