"""The helper with logins other than a server's user and password, and where a given login is not used: proxies, tokens, NTLM, other
schemes, its message and its exit status."""
import json

import pytest

from rig.bodies import eventually
from rig.forwarding import basic_check
from rig.scripted import basic, basic_server, bearer_server, response
from rig.terminal import Shell


def shell_with(stage, text, **more):
    return Shell(stage.configured(text, **more))


def proxy_server(stage):
    """A proxy that requires Basic, and responds to everything itself; and its password."""
    password = stage.secret()
    server = stage.server(basic_check("bob", password, granted=response(200, b"through the proxy\n"), realm="Gate"))
    stage.allow(password, server)
    return server, password


# Proxies

def test_a_proxy_with_a_login_in_the_command(stage, shell):
    proxy, password = proxy_server(stage)
    place = f"127.0.0.1:{proxy.port}"
    for words in [
        ["-x", f"http://bob:{password}@{place}"], [f"-xbob:{password}@{place}"], [f"--proxy=bob:{password}@{place}"],
        ["-x", place, "-U", f"bob:{password}"], ["--proxy", f"http://{place}", f"--proxy-user=bob:{password}"],
        ["-Lx", f"http://wrong:wrong@{place}", "-U", f"bob:{password}"],
    ]:
        done = shell.run("fetch", *words, "http://elsewhere.example/x")
        assert (done.returncode, done.stdout) == (0, b"through the proxy\n"), (words, done)
    assert {request.target for request in proxy.requests} == {"http://elsewhere.example/x"}
    assert all(request.authorization is None for request in proxy.requests)
    assert password.encode() not in shell.printed


def test_the_login_of_a_proxy_at_a_terminal_and_without_one(stage, shell):
    proxy, password = proxy_server(stage)
    words = ["fetch", "-x", f"127.0.0.1:{proxy.port}", "http://elsewhere.example/x"]
    terminal = shell.at_terminal(*words)
    terminal.expect(f"proxy http://127.0.0.1:{proxy.port} requires a login.", 'The proxy says: "Gate"')
    terminal.answer({"User: ": "bob", "Password for bob: ": password})
    assert terminal.end() == 0 and b"through the proxy" in terminal.shown
    assert b"elsewhere.example" not in terminal.shown and password.encode() not in terminal.shown
    terminal = shell.at_terminal(*words, "-U", "bob")
    terminal.answer({"Password for bob at the proxy: ": password})
    assert terminal.end() == 0 and b"through the proxy" in terminal.shown and password.encode() not in terminal.shown
    done = shell.run(*words)
    assert done.returncode == 67 and done.stdout == b"" and done.stderr.count(b"\n") == 1
    assert f"proxy http://127.0.0.1:{proxy.port} requires".encode() in done.stderr and b"-U user:password" in done.stderr
    assert shell.run(*words, "-U", "bob").returncode == 67


def test_socks_at_a_terminal_and_in_the_command(stage, shell, socks, account):
    origin = stage.server(lambda request: response(200, b"behind socks\n"))
    place, page = f"127.0.0.1:{socks.port}", f"http://localhost:{origin.port}/"
    for scheme in ["socks5h", "socks5"]:
        assert shell.run("fetch", "-x", f"{scheme}://{place}", "-U", ":".join(account), page).stdout == b"behind socks\n"
    terminal = shell.at_terminal("fetch", "-x", f"socks5h://{place}", page)
    terminal.expect(f"proxy socks5h://{place} requires a login.")
    terminal.answer({"User: ": account[0], "Password for ": account[1]})
    assert terminal.end() == 0 and b"behind socks" in terminal.shown
    assert {asked for asked in socks.asked} == {(account[0], "localhost", origin.port)}


