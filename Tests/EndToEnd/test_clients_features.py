"""Features of the other languages' clients beyond a single fetch, and the `fetch` of the Node client, compared with what the standard
says: https://fetch.spec.whatwg.org/"""
import hashlib
import json
import os
import pathlib
import shutil
import threading

import pytest

from rig.bodies import eventually
from rig.clients import CLIENTS, LARGE, login, site  # noqa: F401
from rig.languages import built
from rig.scripted import response
from rig.servers import executable
from rig.terminal import Terminal

PROGRAMS = pathlib.Path(__file__).with_name("programs")
PARTS = b"".join(bytes([number]) * (1 << 16) for number in range(40))


def digest(data):
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def client(tmp_path_factory):
    return lambda name: built(name, tmp_path_factory)


@pytest.fixture
def run(site, login):
    def run(language, command=None):
        done = language.run(site.url, site.broker_path, login("bob", site.password), command or language.program("features"))
        assert done.returncode == 0, done.stderr.decode()
        assert site.password.encode() not in done.stderr
        return done.stdout.decode()
    return run


def check_common(told, site):
    """Checks the output that is the same for all clients."""
    wanted = {
        "typo": "invalidAnswer", "wrongThenRight": "staff page\n", "streamed": digest(LARGE), "short": "connectionLost",
        "refused": "cannotConnect", "first": "first"}
    assert {name: told[name] for name in wanted} == wanted
    # The server stops sending a cancelled download.
    assert site.given_up.wait(30)


def test_node(client, run, site):
    told = json.loads(run(client("node")))
    check_common(told, site)
    assert told["counts"] == [0, 1] and told["atOnce"] == [200] * 20 and told["after"] == 200
    assert told["uploaded"] == told["uploadedBytes"] == digest(PARTS)
    assert (told["mistake"], told["torn"]) == ("challengeCancelled", "RangeError")
    assert (told["aborted"], told["abortedStream"], told["closed"]) == ("TimeoutError", "TimeoutError", "ConnectionError")


def test_perl(client, run, site):
    told = json.loads(run(client("perl")))
    check_common(told, site)
    assert told["counts"] == [0, 1] and told["inline"] == "whole" and told["mistake"] == "mine" and told["after"] == 200


def test_go(client, run, site):
    site.other = site.url.replace("://", f"://bob:{site.password}@")
    told = json.loads(run(client("go")))
    check_common(told, site)
    assert told["counts"] == [0, 1] and told["atOnce"] == [200] * 20 and told["source"] == "session"
    assert told["uploaded"] == told["uploadedBytes"] == digest(PARTS)
    assert (told["mistake"], told["torn"]) == ("challengeCancelled", "the tape is torn")
    assert told["aborted"] == told["abortedStream"] == "context deadline exceeded" and "closed the connection" in told["closed"]
    assert told["transport"] == [200, "text/plain", "POST", True, 2, 200, "/page", "cannotConnect"]


def test_rust(client, run, site):
    language = client("rust")
    told = dict(line.split(" ", 1) for line in run(language).splitlines())
    assert told == {
        "typo": "invalidAnswer", "wrongThenRight": "staff page", "uploaded": digest(PARTS), "torn": "the tape is torn",
        "short": "connectionLost", "refused": "cannotConnect", "full": "full", "cancelled": "cancelled",
        "cancelledStream": "cancelled"}
    assert (language.folder / "streamed").read_bytes() == LARGE and site.given_up.wait(30)


@pytest.mark.tier3("compiles tokio, which takes a minute")
def test_asynchronous_rust(client, run, site):
    language = client("rust-async")
    programs = language.folder / "tokio" / "src" / "bin"
    programs.mkdir()
    shutil.copy(PROGRAMS / "asynchronous.rs", programs / "features.rs")
    language.tool("cargo", "build", "-q", "--bin", "features", folder=language.folder / "tokio")
    assert run(language, ["target/debug/features"]).splitlines() == [
        "resolved true", "own challengeCancelled 200", f"atOnce {','.join(['200'] * 20)}", "refused cannotConnect", "agent 403",
        "dropped true", "streaming 200 first", "after 200"]
    assert (language.folder / "streamed").read_bytes() == LARGE
    eventually(lambda: sorted(site.ended_early) == ["/silent", "/slow"], lambda: site.ended_early)


@pytest.mark.parametrize("features, passed", [([], 7), (["--features", "async"], 14)], ids=["blocking", "async"])
def test_the_rust_crate_has_few_dependencies_and_its_own_tests_pass(client, features, passed):
    language = client("rust")
    direct = language.tool("cargo", "tree", "-q", "--offline", "--depth", "1", "--prefix", "none", *features).splitlines()[1:]
    assert [line.split()[0] for line in direct] == ["serde", "serde_json", "zeroize"]
    assert f"test result: ok. {passed} passed" in language.tool("cargo", "test", "-q", "--lib", *features)


