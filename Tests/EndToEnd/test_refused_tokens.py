"""Tokens that were released to programs and that their server refuses: another one takes their place, and the login remains."""
import base64
import os
import subprocess

import pytest

from rig.broker import program
from rig.login_sites import Site, forgotten, logged_in
from rig.scripted import response
from rig.terminal import Git, Shell, install_helper

HELPER = os.path.realpath(program("watchword"))


@pytest.fixture
def site(stage, gnome):
    """A site with a login, whose access token is revoked at the server, but not in the session."""
    site = Site(stage)
    site.running = site.broker(text=f'[credentials]\nhand-out = ["{HELPER} 127.0.0.1"]\n', environment=gnome.for_broker)
    site.client = stage.client(broker=site.running)
    logged_in(site.client, site)
    site.server.revoke_access()
    return site


def tokens(site):
    return [token.value for token in site.server.access_tokens]


def helper(site, operation, *lines, options=()):
    text = "".join(f"{line}\n" for line in ["protocol=http", f"host=127.0.0.1:{site.resource.port}", *lines, ""])
    done = subprocess.run([HELPER, "git-credential", "--socket", site.running.socket, *options, operation],
                          input=text, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_git_2_46_gets_another_token_after_a_refusal(site):
    bearer, old = "capability[]=authtype", tokens(site)[0]
    assert f"credential={old}\n" in helper(site, "get", bearer)
    assert helper(site, "erase", bearer, "authtype=Bearer", f"credential={old}") == ""
    assert len(tokens(site)) == 2 and f"credential={tokens(site)[1]}\n" in helper(site, "get", bearer)
    # The login is still there, for fetches, too.
    assert not forgotten(site.client, site) and len(tokens(site)) == 2 and len(site.server.authorizations) == 1


def test_git_of_debian_12_gets_another_token_after_a_refusal(stage, site, tmp_path):
    """git itself reports the refusal."""
    def repository(request):
        scheme, _, text = (request.authorization or "").partition(" ")
        password = base64.b64decode(text).decode().partition(":")[2] if scheme == "Basic" else None
        if not site.server.valid_token(password):
            return response(401, b"", 'WWW-Authenticate: Basic realm="git"')
        return response(200, b"", "Content-Type: text/plain")

    site.resource.fail("/x.git/info/refs", repository)
    git = Git(site.running, install_helper(tmp_path / "bin"), "credential.helper=watchword --token-user oauth2")
    url = f"http://127.0.0.1:{site.resource.port}/x.git"
    first, second = git("ls-remote", url), git("ls-remote", url)
    assert first.returncode != 0 and "Authentication failed" in first.stderr
    assert second.returncode == 0, second.stderr
    requests = [request for request in site.resource.requests if request.path.startswith("/x.git") and request.authorization]
    sent = [base64.b64decode(request.authorization.partition(" ")[2]).decode() for request in requests]
    assert list(dict.fromkeys(sent)) == [f"oauth2:{token}" for token in tokens(site)] and len(tokens(site)) == 2


def test_the_command_prints_another_token(site):
    printed = [Shell(site.running).run("token", *options, site.url).stdout.decode() for options in [(), ("--renew",), ()]]
    assert printed == [f"{tokens(site)[index]}\n" for index in (0, 1, 1)] and len(tokens(site)) == 2


def test_a_token_from_a_client_stays_until_it_is_forgotten(stage):
    """The broker cannot obtain another one."""
    broker = stage.configured(f'[credentials]\nhand-out = ["{HELPER} git.example.com"]\n')
    space = {"protocol": "https", "host": "git.example.com", "authenticationMethod": "bearer"}
    client = stage.client(broker=broker)
    client.call("credential/store", {
        "protectionSpace": space, "credential": {"type": "token", "token": "abc.def", "persistence": "forSession"}})
    assert Shell(broker).run("token", "--renew", "https://git.example.com").stdout == b"abc.def\n"
