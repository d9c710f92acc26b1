"""Texts at a terminal: the end of a host, which identifies its owner, is never hidden."""
import json

from rig import audit
from rig.scripted import ScriptedServer, response
from rig.terminal import Shell

#: 253 characters; libcurl resolves names below localhost to this machine.
HOST = "www.mybank.example-login." + ".".join(letter * 63 for letter in "abc") + "." + "d" * 21 + ".evil.localhost"


def one_line(text):
    """Returns the output as on a terminal of unlimited width."""
    return text.decode().replace("\r\n", "\n")


def test_rule_x3_a_long_host_is_shown_whole_in_prompts_and_lists(stage):
    assert len(HOST) == 253
    server, password = stage.protected()
    site, broker = f"http://{HOST}:{server.port}", stage.broker()
    shell = Shell(broker)
    terminal = shell.at_terminal("fetch", f"{site}/{'x' * 500}")
    terminal.expect("User: ")
    asked = one_line(terminal.shown)
    assert f"{site} requires a login." in asked and f"\n  The host name is long and ends in {'d' * 21}.evil.localhost\n" in asked
    terminal.type("bob\n")
    terminal.answer({"Password for bob: ": password})
    assert terminal.end() == 0
    assert f"  {site}  " in shell.run("credentials", "list").stdout.decode()
    audit.wait_for(lambda: "credentialUsed" in audit.kinds(broker))
    assert f"used a login for {site} " in shell.run("log").stdout.decode()


def test_redirects_are_shown_with_the_whole_host(stage):
    place = f"http://{HOST}"
    server = stage.server(ScriptedServer(lambda request: response(
        302, b"", f"Location: {place}:{request.header('host').rpartition(':')[2]}/{'x' * 500}last")
        if "/start" in request.target else response(200, b"there")))
    done = Shell(stage.broker()).run("fetch", "-v", "-L", f"{server.url}/start")
    assert done.stdout == b"there", done
    line = next(line for line in done.stderr.decode().splitlines() if "redirected to " in line)
    assert f"{place}:{server.port}/xxx" in line and line.endswith("xlast") and "…" in line


def test_the_doctor_shows_the_whole_proxy(stage):
    broker = stage.configured(f'[proxy]\nurl = "http://{HOST}:3128"\n')
    found = json.loads(Shell(broker).run("doctor", "--json").stdout)["findings"]
    assert any(f"http://{HOST}:3128." in one["text"] for one in found), found
