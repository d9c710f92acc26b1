"""What the rig's own servers must do so that the broker's tests rely on them, and that those tests do not show."""
import os
import subprocess

import pytest

from rig.bodies import eventually
from rig.servers import find


def curl(*words, code=0):
    """Makes a request; returns its status and body. `code` is curl's expected exit status."""
    done = subprocess.run(
        [find("curl"), "-q", "-sS", "-m", "20", "--noproxy", "", "-w", "\n%{http_code}", *map(str, words)],
        env=os.environ, capture_output=True, text=True, timeout=60)
    assert done.returncode == code, (done.returncode, done.stderr)
    body, _, status = done.stdout.rpartition("\n")
    return int(status), body


def test_data_that_servers_received_is_searched(stage, nginx, squid, apache, kerberos_apache, client_nginx, certificates):
    with pytest.raises(AssertionError, match="a secret was found"):
        secret = stage.secret()
        open_page = f"http://127.0.0.1:{nginx.port}/open.txt"
        heard = ["-k", "--cert", certificates / "client-both.pem", "-H", f"Authorization: Hoba {secret}"]
        curl(*heard, "-x", squid.url("open"), open_page)
        for server in [apache, kerberos_apache, client_nginx("on")]:
            curl(*heard, getattr(server, "url", f"http://127.0.0.1:{server.port}"))
        for server in [nginx, squid, apache, kerberos_apache, client_nginx("on")]:
            eventually(lambda: secret.encode() in server.wire, f"{server.log_path} does not contain it")
        stage.watch(nginx)
        stage.end()
    stage.secrets.clear()