@pytest.mark.parametrize("expression", [
    'format!("{:?}", watchword::Secret::from("x"))', 'format!("{:?}", watchword::Credential::proposed())',
    'serde_json::to_string(&watchword::Secret::from("x"))', 'serde_json::to_string(&watchword::Credential::proposed())'])
def test_a_secret_of_the_rust_client_cannot_be_printed(client, expression):
    language = client("rust")
    (language.folder / "examples" / "printed.rs").write_text(f"fn main() {{ let _ = {expression}; }}\n")
    try:
        with pytest.raises(AssertionError, match=r"(Secret|Credential)(` doesn't implement `Debug`|: .*Serialize` is not satisfied)"):
            language.tool("cargo", "build", "-q", "--example", "printed")
    finally:
        (language.folder / "examples" / "printed.rs").unlink()


@pytest.fixture
def bash(site, tmp_path):
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "WATCHWORD_SOCKET": site.broker_path,
                   "LC_ALL": "C.UTF-8", "TERM": "dumb"}

    def at_terminal(script):
        return Terminal("/bin/bash", "-c", f". {CLIENTS}/shell/watchword.sh; {script}", environment=environment)
    return at_terminal


def test_the_shell_asks_at_the_terminal_with_the_echo_off(bash, site):
    terminal = bash(f"watchword_fetch {site.url}/page; echo code $?")
    terminal.expect("it says: Staff")
    terminal.answer({"User: ": "bob", "Password: ": "wrong"})
    terminal.expect("User: ", times=2)
    terminal.type("bob\n")
    terminal.expect("Password: ", times=2)
    terminal.type(site.password + "\n")
    terminal.expect("code 0")
    assert terminal.end() == 0 and b"staff page" in terminal.shown and site.password.encode() not in terminal.shown


def test_the_shell_sends_the_typed_text_with_blanks_and_backslashes(bash, stage, site):
    secret = stage.secret()
    password = f" \\t{secret} \\ "
    server = stage.server(type(site)("bob ", password))
    stage.allow(secret, server)
    terminal = bash(f"watchword_fetch {server.url}/page; echo code $?")
    terminal.answer({"User: ": "bob ", "Password: ": password})
    terminal.expect("code 0")
    assert terminal.end() == 0 and server.seen[-1][2] == server.right


def test_a_line_feed_in_a_url_adds_no_member(bash, site):
    terminal = bash(f"""watchword_fetch {site.url}/open/echo$'\n{{"method":"DELETE"}}'; echo code $?
        watchword_fetch {site.url}/open/echo '{{"method":"PUT"}} {{"method":"DELETE"}}'; echo code $?
        watchword_fetch {site.url}/open/echo '["PUT"]'; echo code $?""")
    assert terminal.end() == 0
    assert terminal.shown.count(b"code 1") == 3 and b"(badURL)" in terminal.shown and b"must be one JSON object" in terminal.shown
    assert site.seen == []


def test_the_shell_shows_the_whole_host(bash):
    host = "www.mybank.example-login." + "a" * 60 + "." + "b" * 60 + "." + "c" * 60 + ".evil.example"
    challenge = {"accepts": ["password"], "url": f"https://{host}/", "protectionSpace": {
        "protocol": "https", "host": host, "port": 443, "realm": "Staff"}}
    terminal = bash(f"watchword_answer <<<'{json.dumps(challenge)}'")
    terminal.answer({f"https://{host}:443 asks for a login; it says: Staff": "bob\n"})
    assert terminal.end() == 0


def test_the_shell_fails_with_a_reason(bash, site):
    terminal = bash(f"""watchword_answer() {{ echo '{{"action":"continue"}}'; }}; watchword_fetch {site.url}/page; echo code $?
        watchword_answer() {{ echo 'no JSON'; }}; watchword_fetch {site.url}/page; echo code $?
        watchword_fetch {site.url}/open/echo '{{"method":"POST","body":{{"type":"string","value":"a=b"}}}}'; echo code $?
        watchword_fetch {site.url}/open/refuse; echo code $?""")
    assert terminal.end() == 0
    text = terminal.shown.decode()
    assert "please log incode 22" in text and "(challengeCancelled)\r\ncode 1" in text and digest(b"a=b") in text
    assert text.rstrip().endswith("nocode 22")


