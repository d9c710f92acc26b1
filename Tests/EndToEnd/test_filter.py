"""The filter of system calls: enabled if the configuration says so, for every thread, and without side effects."""
import base64
import contextlib
import pathlib
import re
import subprocess

import pytest

from rig.bodies import eventually
from rig.broker import program
from rig.client import password_answer
from rig.scripted import response

ON = "[process]\nfilter-system-calls = true\n"


def filters(broker):
    """Returns the mode of each thread: 0 for none, 2 for a filter."""
    found = set()
    for task in pathlib.Path(f"/proc/{broker.process.pid}/task").iterdir():
        # It may end meanwhile.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found.update(re.findall(r"^Seccomp:\s*(\d)", (task / "status").read_text(), re.M))
    return set(map(int, found))


@pytest.mark.parametrize("text,mode", [(ON, 2), ("", 0)], ids=["on", "off"])
def test_the_system_call_filter_follows_the_configuration(stage, text, mode):
    broker = stage.configured(text)
    client = stage.client(broker=broker)
    assert client.fetch("http://127.0.0.1:1/")["error"]["data"]["kind"] == "cannotConnect"
    assert filters(broker) == {mode}
    assert client.call("server/status", {})["result"]["systemCallFilter"] is (mode == 2)
    shown = subprocess.run(
        [program("watchword"), "status", "--socket", broker.socket], capture_output=True, text=True, env=broker.environment)
    assert shown.returncode == 0, shown.stderr
    assert ("system calls are filtered" in shown.stdout) is (mode == 2)


def test_a_login_over_tls_is_stored_and_found(stage, gnome, certificates, tls_server):
    """Keyring, TLS, files, threads and name resolution: what a fetch needs is not filtered."""
    password = stage.secret()
    right = "Basic " + base64.b64encode(f"bob:{password}".encode()).decode()

    def handle(request):
        if request.authorization == right:
            return response(200, b"w" * (2 << 20))
        return response(401, b"", 'WWW-Authenticate: Basic realm="Staff"')

    server = stage.server(tls_server(handler=handle))
    stage.allow(password, server)
    broker = stage.configured(ON, "--ca-file", str(certificates / "ca.pem"), environment=gnome.for_broker)
    client = stage.client(broker=broker, answer=lambda challenge: password_answer("bob", password, persistence="permanent"))
    assert client.fetch(server.url)["result"]["auth"]["source"] == "client"
    # A write in progress would be cancelled.
    eventually(lambda: any(
        entry["source"] == "keyring" for entry in client.call("credential/list", {})["result"]["credentials"]), "the login was not stored in the keyring")
    assert client.call("session/clear", {})["result"] == {"removed": 1}
    found = client.fetch(server.url, auth={"interaction": "none"})["result"]
    assert found["status"] == 200 and found["auth"]["source"] == "keyring"
    assert filters(broker) == {2}
