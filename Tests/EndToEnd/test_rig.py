"""What the end of a test must find: secrets at servers that they are not for."""
import hashlib
import json
import secrets
import subprocess
import urllib.parse

import pytest

from rig import oauth_answers, tiny_browser
from rig.bodies import eventually
from rig.login_sites import Site
from rig.oauth_answers import with_query
from rig.scripted import response
from rig.servers import find


def log_in(server):
    """Logs in at an authorization server without a broker; returns its token response."""
    verifier, to = secrets.token_urlsafe(32), {"client_id": "watchword", "redirect_uri": "http://127.0.0.1:9/callback"}
    page = with_query(server.endpoint("authorize"), {
        **to, "response_type": "code", "state": "st", "scope": "read", "code_challenge_method": "S256",
        "code_challenge": oauth_answers.encoded(hashlib.sha256(verifier.encode()).digest())})
    form = {**to, "grant_type": "authorization_code", "code": tiny_browser.hold_redirect(page).parameters["code"], "code_verifier": verifier}
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    return json.loads(tiny_browser.request(server.endpoint("token"), "POST", kind, urllib.parse.urlencode(form).encode()).body)


def test_tokens_that_servers_received_are_found(stage):
    site = Site(stage)
    tokens = log_in(site.server)
    other = stage.server(lambda request: response(200))
    for place, kind in [(other, "access_token"), (site.resource, "refresh_token")]:
        tiny_browser.request(place.url, headers={"Authorization": f"Bearer {tokens[kind]}"})
        with pytest.raises(AssertionError, match="a secret was found"):
            stage.end()
        place.wire = b""


def curl(*words):
    subprocess.run([find("curl"), "-q", "-sS", "-m", "20", "--noproxy", "", *map(str, words)], check=True, capture_output=True, timeout=60)


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
