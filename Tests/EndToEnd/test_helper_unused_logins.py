"""The helper if a login or a scheme was given and not used: its message and exit status."""
import json

import pytest

from rig.scripted import basic_server, response
from rig.terminal import Shell


def configured(stage, text, **more):
    return Shell(stage.configured(text, **more))


def offering(stage, *challenges, status=401):
    field = "WWW-Authenticate" if status == 401 else "Proxy-Authenticate"
    return stage.server(lambda request: response(status, b"the page", *[f"{field}: {text}" for text in challenges]))


def said(done, code, body=b"the page"):
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (code, body, 1), done
    return done.stderr.decode()


@pytest.mark.parametrize("words, code", [(["-u", "TESTDOM\\alice:{}"], 67), (["--ntlm", "-u", "TESTDOM\\alice:{}"], 67), (["--ntlm"], 67), ([], 0)])
def test_ntlm_for_an_unlisted_host_prints_a_diagnostic(stage, shell, ntlm, ntlm_users, words, code):
    done = shell.run("fetch", *[word.format(ntlm_users["alice"]) for word in words], ntlm.url)
    assert done.returncode == code and done.stdout and done.stderr.count(b"\n") == 1
    start = f"watchword: {ntlm.url} returned status 401 and accepted no login (offered: NTLM); "
    assert done.stderr.decode() == start + 'NTLM: needs "127.0.0.1" in schemes.ntlm of the configuration\n'
    assert ntlm.authorizations == [None] and ntlm_users["alice"].encode() not in done.stderr


def test_ntlm_for_a_listed_host_prints_no_diagnostic(stage, ntlm, ntlm_users):
    shell = configured(stage, '[schemes]\nntlm = ["127.0.0.1"]\n')
    done = shell.run("fetch", "--ntlm", "-u", f"TESTDOM\\alice:{ntlm_users['alice']}", ntlm.url)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"hello TESTDOM\\alice\n", b"")


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("words, code", [(["--negotiate"], 67), ([], 0)])
def test_negotiate_without_a_ticket_or_for_another_host(stage, realm, kerberos_users, kerberos_apache, listed, words, code):
    """With a ticket but for another host, and for the right host without a ticket: one message, because the helper cannot tell
    them apart."""
    environment = realm.environment() if listed else realm.log_in("alice", kerberos_users["alice"])
    host = "localhost" if listed else "elsewhere.test"
    shell = configured(stage, f'[schemes]\nnegotiate = ["{host}"]\n', environment=environment)
    done = shell.run("fetch", *words, kerberos_apache.url + "/kerberos/page.txt")
    assert done.returncode == code and b"401" in done.stdout and done.stderr.count(b"\n") == 1
    needs = b'Negotiate: needs "localhost" in schemes.negotiate of the configuration, and an accepted Kerberos ticket (kinit)\n'
    assert done.stderr.endswith(b"(offered: Negotiate); " + needs)


def test_negotiate_is_not_for_a_named_user(stage, shell):
    server = offering(stage, "Negotiate")
    assert "(kinit), and a command without a user or token\n" in said(shell.run("fetch", "-u", "bob:x", server.url), 67)
    assert "without a user" not in said(shell.run("fetch", "-L", "-u", "bob:x", server.url), 67), "after a redirect it may be another server"
    assert "and no proxy from the command line\n" in said(shell.run("fetch", "-x", server.url, "http://elsewhere.example/"), 0)


def test_schemes_that_the_command_leaves_out(stage, shell):
    server = offering(stage, 'Digest realm="a, Fake b", nonce="n"', 'Basic realm="x", NTLM, Negotiate abc==', "Digest nonce=1", 'Hoba a = "b\\", Worse"')
    text = said(shell.run("fetch", "--ntlm", "-u", "bob:x", server.url), 67)
    assert "(offered: Digest, Basic, NTLM, Negotiate, Hoba); Digest, Basic, Negotiate, Hoba: not selected by the command; NTLM: needs" in text
    assert server.authorizations == [None]