def test_the_configured_proxy_is_bypassed_on_request_only(stage):
    """One that does not respond is an error."""
    origin = stage.server(lambda request: response(200, b"straight\n"))
    for scheme in ["http", "https", "socks5h"]:
        assert shell_with(stage, f'[proxy]\nurl = "{scheme}://127.0.0.1:1"\n').run("fetch", origin.url).returncode == 97
    assert origin.requests == []
    proxy = stage.server(lambda request: response(200, b"through the proxy\n"))
    shell = shell_with(stage, f'[proxy]\nurl = "{proxy.url}"\n')
    assert shell.run("fetch", origin.url).stdout == b"through the proxy\n"
    for words in [["--noproxy", "*"], ["-x", ""]]:
        assert shell.run("fetch", *words, origin.url).stdout == b"straight\n"
    assert len(proxy.requests) == 1


@pytest.mark.parametrize("words, code", [
    (["-x", "http://127.0.0.1:1"], 97), (["-x", "socks5h://127.0.0.1:1"], 97), (["-x", "ftp://127.0.0.1:1"], 3),
    (["-U", "bob:x"], 2), (["--noproxy", "localhost"], 2), (["-u", "a:b", "--oauth2-bearer", "t"], 2),
    (["--pinnedpubkey", "sha256//AAAA"], 2), (["--pinnedpubkey", "/key.pem"], 2), (["--key", "/key.pem"], 2),
    (["-k", "--pinnedpubkey", "sha256//" + "A" * 43 + "="], 2), (["-E", "/nonexistent:x"], 58),
])
def test_exit_codes(stage, shell, words, code):
    server = stage.server(lambda request: response(200, b"reached\n"))
    done = shell.run("fetch", *words, server.url)
    assert done.returncode == code and done.stdout == b"" and b"\nError: " not in done.stderr
    assert server.requests == []


def test_no_secret_stays_in_the_argument_list(stage, shell, tmp_path):
    (tmp_path / "me.pem").write_text("")
    server = stage.server(lambda request: None)
    secrets = [stage.secret() for _ in range(7)]
    place = f"127.0.0.1:{server.port}"
    for words in [
        ["-u", f"bob:{secrets[0]}", "-x", f"http://carol:{secrets[1]}@{place}"], [f"-xcarol:{secrets[1]}@{place}"],
        ["-x", place, "-U", f"carol:{secrets[2]}"], ["-x", place, f"-Ucarol:{secrets[2]}"], ["--oauth2-bearer", secrets[3]],
        [f"--oauth2-bearer={secrets[3]}"], ["-E", f"{tmp_path}/me.pem:{secrets[4]}"], [f"-E{tmp_path}/me.pem:{secrets[4]}"],
        ["--cert", f"{tmp_path}/me.pem", "--pass", secrets[5]], ["--cert", f"{tmp_path}/me.pem", f"--pass={secrets[5]}"],
        ["--cert", "pkcs11:object=me", "--key", f"pkcs11:object=me?pin-value={secrets[6]}"], ["-Lu", f"bob:{secrets[0]}"],
        ["-sLHX-Key: " + secrets[0]], ["--data-binary", secrets[1]], ["-F", f"key={secrets[2]}"],
    ]:
        before = len(server.requests)
        terminal = shell.at_terminal("fetch", *words, f"http://{place}/")
        eventually(lambda: len(server.requests) > before, lambda: terminal.shown, 20)
        line = open(f"/proc/{terminal.child}/cmdline", "rb").read()
        terminal.type("\x03")
        terminal.end()
        assert b"fetch" in line and not any(secret.encode() in line for secret in secrets), line
    stage.secrets.clear()


# Bearer

def test_a_token_at_a_terminal_without_echo(stage, shell):
    wrong, right = stage.secret(), stage.secret()
    server = stage.server(bearer_server(right))
    stage.allow(wrong, server), stage.allow(right, server)
    terminal = shell.at_terminal("fetch", server.url)
    terminal.expect("Scheme: Bearer")
    terminal.answer({"Token: ": wrong, "has refused the last answer (1 failed so far).\r\nToken: ": right})
    assert terminal.end() == 0 and b"for the bearer" in terminal.shown
    assert wrong.encode() not in terminal.shown and right.encode() not in terminal.shown
    assert server.authorizations == [None, f"Bearer {wrong}", f"Bearer {right}"]


