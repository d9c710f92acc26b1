"""Consent for the scripts of interpreters (SECURITY-RULES I7). A script can have a grant if only root can change it."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import textwrap

import pytest

from rig import audit
from rig.servers import executable
from rig.terminal import Shell
from test_consent import ASK, Desk

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files that only root can change")

PYTHON, PERL = "/usr/bin/python3", "/usr/bin/perl"
#: Fetches the URL that is its second argument from the broker at the first one, and prints the status.
FETCH = {
    PYTHON: textwrap.dedent("""
        import json, socket, sys
        wire = socket.socket(socket.AF_UNIX)
        wire.connect(sys.argv[1])
        replies = wire.makefile()
        # A grant counts for requests that were sent after the broker has identified the program.
        wire.sendall(b'{"jsonrpc":"2.0","id":0,"method":"ping"}\\n')
        replies.readline()
        wire.sendall(b'{"jsonrpc":"2.0","id":1,"method":"fetch/run","params":{"url":"%s"}}\\n' % sys.argv[2].encode())
        print(json.loads(replies.readline())["result"]["status"])
    """),
    PERL: textwrap.dedent("""
        use IO::Socket::UNIX;
        my $wire = IO::Socket::UNIX->new(Peer => $ARGV[0]);
        print $wire "{\\"jsonrpc\\":\\"2.0\\",\\"id\\":0,\\"method\\":\\"ping\\"}\\n";
        $wire->flush;
        <$wire>;
        print $wire "{\\"jsonrpc\\":\\"2.0\\",\\"id\\":1,\\"method\\":\\"fetch/run\\",\\"params\\":{\\"url\\":\\"$ARGV[1]\\"}}\\n";
        $wire->flush;
        print "$1\\n" if <$wire> =~ /"status":(\\d+)/;
    """)}
#: Overwrites the arguments of its own process, as the kernel shows them, with `claim`.
REWRITE = textwrap.dedent("""
    import ctypes, pathlib
    def rewrite(claim):
        fields = pathlib.Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        start, end = int(fields[45]), int(fields[46])
        assert len(claim) <= end - start
        ctypes.memmove(start, claim.ljust(end - start, b"\\0"), end - start)
        assert pathlib.Path("/proc/self/cmdline").read_bytes().startswith(claim)
""")


@pytest.fixture
def desk(stage):
    desk = Desk(stage, stage.configured(ASK))
    desk.agent.allow = "always"
    yield desk
    desk.close()


@pytest.fixture
def folder():
    """A folder that only root can change, and so are those above it, unlike a temporary folder."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="watchword-test-", dir="/var/lib"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def report(folder):
    return written(folder / "report")


def written(path, interpreter=PYTHON):
    path.parent.mkdir(exist_ok=True)
    executable(path, FETCH[interpreter])
    return path


def run(desk, *command, **more):
    done = subprocess.run([*map(str, command), desk.broker.socket, desk.server.url], capture_output=True, timeout=30, **more)
    assert done.stdout == b"200\n", done
    return desk.agent.asked[-1] if desk.agent.asked else None


def is_unidentified(asked):
    return asked["allows"] == ["once"] and asked["subject"]["strength"] == "none"


@pytest.mark.parametrize("interpreter, options", [(PYTHON, ["-I", "-W", "ignore"]), (PERL, ["-w"])])
def test_rule_i7_a_script_that_only_root_can_change_is_asked_about_once(desk, folder, interpreter, options):
    path = written(folder / "report", interpreter)
    asked = run(desk, interpreter, *options, path)
    assert asked["subject"] == {
        "id": f"exe:{os.path.realpath(interpreter)}", "kind": "exe", "strength": "weak", "sandboxed": False, "script": {"path": str(path)}}
    assert asked["requester"]["script"] == {"path": str(path)} and asked["allows"] == ["once", "session", "always"]
    run(desk, interpreter, path)
    assert len(desk.agent.asked) == 1 and desk.logins == 2
    assert f"exe:{os.path.realpath(interpreter)} {path}  always" in desk.shell.run("grants", "list").stdout.decode()
    audit.wait_for(lambda: "consentAnswered" in audit.kinds(desk.broker))
    assert all(event["client"]["script"] == str(path) for event in audit.events(desk.broker) if event["kind"].startswith("consent"))
    assert "] report  may always use" in desk.shell.run("log").stdout.decode()


def test_a_grant_to_a_script_outlives_the_broker(desk, stage, report):
    run(desk, PYTHON, report)
    desk.broker.stop()
    desk.broker.start()
    desk.agent = stage.consenter(desk.broker, "no")
    desk.keep()
    run(desk, PYTHON, report)
    assert desk.agent.asked == []


def test_a_script_is_found_by_its_first_line(desk, folder):
    path = written(folder / "report")
    path.write_text(f"#!{PYTHON} -I\n{path.read_text()}")
    assert run(desk, path)["subject"]["script"] == {"path": str(path)}
    run(desk, PYTHON, path)
    assert len(desk.agent.asked) == 1


@pytest.mark.parametrize("change", [
    lambda path: path.chmod(0o775), lambda path: path.chmod(0o757), lambda path: path.parent.chmod(0o777), lambda path: os.chown(path, 65534, 0),
    lambda path: os.chown(path.parent, 65534, 0), lambda path: path.parent.chmod(0o1777)])