def test_text_of_a_server_has_no_effect_on_the_terminal(bash):
    terminal = bash("""_watchword_shown .said <<<'{"said":"a\\u001b[2J\\u202eb\\u0085\\nc"}'
        printf '{"said":"%0999d"}' 7 | _watchword_shown .said""")
    assert terminal.end() == 0
    assert terminal.shown == b"a?[2J?b??c\r\n" + b"0" * 200 + b"\r\n"


def test_no_secret_is_an_argument_of_a_program_of_the_shell(bash, site, tmp_path):
    """Every program that the script starts is replaced by one that records its arguments."""
    (tmp_path / "login").write_text(f"bob\n{site.password}\n")
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("jq", "socat", "cat"):
        executable(tools / name, f"#!/bin/bash\nprintf '%s\\0' \"$0\" \"$@\" >>{tmp_path}/arguments\nexec /usr/bin/{name} \"$@\"\n")
    (tmp_path / "url").write_text(site.url.replace("://", f"://alice:{site.password}@") + "/page\n")
    terminal = bash(f"""PATH={tools}:$PATH; watchword_answer() {{ watchword_credential <{tmp_path}/login; }}
        read -r url <{tmp_path}/url; watchword_fetch "$url"; echo code $?""")
    terminal.expect("code 0")
    assert terminal.end() == 0
    arguments = (tmp_path / "arguments").read_bytes()
    assert b"fetch/start" in arguments and site.password.encode() not in arguments
    os.unlink(tmp_path / "login"), os.unlink(tmp_path / "url")


def test_the_asynchronous_swift_client_fetches_all_urls_at_once(client, stage):
    """Each request is answered only after both have arrived, and the pages are in the order of the arguments."""
    both = threading.Barrier(2, timeout=20)

    def handle(request):
        both.wait()
        return response(200, request.target.encode())

    server, language = stage.server(handle), client("swift-async")
    done = language.run(f"{server.url}/b", stage.broker().socket, command=[*language.command, f"{server.url}/a"])
    assert (done.returncode, done.stdout, done.stderr) == (0, b"/a/b", b"")


@pytest.fixture
def told(site, login, tmp_path_factory):
    language = built("node", tmp_path_factory)
    done = language.run(site.url, site.broker_path, login("bob", site.password), language.program("fetching"))
    assert done.returncode == 0, done.stderr.decode()
    assert site.password.encode() not in done.stderr + done.stdout
    return json.loads(done.stdout)


def test_fetch_behaves_as_the_standard_says(told, site):
    # Responses.
    assert told["page"] == [True, 200, True, "OK", "text/plain", True, False, False, "staff page\n", True]
    assert told["cookies"] == [["a=1; Path=/", "b=2; Path=/"], "two\n"] and told["packed"] == "packed page\n"
    assert told["large"] == digest(LARGE) and told["head"] == [200, None] and told["refused"] == [403, False]
    assert told["many"] == 200
    # Redirects.
    assert told["redirected"] == [True, True, True, 200, True] and told["manual"] == [302, True, False]
    assert told["error"][:3] == ["TypeError", "fetch failed", "Error"]
    # Requests.
    whole = b'{"a":1}'
    assert [told["json"][name] for name in ("method", "length", "sha256", "type", "sized")] == [
        "POST", len(whole), digest(whole), "application/json", str(len(whole))]
    assert told["form"] == "application/x-www-form-urlencoded;charset=UTF-8"
    assert (told["bytes"]["length"], told["bytes"]["sized"]) == (3 << 20, str(3 << 20)) and told["streamed"] == digest(PARTS)
    assert (told["asRequest"]["method"], told["asRequest"]["sha256"]) == ("POST", digest(b"abc"))
    # The additions of the broker.
    assert told["auth"] == ["bob", "client"] and told["again"] == "session" and told["uploadAuth"] == "bob"
    assert told["authorization"] == [200, "explicit"] and told["agent"] == 200


def test_a_failure_is_a_type_error_with_its_cause_or_the_reason_of_the_signal(told, site):
    assert told["unreachable"] == ["TypeError", "fetch failed", "cannotConnect", False]
    assert told["noBroker"] == ["TypeError", "fetch failed", "ConnectionError", False]
    assert told["short"] == ["TypeError", "terminated", "connectionLost", False]
    for invalid in ("relative", "secretURL", "invalidURL", "scheme", "malformed"):
        assert told[invalid][0] == "TypeError" and told[invalid][3] is False, told[invalid]
    assert told["timeout"][0] == "TimeoutError" and told["aborted"][0] == "AbortError"
    assert told["first"] == "first" and told["abortedBody"][:2] == ["RangeError", "enough"]
    # An aborted and a cancelled body end their fetches.
    eventually(lambda: {"/slow?1", "/slow?2", "/silent"} <= set(site.ended_early), "a fetch has not ended")