@pytest.mark.parametrize("typed", ["\x1b[C", "wo\x0brd", "w\udcf6rd"])
def test_an_arrow_key_or_another_encoding_is_asked_for_again(stage, shell, typed):
    server, password = stage.protected()
    terminal = shell.at_terminal("fetch", server.url)
    terminal.answer({
        "User: ": "b\x1b[Dob", "Type it again.\r\nUser: ": "bob", "Password for bob: ": typed,
        "Type it again.\r\nPassword for bob: ": password})
    assert terminal.end() == 0 and b"welcome" in terminal.shown
    assert server.authorizations == [None, basic("bob", password)]


def test_a_token_in_the_command(stage, shell):
    token = stage.secret()
    server = stage.server(bearer_server(token))
    stage.allow(token, server)
    assert shell.run("fetch", "--keep", "none", "--oauth2-bearer", token, server.url).stdout == b"for the bearer\n"
    done = shell.run("fetch", server.url)
    assert done.returncode == 67 and b"--oauth2-bearer" in done.stderr and b"Bearer" in done.stderr
    terminal = shell.at_terminal("fetch", server.url)
    terminal.answer({"Token: ": ""})
    assert terminal.end() == 0 and b"please log in" in terminal.shown


# Schemes

def test_ntlm_takes_domain_and_user(stage, ntlm, ntlm_users):
    shell = shell_with(stage, '[schemes]\nntlm = ["127.0.0.1"]\n')
    terminal = shell.at_terminal("fetch", ntlm.url)
    terminal.expect("Scheme: NTLM. Not encrypted, but the password stays on this machine")
    terminal.answer({"User (DOMAIN\\user): ": "TESTDOM\\alice", "Password for TESTDOM\\alice: ": ntlm_users["alice"]})
    assert terminal.end() == 0
    assert [user for _, _, user in ntlm.handler.served] == ["TESTDOM\\alice"]
    assert shell.run("fetch", "--ntlm", "-u", f"TESTDOM\\bob:{ntlm_users['bob']}", ntlm.url).stderr == b""
    assert [user for _, _, user in ntlm.handler.served] == ["TESTDOM\\alice", "TESTDOM\\bob"]


def test_a_challenge_without_a_realm_is_shown_without_one(stage, ntlm):
    done = shell_with(stage, '[schemes]\nntlm = ["127.0.0.1"]\n').run("fetch", ntlm.url)
    assert done.returncode == 67 and b"requires a login (NTLM); no terminal available" in done.stderr
    bearer = stage.server(lambda request: response(401, b"", "WWW-Authenticate: Bearer"))
    assert b"requires a login (Bearer);" in shell_with(stage, "").run("fetch", bearer.url).stderr
    empty = stage.server(basic_server("bob", "x", realm=""))
    assert b'requires a login (Basic, "");' in shell_with(stage, "").run("fetch", empty.url).stderr


