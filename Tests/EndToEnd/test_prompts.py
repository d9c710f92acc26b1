"""A user who stops all prompts for a program, and the reported reason why no respondent was asked (SEMANTICS rule 28)."""
import subprocess

from rig.broker import program
from rig.scripted import basic_server


def test_rule_28_the_shell_helper_shows_the_reasons_with_v_only(stage):
    server = stage.server(basic_server("bob", stage.secret()))
    broker = stage.broker()
    done = subprocess.run(
        [program("watchword"), "fetch", "-v", "--socket", broker.socket, server.url], stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=30, start_new_session=True)
    assert done.returncode == 67, done.stderr
    quiet = subprocess.run(
        [program("watchword"), "fetch", "--socket", broker.socket, server.url], stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=30, start_new_session=True)
    line = "* no login to the server with Basic: no agent answered"
    assert line in done.stderr.splitlines() and "no login to the server" not in quiet.stderr
