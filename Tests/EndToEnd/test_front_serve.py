"""`watchword serve`: sites at ports and sockets, with real curl as the program."""
import contextlib
import re
import subprocess

import pytest

from rig import audit
from rig.bodies import eventually
from rig.keyring import description
from rig.subjects import Consenter
from rig.terminal import Shell


@pytest.fixture
def sites(stage, gnome):
    """Two sites with logins in the keyring; each has a host of its own."""
    found = []
    for host in ["127.0.0.1", "localhost"]:
        server, password = stage.protected(body=host.encode())
        gnome.put(password, **{**description(server), "server": host})
        found.append((server, f"http://{host}:{server.port}"))
    return stage.broker(environment=gnome.for_broker), found


@contextlib.contextmanager
def serving(broker, *arguments):
    """Runs the command; yields its terminal and the addresses that it prints."""
    terminal = Shell(broker).at_terminal("serve", *arguments)
    terminal.expect("Press Ctrl-C to stop.")
    yield terminal, re.findall(r"Serving \S+ at (?:the socket )?(\S+?)\r?\n", terminal.shown.decode())
    terminal.type("\x03")
    assert terminal.end() == 0


def curl(*arguments):
    done = subprocess.run(["curl", "-sS", "-w", " %{http_code}", *arguments], capture_output=True, text=True, timeout=30)
    return done.stdout


def test_each_site_has_a_port_of_its_own(sites):
    broker, ((first, one), (second, two)) = sites
    with serving(broker, one, two) as (_, addresses):
        assert len(set(addresses)) == 2
        assert [curl(f"{address}/x") for address in addresses] == ["127.0.0.1 200", "localhost 200"]
        assert len(first.requests) == len(second.requests) == 2, "without and with the login"
    eventually(lambda: curl(f"{addresses[0]}/x").endswith(" 000"), "the broker closes the ports")


def test_each_site_has_a_socket_in_the_folder(sites, tmp_path):
    broker, ((first, one), (second, two)) = sites
    options = ["--restricted", "--path", "/x", "--field", "x-mine", "--budget", "2", "--listen", f"{tmp_path}/"]
    ask = lambda address, path: curl(  # noqa: E731
        "--unix-socket", address, "-H", "X-Mine: 1", "-H", "X-Other: 1", f"http://localhost{path}").split()[-1]
    with serving(broker, *options, one, two) as (_, addresses):
        assert addresses == [f"{tmp_path}/127.0.0.1.sock", f"{tmp_path}/localhost.sock"]
        # The limits apply to each.
        assert [ask(addresses[0], path) for path in ["/x", "/y", "/x", "/x"]] == ["200", "403", "200", "429"]
        assert [ask(addresses[1], path) for path in ["/x", "/y"]] == ["200", "403"]
    requests = first.requests + second.requests
    assert {(request.path, request.header("X-Mine"), request.header("X-Other")) for request in requests} == {("/x", "1", None)}
    eventually(lambda: audit.kinds(broker).count("frontRequest") == 6, "all requests are recorded")
    assert {event["origin"] for event in audit.events(broker) if event["kind"] == "frontRequest"} == {one, two}
    eventually(lambda: not list(tmp_path.glob("*.sock")), "the broker removes the sockets")


@pytest.mark.parametrize("arguments, text", [
    (["--listen", "127.0.0.1:4711", "http://a", "http://b"], "several sites need a folder"),
    (["--listen", "/tmp/", "http://a:1", "http://a:2"], "the same host"),
    (["--listen", "sites/", "http://a"], "--listen"),
    (["--listen", "/tmp/", "http://a", "b"], "must start with http"),
    ([], "Missing expected argument")], ids=["port", "host", "relative", "URL", "none"])
def test_sites_that_cannot_be_served_together(stage, arguments, text):
    done = Shell(stage.broker()).run("serve", *arguments)
    assert done.returncode == 64 and text in done.stderr.decode()


def test_no_site_is_served_if_one_cannot_be(sites, tmp_path):
    broker, ((_, one), _) = sites
    done = Shell(broker).run("serve", "--listen", f"{tmp_path}/", one, "http://127.0.0.9:1/path")
    assert done.returncode != 0 and "no path" in done.stderr.decode()
    eventually(lambda: not list(tmp_path.glob("*.sock")), "the broker removes the first socket")


# Consent of its own


@pytest.mark.parametrize("allow, times", [("once", 2), ("session", 1), ("no", 1)])
def test_an_agent_is_asked_before_a_stored_login_is_used(stage, sites, allow, times):
    broker, ((server, url), _) = sites
    agent = Consenter(broker.socket, allow)
    with serving(broker, "--restricted", "--ask", url) as (terminal, (address,)):
        assert b"no agent is running" not in terminal.shown
        statuses = [curl(f"{address}/x").split()[-1] for _ in range(2)]
    assert statuses == (["401"] * 2 if allow == "no" else ["200"] * 2)
    assert {asked["requester"]["subject"] for asked in agent.asked} == {f"front:{url}"} and len(agent.asked) == times
    logins = [request for request in server.requests if request.authorization]
    assert len(logins) == (0 if allow == "no" else 2)
    # The consent is not that of the program that has opened the front, nor of another front.
    if allow == "session":
        agent.allow = "no"
        with serving(broker, "--restricted", "--ask", url.replace("127.0.0.1", "localhost")) as (_, (address,)):
            assert curl(f"{address}/x").split()[-1] == "401"
            listed = stage.client(broker=broker).call("grant/list")["result"]["grants"]
            allowed = [(one["subject"]["id"], one["allow"]) for one in listed if one["allow"] != "no"]
            assert allowed == [(f"front:{url}", "session")]
    agent.close()


def test_without_an_agent_no_stored_login_is_used(sites):
    broker, ((server, url), _) = sites
    with serving(broker, "--restricted", "--ask", url) as (terminal, (address,)):
        assert b"no agent is running" in terminal.shown
        assert curl(f"{address}/x").split()[-1] == "401" and not any(request.authorization for request in server.requests)


def test_a_front_of_the_configuration_can_ask(stage, gnome, sites, tmp_path):
    _, ((server, url), _) = sites
    broker = stage.configured(
        f'[[front.site]]\nlisten = "{tmp_path}/site.sock"\nurl = "{url}"\nrestricted = true\nconsent = "ask"\n', environment=gnome.for_broker)
    agent = Consenter(broker.socket, "session")
    assert curl("--unix-socket", f"{tmp_path}/site.sock", "http://localhost/x").split()[-1] == "200"
    assert [asked["requester"]["subject"] for asked in agent.asked] == [f"front:{url}"]
    agent.close()


def test_consent_needs_a_restricted_front(stage):
    done = Shell(stage.broker()).run("serve", "--ask", "http://a")
    assert done.returncode == 64 and "--ask needs --restricted" in done.stderr.decode()
    client = stage.client()
    for site in [{"consent": "ask"}, {"restricted": True, "consent": "always"}, {"restricted": True, "consent": True}]:
        error = client.call("front/open", {"site": {"url": "http://a", **site}, "listen": "127.0.0.1:0"})["error"]
        assert error["data"]["kind"] == "invalidParams" and "consent" in error["data"]["detail"]
    assert not client.call("front/list")["result"]["fronts"]