def test_an_unknown_scheme_is_declined_by_name_unless_an_agent_knows_it(stage, shell):
    server = stage.server(
        lambda request: response(200, b"welcome") if request.authorization == "Hoba one"
        else response(401, b"hoba only\n", 'WWW-Authenticate: Hoba realm="x"'))
    terminal = shell.at_terminal("fetch", server.url)
    assert terminal.end() == 0
    assert b"requires a login with the scheme Hoba, which is not supported here" in terminal.shown and b"hoba only" in terminal.shown
    done = shell.run("fetch", server.url)
    assert done.returncode == 67 and b"only an agent" in done.stderr
    stage.agent({"action": "credential", "credential": {"type": "header", "scheme": "Hoba", "value": "one"}})
    assert shell.run("fetch", server.url).stdout == b"welcome"
    terminal = shell.at_terminal("fetch", server.url)
    assert terminal.end() == 0 and b"welcome" in terminal.shown


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


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("words, code", [(["--negotiate"], 67), ([], 0)])
def test_negotiate_without_a_ticket_or_for_another_host(stage, realm, kerberos_users, kerberos_apache, listed, words, code):
    """With a ticket but for another host, and for the right host without a ticket: one message, because the helper cannot tell
    them apart."""
    environment = realm.environment() if listed else realm.log_in("alice", kerberos_users["alice"])
    host = "localhost" if listed else "elsewhere.test"
    shell = shell_with(stage, f'[schemes]\nnegotiate = ["{host}"]\n', environment=environment)
    done = shell.run("fetch", *words, kerberos_apache.url + "/kerberos/page.txt")
    assert done.returncode == code and b"401" in done.stdout and done.stderr.count(b"\n") == 1
    needs = b'Negotiate: needs "localhost" in schemes.negotiate of the configuration, and an accepted Kerberos ticket (kinit)\n'
    assert done.stderr.endswith(b"(offered: Negotiate); " + needs)


def test_negotiate_is_not_for_a_named_user(stage, shell):
    server = offering(stage, "Negotiate")
    assert "(kinit), and a command without a user or token\n" in said(shell.run("fetch", "-u", "bob:x", server.url), 67)
    assert "without a user" not in said(shell.run("fetch", "-L", "-u", "bob:x", server.url), 67), "after a redirect it may be another server"
    assert "and no proxy from the command line\n" in said(shell.run("fetch", "-x", server.url, "http://elsewhere.example/"), 0)


def test_schemes_that_the_command_or_the_configuration_leaves_out(stage, shell):
    server = offering(stage, 'Digest realm="a, Fake b", nonce="n"', 'Basic realm="x", NTLM, Negotiate abc==', "Digest nonce=1", 'Hoba a = "b\\", Worse"')
    text = said(shell.run("fetch", "--ntlm", "-u", "bob:x", server.url), 67)
    assert "(offered: Digest, Basic, NTLM, Negotiate, Hoba); Digest, Basic, Negotiate, Hoba: not selected by the command; NTLM: needs" in text
    assert server.authorizations == [None]
    server, text = offering(stage), "watchword: {} returned status 401 and offered no login scheme\n"
    assert said(shell.run("fetch", "-u", "bob:x", server.url), 67) == text.format(server.url)
    assert shell.run("fetch", server.url).stderr == b""
    password = stage.secret()
    server = stage.server(basic_server("bob", password))
    shell = shell_with(stage, f'[schemes]\norder = ["127.0.0.1:{server.port} digest"]\n')
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
    shell = shell_with(stage, f'[proxy]\nurl = "{ntlm_proxy.url}"\n')
    assert b"NTLM: needs the proxy's host in schemes.ntlm" in shell.run("fetch", "http://elsewhere.example/").stderr
    # A proxy's login does not request one of the server.
    text = said(shell.run("fetch", "-x", offering(stage, "NTLM").url, "-U", "pat:x", "http://elsewhere.example/"), 0)
    assert 'needs "elsewhere.example" in schemes.ntlm of the configuration, and https if a proxy is used\n' in text


def test_the_response_is_written_and_the_exit_code_is_67(stage, shell, tmp_path):
    server, file = offering(stage, "NTLM"), tmp_path / "page"
    assert said(shell.run("fetch", "--ntlm", "-o", str(file), server.url), 67, b"") and file.read_bytes() == b"the page"
    done = shell.run("fetch", "--ntlm", "--json", server.url)
    assert (done.returncode, json.loads(done.stdout)["status"]) == (67, 401)
    said(shell.run("fetch", "-f", "--ntlm", server.url), 67, b"")
    said(shell.run("fetch", "-f", server.url), 22, b"")


def test_a_prompt_at_the_terminal_suppresses_the_diagnostic(stage, shell):
    terminal = shell.at_terminal("fetch", "--basic", stage.server(basic_server("bob", "x")).url)
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