def test_schemes_that_the_configuration_leaves_out(stage):
    password = stage.secret()
    server = stage.server(basic_server("bob", password))
    shell = configured(stage, f'[schemes]\norder = ["127.0.0.1:{server.port} digest"]\n')
    assert "Basic: perhaps excluded by schemes.order" in said(shell.run("fetch", "-u", f"bob:{password}", server.url), 67, b"please log in")
    said(shell.run("fetch", server.url), 0, b"please log in")


def test_a_token_that_would_be_sent_in_the_clear(stage, shell):
    token = stage.secret()
    proxy = offering(stage, "Bearer")
    done = shell.run("fetch", "--oauth2-bearer", token, "-x", proxy.url, "http://elsewhere.example/")
    assert "http://elsewhere.example returned" in said(done, 67) and b"Bearer: needs https, or a server on this machine\n" in done.stderr
    assert proxy.authorizations == [None]


def test_a_proxy(stage, shell, ntlm_proxy, ntlm_users):
    proxy = ntlm_proxy.url.removeprefix("http://")
    for words, code in [(["-x", proxy, "-U", f"TESTDOM\\alice:{ntlm_users['alice']}"], 67), (["-x", proxy, "--ntlm"], 67), (["-x", proxy], 0)]:
        done = shell.run("fetch", *words, "http://elsewhere.example/")
        assert done.returncode == code and done.stderr.count(b"\n") == 1
        assert b'returned status 407 and accepted no login (offered: NTLM); NTLM: needs "127.0.0.1" in schemes.ntlm' in done.stderr
    shell = configured(stage, f'[proxy]\nurl = "{ntlm_proxy.url}"\n')
    assert b"NTLM: needs the proxy's host in schemes.ntlm" in shell.run("fetch", "http://elsewhere.example/").stderr
    # A proxy's login does not request one of the server.
    server = offering(stage, "NTLM")
    text = said(shell.run("fetch", "-x", server.url, "-U", "pat:x", "http://elsewhere.example/"), 0)
    assert 'needs "elsewhere.example" in schemes.ntlm of the configuration, and https if a proxy is used\n' in text


def test_nothing_is_offered(stage, shell):
    server = offering(stage)
    text = said(shell.run("fetch", "-u", "bob:x", server.url), 67)
    assert text == f"watchword: {server.url} returned status 401 and offered no login scheme\n"
    assert shell.run("fetch", server.url).stderr == b""


def test_the_response_is_written_and_the_exit_code_is_67(stage, shell, tmp_path):
    server, file = offering(stage, "NTLM"), tmp_path / "page"
    assert said(shell.run("fetch", "--ntlm", "-o", str(file), server.url), 67, b"") and file.read_bytes() == b"the page"
    done = shell.run("fetch", "--ntlm", "--json", server.url)
    assert (done.returncode, json.loads(done.stdout)["status"]) == (67, 401)
    said(shell.run("fetch", "-f", "--ntlm", server.url), 67, b"")
    said(shell.run("fetch", "-f", server.url), 22, b"")


def test_a_prompt_at_the_terminal_suppresses_the_diagnostic(stage, shell):
    server = stage.server(basic_server("bob", "x"))
    terminal = shell.at_terminal("fetch", "--basic", server.url)
    terminal.expect("User: ")
    terminal.type("\x04")
    assert terminal.end() == 67 and b"please log in" in terminal.shown and b"offered:" not in terminal.shown
    # Another server challenges later, and no respondent is asked for its login.
    second = offering(stage, "NTLM")
    first = stage.server(lambda request: response(302, b"", f"Location: {second.url}/") if request.authorization else response(401, b"", 'WWW-Authenticate: Basic realm="x"'))
    terminal = shell.at_terminal("fetch", "-L", first.url)
    terminal.answer({"User: ": "bob", "Password for bob: ": "x"})
    assert terminal.end() == 0 and f"{second.url} returned status 401".encode() in terminal.shown


def test_scheme_names_of_a_server_have_no_effect_on_the_terminal(stage, shell):
    server = offering(stage, "NTLM", "A\x1b[2J b", "Neg\xadotiate", "X" * 300, *[f"S{number}" for number in range(20)])
    text = said(shell.run("fetch", "--ntlm", server.url), 67)
    assert "\x1b" not in text and len(text) < 900, text