def test_rule_i7_a_script_that_others_can_change_is_asked_about_each_time(desk, report, change):
    change(report)
    for _ in range(2):
        asked = run(desk, PYTHON, report)
        assert is_unidentified(asked) and asked["subject"]["script"] == {"path": str(report)}, "its name is shown"
    assert len(desk.agent.asked) == 2 and desk.agent.call("grant/list")["result"]["grants"] == []


def test_a_path_of_many_parts_is_only_shown(desk, report):
    """Each part costs the broker a look at all mounts."""
    asked = run(desk, PYTHON, "/." * 70 + str(report))
    assert is_unidentified(asked) and asked["subject"]["script"] == {"path": str(report)}


def test_a_relative_path_is_only_shown(desk, report):
    """The process may have changed its directory since it was started."""
    asked = run(desk, PYTHON, report.name, cwd=report.parent)
    assert is_unidentified(asked) and asked["subject"]["script"] == {"path": str(report)}


# Attacks

def test_rule_g7_a_script_that_was_replaced_or_written_to_is_asked_about_again(desk, report):
    run(desk, PYTHON, report)
    new = written(report.with_name("new"))
    new.rename(report)
    run(desk, PYTHON, report)
    assert len(desk.agent.asked) == 2, "another file"
    with report.open("a") as file:
        file.write("\n")
    run(desk, PYTHON, report)
    assert len(desk.agent.asked) == 3, "another content"
    run(desk, PYTHON, report)
    assert len(desk.agent.asked) == 3


def test_rule_i7_another_script_of_that_name_is_another_program(desk, report, folder, tmp_path):
    run(desk, PYTHON, report)
    other = run(desk, PYTHON, written(folder / "other" / "report"))
    assert len(desk.agent.asked) == 2 and other["subject"]["script"] == {"path": f"{folder}/other/report"}
    assert is_unidentified(run(desk, PYTHON, written(tmp_path / "report"))) and len(desk.agent.asked) == 3


def test_rule_i7_a_symbolic_link_counts_only_if_others_cannot_change_it(desk, report, folder, tmp_path):
    run(desk, PYTHON, report)
    (folder / "link").symlink_to(report)
    run(desk, PYTHON, folder / "link")
    assert len(desk.agent.asked) == 1
    (tmp_path / "link").symlink_to(report)
    asked = run(desk, PYTHON, tmp_path / "link")
    assert is_unidentified(asked) and asked["subject"]["script"] == {"path": str(report)}
    # The script of another user, behind a link of root.
    (folder / "away").symlink_to(written(tmp_path / "mine"))
    assert is_unidentified(run(desk, PYTHON, folder / "away"))


def test_rule_g7_a_command_line_that_changes_after_the_connection_ends_the_grants(desk, folder, report):
    run(desk, PYTHON, report)
    path = folder / "changing"
    connected, changing = "replies.readline()\n", "rewrite(b'python3\\0%s\\0' % sys.argv[3].encode())\n"
    path.write_text(REWRITE + FETCH[PYTHON].replace(connected, connected + changing))
    done = subprocess.run([PYTHON, path, desk.broker.socket, desk.server.url, report], capture_output=True, timeout=30)
    assert done.stdout == b"200\n", done
    assert len(desk.agent.asked) == 2 and is_unidentified(desk.agent.asked[1]) and "script" not in desk.agent.asked[1]["subject"]


def test_a_program_of_the_user_can_claim_to_be_a_script(desk, report):
    """The reason why the name is only weak: no rule prevents this."""
    assert run(desk, PYTHON, report)["subject"]["strength"] == "weak"
    code = REWRITE + "import sys\nrewrite(b'python3\\0%s\\0' % sys.argv.pop().encode())\n" + FETCH[PYTHON]
    done = subprocess.run([PYTHON, "-c", code, desk.broker.socket, desk.server.url, report], capture_output=True, timeout=30)
    assert done.stdout == b"200\n" and len(desk.agent.asked) == 1


@pytest.mark.parametrize("claim", [b"python3\0" + b"\n" * 4000, b"python3", b"\0" * 4000, b"python3\0/dev/zero\0", b"python3\0/proc/self/exe\0"])
def test_a_malformed_command_line_names_no_script(desk, claim):
    code = REWRITE + f"rewrite({claim!r})\n" + FETCH[PYTHON] + "# " + "x" * 8000
    asked = run(desk, PYTHON, "-c", code)
    assert is_unidentified(asked) and "script" not in asked["subject"]


def test_the_terminal_agent_names_the_script(stage, folder):
    desk = Desk(stage, stage.configured(ASK))
    path = written(folder / "report\x1b[2J")
    desk.agent.close()
    terminal = Shell(desk.broker).at_terminal("agent")
    terminal.expect("showing the questions of all programs")
    running = subprocess.Popen([PYTHON, path, desk.broker.socket, desk.server.url], stdout=subprocess.PIPE)
    terminal.expect("Allow it? once/session/always/NO: ")
    assert f"script {folder}/report".encode() in terminal.shown and b"\x1b[2J" not in terminal.shown
    assert b"can claim to be this script" in terminal.shown
    terminal.type("session\n")
    assert running.communicate(timeout=30)[0] == b"200\n"
    terminal.type("\x03")
    terminal.end()
