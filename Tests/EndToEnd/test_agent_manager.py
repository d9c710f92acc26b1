"""The logic of the agent's manager without windows: the configuration, addresses, search, permissions, and slow tokens."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from rig.bodies import eventually
from rig.broker import ROOT, program

sys.path.insert(0, str(ROOT / "contrib" / "agent"))

from gi.repository import GLib  # noqa: E402
from watchword_agent import (  # noqa: E402
    address, broker_process, configuration, durations, grants, private_file, saved_logins, tokens)

EXAMPLES = ROOT / "Protocol" / "examples"
IDLE, SHARING, KEYRING = ("limits", "session-idle-s"), ("sharing", "session"), ("keyring", "enabled")
FULL = """# my configuration
[limits]
session-idle-s = 900 # a quarter of an hour
  session-lifetime-s=3_600

[fetch]
deny = [
  # [limits] begins no table here
  "[::1]", "localhost",
]

[sharing]   # of logins
"session" = 'user'
"""


@pytest.fixture(autouse=True)
def programs(monkeypatch):
    """Puts the built programs into PATH, as an installation does."""
    monkeypatch.setenv("PATH", f"{pathlib.Path(program('watchword')).parent}:{os.environ['PATH']}")


# Changes of the text

@pytest.mark.parametrize("before, option, value, after", [
    (FULL, IDLE, 60, FULL.replace("= 900 #", "= 60 #")),
    (FULL, ("limits", "session-lifetime-s"), 7200, FULL.replace("=3_600", "=7200")),
    (FULL, SHARING, "ask", FULL.replace("'user'", '"ask"')),
    (FULL, KEYRING, False, FULL + "\n[keyring]\nenabled = false\n"),
    ("", IDLE, 60, "[limits]\nsession-idle-s = 60\n"),
    ("[keyring]\n\n# end", KEYRING, True, "[keyring]\nenabled = true\n\n# end\n"),
    ("[limits]\nsession-entries = 7\n\n[audit]\nenabled = false\n", IDLE, 60, "[limits]\nsession-entries = 7\nsession-idle-s = 60\n\n[audit]\nenabled = false\n"),
    ("[limits]\r\nsession-idle-s = 5\r\n", IDLE, 60, "[limits]\r\nsession-idle-s = 60\r\n"),
    ("[limits]\r\nsession-idle-s = 5", KEYRING, True, "[limits]\r\nsession-idle-s = 5\r\n\r\n[keyring]\r\nenabled = true\r\n"),
    ('[keyring]\n[oauth."https://a.example/v1"]\nclient-id = "c"\ndpop = true\n', KEYRING, False,
     '[keyring]\nenabled = false\n[oauth."https://a.example/v1"]\nclient-id = "c"\ndpop = true\n'),
    ('[oauth."https://a.example/v1"]\nenabled = true\n', KEYRING, False,
     '[oauth."https://a.example/v1"]\nenabled = true\n\n[keyring]\nenabled = false\n'),
    ("[audit]\nenabled = true\n[keyring]\nenabled = true", KEYRING, False, "[audit]\nenabled = true\n[keyring]\nenabled = false")])
def test_one_option_is_changed_and_all_else_stays(before, option, value, after):
    assert configuration.changed(before, *option, value) == after
    assert configuration.values(after)[option] == value


@pytest.mark.parametrize("text, option", [
    ("limits.session-idle-s = 5\n", IDLE), ("limits = {session-idle-s = 5}\n", IDLE), ("limits = 7\n", IDLE),
    ("[ 'limits' ]\nsession-idle-s = 5\n", IDLE), ("[limits]\nsession-idle-s = [5]\n", IDLE)])
def test_a_form_that_a_line_editor_cannot_change_is_left_alone(text, option):
    with pytest.raises(configuration.Unusable, match="limits.session-idle-s is written in a form"):
        configuration.changed(text, *option, 60)


def test_a_line_in_a_string_is_not_an_option():
    text = '[other]\ntext = """\n[limits]\nsession-idle-s = 7\n"""\n'
    assert configuration.changed("[limits]\nsession-idle-s = 5\n" + text, *IDLE, 60) == "[limits]\nsession-idle-s = 60\n" + text
    with pytest.raises(configuration.Unusable, match="with an editor"):
        configuration.changed(text, *IDLE, 60)


@pytest.mark.parametrize("text", ["[limits\n", "[limits]\nsession-idle-s = \n", "a = 1\na = 2\n"])
def test_an_error_in_the_file_is_reported_in_words(text):
    with pytest.raises(configuration.Unusable, match=r"The configuration has an error: .*line \d"):
        configuration.values(text)


def test_defaults_are_those_of_the_broker():
    page = (ROOT / "contrib" / "man" / "watchword-config.5").read_text().replace("\\-", "-").replace("\\(dq", '"')
    example = page[page.index("[limits]\nchallenge"):page.index(".EE")]
    assert configuration.values(example) == configuration.DEFAULTS == configuration.values("")
    for option, value in configuration.DEFAULTS.items():
        assert configuration.changed(example, *option, value) == example


def test_the_token_module_is_read():
    assert configuration.token_module('[tokens]\nmodule = "/m.so"\n') == "/m.so"
    assert [configuration.token_module(text) for text in ("", "[tokens]\nmodule = 7\n", "tokens = 1\n", "[")] == [""] * 4

# Writing the file

def written(path, value=60, check=broker_process.check):
    before = configuration.read(str(path))
    configuration.write(str(path), before, configuration.changed(before, *IDLE, value), check)


def test_a_file_keeps_its_permissions_without_writing_by_others(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text(FULL)
    for mode, after in [(0o600, 0o600), (0o640, 0o640), (0o664, 0o644)]:
        path.chmod(mode)
        written(path)
        assert path.stat().st_mode & 0o777 == after
    assert path.read_text() == FULL.replace("= 900 #", "= 60 #") and os.listdir(tmp_path) == ["config.toml"]


def test_a_new_file_and_its_folder_are_private(tmp_path):
    path = tmp_path / "new" / "watchword" / "config.toml"
    written(path)
    assert path.read_text() == "[limits]\nsession-idle-s = 60\n"
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700


def test_a_symbolic_link_stays_one(tmp_path):
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / "dotfiles" / "w.toml").write_text(FULL)
    (tmp_path / "config.toml").symlink_to("dotfiles/w.toml")
    written(tmp_path / "config.toml")
    assert (tmp_path / "config.toml").is_symlink() and "= 60 #" in (tmp_path / "dotfiles" / "w.toml").read_text()


OTHERS = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of others")


@pytest.mark.parametrize("prepare, value, said", [
    pytest.param(lambda path: os.chown(path, 65534, 65534), 60, "is not a file of yours", marks=OTHERS),
    (lambda path: path.write_bytes(b"\xff"), 60, "not text in UTF-8"), (lambda path: path.write_bytes(bytes((1 << 20) + 1)), 60, "larger than 1 MiB"),
    (lambda path: None, 0, "The configuration would be invalid: line 3: limits.session-idle-s: expected a whole number")])
def test_a_file_of_others_or_with_invalid_content_is_not_changed(tmp_path, prepare, value, said):
    path = tmp_path / "config.toml"
    path.write_text(FULL)
    prepare(path)
    before = path.read_bytes()
    with pytest.raises(configuration.Unusable, match=said):
        written(path, value)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["config.toml"]


def test_a_change_by_another_program_is_not_lost(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text(FULL)

    def meanwhile(_new):
        path.write_text("# by an editor\n")

    with pytest.raises(configuration.Unusable, match="Another program has changed the file"):
        written(path, check=meanwhile)
    assert path.read_text() == "# by an editor\n" and os.listdir(tmp_path) == ["config.toml"]


def test_a_failed_write_leaves_nothing(tmp_path):
    def fail(_new):
        raise KeyError

    with pytest.raises(KeyError):
        private_file.replace(str(tmp_path / "a"), b"x", check=fail)
    assert os.listdir(tmp_path) == []


def test_without_the_checking_program_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(configuration.Unusable, match="“watchword”, which checks the configuration, was not found"):
        written(tmp_path / "config.toml")


# The running broker

def test_the_broker_reads_a_written_configuration(stage, tmp_path):
    broker = stage.configured("[keyring]\nenabled = true\n")
    pid = stage.client(delivery=None).call("server/status")["result"]["pid"]
    path = broker_process.configuration_file(pid)
    assert path == broker.options[-1] and pid == broker.process.pid
    text = configuration.read(path)
    configuration.write(path, text, configuration.changed(text, *IDLE, 60), broker_process.check)
    assert broker_process.reload(pid) is None
    eventually(lambda: "configuration reloaded" in broker.log, lambda: broker.log)


@pytest.mark.parametrize("spell", [lambda path: ["--config", path], lambda path: [f"--config={path}"]], ids=["word", "equals"])
@pytest.mark.parametrize("place", [str, os.path.relpath], ids=["absolute", "relative"])
def test_the_brokers_configuration_is_found(stage, tmp_path, spell, place):
    """A relative path is returned as it is; the settings page then changes nothing."""
    (tmp_path / "own.toml").write_text("")
    path = place(str(tmp_path / "own.toml"))
    assert broker_process.configuration_file(stage.broker(*spell(path)).process.pid) == path
    assert broker_process.configuration_file(stage.broker().process.pid).endswith("/watchword/config.toml")


def test_only_the_broker_gets_a_signal():
    other = subprocess.Popen(["sleep", "60"])
    try:
        assert "the broker's process was not found" in broker_process.reload(other.pid)
        assert broker_process.configuration_file(other.pid).endswith("/watchword/config.toml")
        assert other.poll() is None
        # Not with `reload`, because these would be signals to groups of processes.
        assert not any(broker_process._is_broker(pid) for pid in (1, 0, -1, None, True, "7", 2**22 + 1))
    finally:
        other.send_signal(signal.SIGTERM)
        other.wait(10)


# Addresses

@pytest.mark.parametrize("text, protocol, host, port", [
    ("intranet.example", "https", "intranet.example", 443), (" HTTPS://Intranet.Example:8443/a?b ", "https", "intranet.example", 8443),
    ("http://127.0.0.1", "http", "127.0.0.1", 80), ("localhost:8080", "https", "localhost", 8080), ("[::1]:8080", "https", "[::1]", 8080),
    ("b\u00fccher.example", "https", "xn--bcher-kva.example", 443)])
def test_an_address_is_a_host_or_a_url(text, protocol, host, port):
    assert address.space(text) == {"protocol": protocol, "host": host, "port": port}


@pytest.mark.parametrize("text, said", [
    ("", "not an address"), ("https://", "not an address"), ("a b", "not an address"), ("a:99999", "not an address"), ("a:0", "not an address"),
    ("a:x", "not an address"), ("[::1", "not an address"), ("ftp://a", "ftp is not supported"), ("bob:pw@a", "in their own fields"),
    ("https://bob@a", "in their own fields"), ("stra\u00dfe.example", "Punycode")])
def test_other_addresses_are_explained(text, said):
    with pytest.raises(address.Unusable, match=said):
        address.space(text)


@pytest.mark.parametrize("text, is_readable", [
    ("http://intranet.example", True), ("HTTP://192.0.2.1:8080/x", True), ("https://intranet.example", False), ("intranet.example", False),
    ("http://127.0.0.1:8080", False), ("http://localhost", False), ("http://[::1]/", False), ("http://", False), ("", False)])
def test_a_password_sent_over_a_network_in_the_clear_is_recognized(text, is_readable):
    assert address.is_readable_on_the_network(text) is is_readable


# Lists

def entry(user="bob", host="intranet.example", realm="Staff", **more):
    space = {"protocol": "https", "host": host, "port": 443, "realm": realm, "authenticationMethod": "httpBasic", "isProxy": False}
    return {"id": "session:1", "type": "password", "user": user, "source": "session", "protectionSpace": space, **more}


@pytest.mark.parametrize("words, is_found", [
    ("", True), ("INTRA", True), ("bob", True), ("staff bob", True), ("alice", False), ("bob alice", False), ("session", False)])
def test_host_user_and_realm_are_searched(words, is_found):
    assert saved_logins.matches(entry(), words) is is_found
    assert saved_logins.matches(entry(user=None, realm=None), "intranet") and not saved_logins.matches(entry(user=None, realm=None), "none")


def test_a_default_is_offered_among_users_of_one_space_only():
    bob, again, alice = entry(), entry(source="keyring"), entry("alice")
    assert not saved_logins.has_alternatives(bob, [bob, again, entry("alice", realm="Other"), entry("alice", host="b.example"), entry(None)])
    assert saved_logins.has_alternatives(bob, [bob, alice]) and not saved_logins.has_alternatives(entry(None), [alice, bob])
    assert [one["user"] for one in saved_logins.in_order([bob, entry("z", host="a.example"), alice])] == ["z", "alice", "bob"]


def test_a_permission_names_program_login_and_decision():
    [grant] = json.loads((EXAMPLES / "grant.list" / "grants.json").read_text())["result"]["grants"]
    assert grants.program(grant) == "org.example.Maps"
    assert grants.facts(grant) == "“bob” at https://intranet.example · allowed for this session\nflatpak:org.example.Maps"
    assert grants.program({}) == "an unknown program" and "a login at a server" in grants.facts({"subject": {"id": "x\u202ey"}})
    assert "\u202e" not in grants.facts({"subject": {"id": "x\u202ey"}})


@pytest.mark.parametrize("seconds, text", [(1, "1 second"), (90, "90 seconds"), (600, "10 minutes"), (3600, "1 hour"), (172800, "2 days")])
def test_times_are_spelt_in_their_largest_unit(seconds, text):
    assert durations.spelt(seconds) == text
    assert seconds in durations.offered(durations.IDLE_SECONDS, seconds)


# Tokens

def searched(module, limit_seconds=10):
    loop, found = GLib.MainLoop(), []

    def ended(choices):
        found.append(choices)
        loop.quit()

    search = tokens.TokenSearch(module, ended, limit_seconds)
    last = GLib.timeout_add_seconds(20, loop.quit)
    if not found:
        loop.run()
    if not found:
        search.cancel()
        search._process.force_exit()
        raise AssertionError("the search did not end")
    GLib.source_remove(last)
    return search, found[0]


def test_a_token_is_searched_beside_the_main_loop(token, monkeypatch):
    monkeypatch.setenv("SOFTHSM2_CONF", token.environment["SOFTHSM2_CONF"])
    _, [choice] = searched("")
    assert choice.token == "watchword" and choice.summary.name == "Alice Client"
    # A module that is missing or breaks is a token less.
    assert searched("/nowhere.so")[1] == [] and searched("/etc/passwd")[1] == []


@pytest.fixture
def hanging_module(tmp_path):
    """A PKCS#11 module that hangs as soon as it is loaded."""
    (tmp_path / "hang.c").write_text("#include <unistd.h>\n__attribute__((constructor)) static void hang(void) { for (;;) pause(); }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", tmp_path / "hang.so", tmp_path / "hang.c"], check=True)
    return str(tmp_path / "hang.so")


def test_a_token_that_hangs_is_given_up(hanging_module):
    search, found = searched(hanging_module, limit_seconds=0.5)
    assert found == [] and search._process.get_if_signaled() and search._process.get_term_sig() == signal.SIGKILL


def test_a_search_that_is_cancelled_reports_nothing(hanging_module):
    found = []
    search = tokens.TokenSearch(hanging_module, found.append)
    search.cancel()
    end, context = time.monotonic() + 20, GLib.MainContext.default()
    while search._timer and time.monotonic() < end:
        context.iteration(True)
    assert search._timer == 0 and found == []


@pytest.mark.parametrize("output", [b"", b"{", b"null\n[]\n7\n", b'{"uri":1}\n', b'{"uri":"pkcs11:a","token":"t","der":"!"}\n', b"\xff\n",
                                    b'{"uri":"pkcs11:a","token":"t","der":"AAAA"}\n'])
def test_damaged_output_of_the_search_is_left_out(output):
    assert tokens.parsed(output) == []
