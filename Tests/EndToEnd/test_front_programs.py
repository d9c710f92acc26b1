"""Unchanged programs behind an authenticating proxy, and at a server with Digest: all of them log in with one question."""
import concurrent.futures
import pathlib

import pytest

from rig import servers
from rig.client import password_answer
from rig.depots import Depot, nginx_depot
from rig.fixtures import reachable_folder, running
from rig.local_fronts import run

PROGRAMS = ["curl", "wget", "git", "pip", "apt", "npm", "java"]


@pytest.fixture(scope="module")
def origin():
    with reachable_folder("depot") as folder, running(nginx_depot(folder, "intranet.test")) as server:
        yield server.depot


def fetch_with_all(broker, depot, folder):
    """Runs all programs at the same time, each with `watchword run`; returns the output of those that failed."""
    commands = depot.programs(folder)
    assert list(commands) == PROGRAMS

    def start(name):
        command, file = commands[name]
        done = run(broker, "sh", "-c", command, seconds=120, environment={"HOME": str(folder), "GIT_TERMINAL_PROMPT": "0"})
        found = done.returncode == 0 and (pathlib.Path(folder) / file).exists()
        return None if found else f"{name}: {done.returncode} {done.stdout[-300:]} {done.stderr[-600:]}"

    with concurrent.futures.ThreadPoolExecutor(len(commands)) as pool:
        return [problem for problem in pool.map(start, commands) if problem]


def test_through_a_proxy_with_ntlm(stage, origin, ntlm_proxy, ntlm_users, tmp_path):
    port = ntlm_proxy.port
    broker = stage.configured(f'[proxy]\nurl = "http://127.0.0.1:{port}"\n[schemes]\nntlm = ["127.0.0.1"]\n')
    asked = stage.agent(password_answer("alice", ntlm_users["alice"], domain="TESTDOM"), broker).asked
    assert fetch_with_all(broker, origin, tmp_path) == []
    assert len(asked) == 1 and asked[0]["protectionSpace"]["isProxy"], "one question for all programs"
    assert {user for _, _, user in ntlm_proxy.handler.served} == {"TESTDOM\\alice"}


def test_through_a_proxy_with_kerberos(stage, origin, squid, realm, kerberos_users, tmp_path):
    user, password = next(iter(kerberos_users.items()))
    broker = stage.configured(
        f'[proxy]\nurl = "{squid.url("negotiate")}"\n[schemes]\nnegotiate = ["localhost"]\n',
        environment=realm.log_in(user, password))
    asked = stage.agent({"action": "cancel"}, broker).asked
    assert fetch_with_all(broker, origin, tmp_path) == []
    assert asked == [], "the tickets suffice"


def test_at_a_server_with_digest(stage, account, tmp_path):
    with reachable_folder("digest-depot") as folder, running(servers.apache_digest(folder, *account)) as server:
        depot = Depot(pathlib.Path(folder) / "www" / "private" / "depot", f"http://127.0.0.1:{server.port}/private/depot")
        broker = stage.broker()
        asked = stage.agent(password_answer(*account), broker).asked
        assert fetch_with_all(broker, depot, tmp_path) == []
        assert len(asked) == 1 and asked[0]["protectionSpace"]["authenticationMethod"] == "httpDigest"


def test_a_tunnel_through_a_proxy_with_a_login_reaches_the_server_unchanged(stage, squid, account, tls, nginx_tls):
    broker = stage.configured(f'[proxy]\nurl = "{squid.url("digest")}"\n[front]\ntunnel-ports = [{nginx_tls.port}]\n')
    asked = stage.agent(password_answer(*account), broker).asked
    for _ in range(2):
        done = run(broker, "curl", "-sS", "--cacert", str(tls / "ca.pem"), f"https://localhost:{nginx_tls.port}/open.txt")
        assert done.stdout == b"open page\n", done
    assert len(asked) == 1 and asked[0]["protectionSpace"]["isProxy"]


def test_python_requests_and_urllib(stage, origin, ntlm_proxy, ntlm_users):
    broker = stage.configured(f'[proxy]\nurl = "http://127.0.0.1:{ntlm_proxy.port}"\n[schemes]\nntlm = ["127.0.0.1"]\n')
    stage.agent(password_answer("alice", ntlm_users["alice"], domain="TESTDOM"), broker)
    for script in ["import requests; print(requests.get('{}').text, end='')",
                   "import urllib.request; print(urllib.request.urlopen('{}').read().decode(), end='')"]:
        done = run(broker, "/usr/bin/python3", "-c", script.format(f"{origin.url}/page.txt"))
        assert done.stdout == b"the page\n", done
