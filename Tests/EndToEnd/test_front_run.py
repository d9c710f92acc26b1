"""`watchword run` and `watchword serve`: unchanged programs whose requests go through the broker, also as a job of an interactive shell;
sites at ports and sockets; and the pages about unchanged programs."""
import contextlib
import hashlib
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import sys
import urllib.parse

import pytest

from rig import audit, browser, field_servers
from rig.bodies import eventually
from rig.broker import ROOT, program
from rig.client import password_answer
from rig.depots import nginx_depot
from rig.fixtures import reachable_folder, running
from rig.forwarding import ForwardProxy
from rig.keyring import description
from rig.local_fronts import exchange, run
from rig.ntlm import NtlmCheck
from rig.scripted import response
from rig.servers import executable, find, free_port
from rig.terminal import Shell, Terminal


def test_curl_logs_in_to_a_server_without_knowing_the_password(stage):
    server, password = stage.protected()
    broker = stage.broker()
    asked = stage.agent(password_answer("bob", password), broker).asked
    done = run(broker, "sh", "-c", f"curl -sS {server.url}/a && curl -sS {server.url}/b && curl -sS {server.url}/c")
    assert (done.returncode, done.stderr) == (0, b""), done
    assert len(asked) == 1 and asked[0]["requester"]["subject"] == "exe:/usr/bin/curl"
    assert [request.target for request in server.requests] == ["/a", "/a", "/b", "/c"]
    assert all(request.header("Proxy-Authorization") is None for request in server.requests)
    assert all(request.header("Via").startswith("1.1 watchword-") for request in server.requests)


def test_a_descendant_whose_parent_has_ended_needs_no_token(stage, tmp_path):
    """As of build daemons, for example. The shell waits for it, and sees no zombie of it."""
    server = stage.server(lambda request: response(200, b"page"))
    script = (
        f"setsid -f sh -c 'sleep 0.3; echo $$ >{tmp_path}/pid; curl -sS -o {tmp_path}/page -w %{{http_code}} -x http://${{http_proxy#*@}}"
        f" {server.url}/ >{tmp_path}/code.new; mv {tmp_path}/code.new {tmp_path}/code'\n"
        f"while ! test -s {tmp_path}/code; do sleep 0.05; done; cat {tmp_path}/code; sleep 0.2; ! test -e /proc/$(cat {tmp_path}/pid)")
    done = run(stage.broker(), "sh", "-c", script)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"200", b""), done
    assert (tmp_path / "page").read_bytes() == b"page"


@pytest.mark.parametrize("command, code", [
    (["true"], 0), (["/nonexistent/program"], 127), (["/etc/passwd"], 126), (["sh", "-c", "kill -SEGV $$"], -signal.SIGSEGV),
    # The end of an adopted process is not that of the program.
    (["sh", "-c", "setsid -f sh -c 'sleep 0.1; exit 3'; sleep 0.5; exit 7"], 7)])
def test_the_exit_code_is_that_of_the_program(stage, command, code):
    done = run(stage.broker(), *command)
    assert done.returncode == code
    assert (b"cannot run" in done.stderr) == (code > 100), done.stderr


def test_signals_of_other_processes_reach_the_program(stage):
    script = "import signal, sys; signal.signal(signal.SIGUSR1, lambda *_: sys.exit(5)); print('ready', flush=True); signal.pause()"
    process = Shell(stage.broker()).start("run", "--", sys.executable, "-c", script)
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGUSR1)
    assert process.wait(20) == 5


def test_the_front_ends_with_the_program(stage):
    broker = stage.broker()
    run(broker, "true")
    client = stage.client(broker=broker)
    eventually(lambda: client.call("front/list", {})["result"]["fronts"] == [], "the front is closed")


def test_a_large_upload_and_download(stage, tmp_path):
    received = []

    def page(request):
        received.append(request.body)
        return response(200, b"d" * (8 << 20) if request.method == "GET" else b"taken")

    server = stage.server(page)
    body = os.urandom(3 << 20)
    (tmp_path / "body").write_bytes(body)
    broker = stage.broker()
    done = run(broker, "curl", "-sS", "--data-binary", f"@{tmp_path}/body", server.url)
    assert done.stdout == b"taken" and received == [body], done
    done = run(broker, "curl", "-sS", "-o", str(tmp_path / "got"), server.url)
    assert (tmp_path / "got").read_bytes() == b"d" * (8 << 20), done


def test_an_ignored_signal_about_children_does_not_matter(stage):
    """A parent that ignores SIGCHLD passes this on to the programs that it starts."""
    broker = stage.broker()
    script = "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", script, program("watchword"), "run", "--socket", broker.socket, "--", "sh", "-c", "exit 3"],
        env={**os.environ, "HOME": str(broker.home)}, timeout=30)
    assert done.returncode == 3


# After the end of the broker

WAITS = r"""
echo ${http_proxy##*:}
read go
curl -sS -o /dev/null "$1"
echo "curl: $?"
"""


class Waiting:
    """A program that `watchword run` runs, and that makes a request when it is told to."""

    def __init__(self, broker, url):
        self.process = Shell(broker).start("run", "--", "sh", "-c", WAITS, "sh", url, stdin=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())


def listen(port, family=socket.AF_INET):
    """Listens as another user could."""
    impostor = socket.socket(family)
    impostor.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    impostor.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", port))
    impostor.listen()
    return impostor


@pytest.mark.parametrize("is_killed", [False, True])
def test_no_other_program_gets_the_requests_after_the_end_of_the_broker(stage, is_killed):
    server = stage.server(lambda request: response(200, b"page"))
    broker = stage.broker()
    run = Waiting(broker, server.url)
    with socket.create_connection(("127.0.0.1", run.port)):
        broker.kill() if is_killed else broker.stop()
        assert broker.process.returncode == (-signal.SIGKILL if is_killed else 0)
        assert "the broker has ended" in run.process.stderr.readline()
    for family in [socket.AF_INET, socket.AF_INET6]:
        with pytest.raises(OSError, match="Address already in use"):
            listen(run.port, family)
    output, _ = run.process.communicate("go\n", timeout=30)
    assert output == "curl: 7\n" and run.process.returncode == 0 and not server.requests


def test_a_program_ends_if_another_one_has_taken_its_proxy(stage):
    broker = stage.broker()
    run = Waiting(broker, "http://example.test/")
    run.process.send_signal(signal.SIGSTOP)
    broker.kill()
    with listen(run.port) as impostor:
        run.process.send_signal(signal.SIGCONT)
        output, errors = run.process.communicate(timeout=30)
        assert output == "" and "another program has the address of its proxy" in errors
        assert run.process.returncode == -signal.SIGKILL
        impostor.settimeout(0.2)
        with pytest.raises(TimeoutError):
            impostor.accept()


# Other programs at the port of a front

@pytest.mark.parametrize("taken", ["127.0.0.1", "::1"])
def test_a_taken_port_is_reported_by_run_and_doctor(stage, taken):
    port = free_port()
    with listen(port, socket.AF_INET6 if taken == "::1" else socket.AF_INET):
        broker = stage.configured(f'[front]\nproxy = "127.0.0.1:{port}"\nhosts = ["127.0.0.1"]\n')
        done = run(broker, "true")
        errors = done.stderr.decode()
        assert done.returncode == 0 and f"127.0.0.1:{port}" in errors and "another program uses" in errors, errors
        assert f"[::1]:{port}" in errors or taken != "::1"
        doctor = Shell(broker).run("doctor")
        assert doctor.returncode != 0 and b"another program uses" in doctor.stdout, doctor.stdout
        if taken == "::1":
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port), 5)


@pytest.mark.parametrize("listening", ["127.0.0.1:0", "[::1]:0"])
def test_a_front_has_its_port_at_both_loopback_addresses(stage, listening):
    server = stage.server(lambda request: response(200, b"page"))
    client = stage.client()
    result = client.call("front/open", {"site": {"url": server.url}, "listen": listening})["result"]
    port = int(result["listen"].rsplit(":", 1)[1])
    for host in ["127.0.0.1", "::1"]:
        data = f"GET / HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n".encode()
        assert exchange((host, port), data).endswith(b"page")
    assert "result" in client.call("front/close", {"frontId": result["frontId"]})
    for family in [socket.AF_INET, socket.AF_INET6]:
        listen(port, family).close()


SCRIPT = """
import collections, os, signal, sys
counts = collections.Counter()
def count(number, frame):
    counts[number] += 1
    print(f"<{signal.Signals(number).name} {counts[number]}>", flush=True)
for number in [signal.SIGINT, signal.SIGTERM]:
    signal.signal(number, count)
print(f"<ready {os.getppid()}>", flush=True)
for line in sys.stdin:
    print(f"<read {line.strip()}>", flush=True)
    if line == "stop\\n":
        os.kill(os.getpid(), signal.SIGSTOP)
    if line == "end\\n":
        sys.exit(7)
"""


@pytest.fixture
def shell(stage, tmp_path):
    """An interactive shell. `shell.start(suffix)` runs the script as a job, and returns the process of `watchword run`."""
    broker = stage.broker()
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = {**os.environ, "HOME": str(broker.home), "PS1": "$ ", "TERM": "dumb", "HISTFILE": ""}
    terminal = Terminal("/bin/bash", "--norc", "--noprofile", "-i", environment=environment)
    command = [program("watchword"), "run", "--socket", broker.socket, "--", sys.executable, "-u", str(tmp_path / "script.py")]

    def start(suffix=""):
        terminal.type(f"{shlex.join(command)} {suffix}\n")
        terminal.expect("<ready ")
        terminal.expect(">\r\n")
        return int(re.search(rb"<ready (\d+)>", terminal.shown)[1])

    terminal.start = start
    yield terminal
    terminal.type("\nexit\n")
    terminal.end()


def end(shell):
    """Ends the script, and expects its exit code at the shell."""
    shell.type("end\n")
    shell.answer({"<read end>": "echo code=$?."})
    shell.expect("code=7.")


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_by_the_terminal_or_to_the_job_reaches_the_program_once(shell, name):
    job = shell.start()
    shell.type("\x03") if name == "SIGINT" else os.killpg(job, signal.SIGTERM)
    shell.expect(f"<{name} 1>")
    end(shell)
    assert f"<{name} 2>".encode() not in shell.shown


def continue_in_foreground(shell):
    """The shell has the terminal until `fg`."""
    shell.type("echo the-$((40 + 2))-shell\n")
    shell.answer({"the-42-shell": "fg"})
    shell.type("again\n")
    shell.expect("<read again>")
    end(shell)


@pytest.mark.parametrize("keys", ["\x1a", "stop\n"], ids=["by the terminal", "by itself"])
def test_a_stopped_program_stops_the_job(shell, keys):
    shell.start()
    shell.type(keys)
    shell.expect("Stopped")
    continue_in_foreground(shell)


def test_a_program_in_the_background_reads_after_it_is_brought_to_the_foreground(shell):
    shell.start("&")
    continue_in_foreground(shell)


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
    agent = stage.consenter(broker, allow)
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


def test_without_an_agent_no_stored_login_is_used(sites):
    broker, ((server, url), _) = sites
    with serving(broker, "--restricted", "--ask", url) as (terminal, (address,)):
        assert b"no agent is running" in terminal.shown
        assert curl(f"{address}/x").split()[-1] == "401" and not any(request.authorization for request in server.requests)


def test_a_front_of_the_configuration_can_ask(stage, gnome, sites, tmp_path):
    _, ((server, url), _) = sites
    broker = stage.configured(
        f'[[front.site]]\nlisten = "{tmp_path}/site.sock"\nurl = "{url}"\nrestricted = true\nconsent = "ask"\n', environment=gnome.for_broker)
    agent = stage.consenter(broker, "session")
    assert curl("--unix-socket", f"{tmp_path}/site.sock", "http://localhost/x").split()[-1] == "200"
    assert [asked["requester"]["subject"] for asked in agent.asked] == [f"front:{url}"]


def test_consent_needs_a_restricted_front(stage):
    done = Shell(stage.broker()).run("serve", "--ask", "http://a")
    assert done.returncode == 64 and "--ask needs --restricted" in done.stderr.decode()
    client = stage.client()
    for site in [{"consent": "ask"}, {"restricted": True, "consent": "always"}, {"restricted": True, "consent": True}]:
        error = client.call("front/open", {"site": {"url": "http://a", **site}, "listen": "127.0.0.1:0"})["error"]
        assert error["data"]["kind"] == "invalidParams" and "consent" in error["data"]["detail"]
    assert not client.call("front/list")["result"]["fronts"]


PAGES = ROOT / "contrib/docs/programs"
#: The file that the commands of a page leave, or the text that they print.
RESULTS = {
    "apt": "hello_1.0_all.deb", "browsers": "<title>the page", "curl": "report.pdf", "docker": "demo/manifest.json",
    "git": "project/.git/HEAD", "java": "the page", "npm": "node_modules/left-pad/package.json", "pip": "requests-1.0-py3-none-any.whl",
    "wget": "report.pdf"}
PROGRAM = """import java.net.*;
class Program { public static void main(String[] a) throws Exception { new URL("http://intranet.example/page.txt").openStream().transferTo(System.out); } }
"""


def commands(page):
    blocks = re.findall(r"^```sh\n(.*?)^```", (PAGES / f"{page}.md").read_text(), re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.splitlines() if line.startswith("watchword run ")]


@pytest.fixture(scope="module")
def depot():
    with reachable_folder("pages") as folder, running(nginx_depot(folder, "intranet.example")) as server:
        depot = server.depot
        for name in ["report.pdf", "index.html"]:
            (depot.folder / name).write_text(browser.PAGE)
        depot.python_package("requests")
        depot.npm_package("left-pad")
        image = folder / "hello"
        (image / "DEBIAN").mkdir(parents=True)
        control = "Package: hello\nVersion: 1.0\nArchitecture: all\nMaintainer: x <x@x.example>\nDescription: x\n"
        (image / "DEBIAN" / "control").write_text(control)
        subprocess.run(["dpkg-deb", "--build", image, depot.folder / "deb" / "hello.deb"], check=True, capture_output=True)
        content = (depot.folder / "deb" / "hello.deb").read_bytes()
        (depot.folder / "deb" / "Packages").write_text(
            f"{control}Filename: ./hello.deb\nSize: {len(content)}\nSHA256: {hashlib.sha256(content).hexdigest()}\n")
        depot.publish()
        yield server


@pytest.fixture(scope="module")
def images():
    with reachable_folder("page-registry") as folder, running(field_servers.open_registry(folder)) as server:
        image = field_servers.Image(folder / "image", size=1000)
        subprocess.run(["sh", "-c", image.push_and_pull(f"127.0.0.1:{server.port}/demo:latest", folder / "back")], check=True)
        yield server


def settings(folder):
    """The configuration of the programs, by which they fetch from the hosts of the documents without TLS."""
    (folder / "apt").mkdir()
    (folder / "apt" / "sources.list").write_text("deb [trusted=yes] http://intranet.example/deb ./\n")
    for name in ["state/lists/partial", "cache/archives/partial"]:
        (folder / "apt" / name).mkdir(parents=True)
    (folder / "apt.conf").write_text(
        f'Dir::Etc::sourcelist "{folder}/apt/sources.list"; Dir::Etc::sourceparts "-"; Dir::State "{folder}/apt/state";\n'
        f'Dir::Cache "{folder}/apt/cache"; Acquire::Retries "0"; APT::Sandbox::User "root";\n')
    (folder / ".config" / "containers").mkdir(parents=True)
    (folder / ".config" / "containers" / "registries.conf").write_text('[[registry]]\nlocation = "registry.example"\ninsecure = true\n')
    (folder / "bin").mkdir()
    visit = browser.command("http://intranet.example/", folder / "profile").replace(find("chromium"), f"{find('chromium')} \"$@\"")
    for name, text in {"chromium": visit, "watchword": f"exec {os.path.realpath(program('watchword'))} \"$@\""}.items():
        executable((folder / "bin" / name), f"#!/bin/sh\n{text}\n")
    return {
        "PATH": f"{folder}/bin:{os.environ['PATH']}", "HOME": str(folder), "APT_CONFIG": f"{folder}/apt.conf",
        "PIP_INDEX_URL": "http://intranet.example/simple", "PIP_TRUSTED_HOST": "intranet.example", "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "npm_config_registry": "http://intranet.example/", "npm_config_audit": "false", "npm_config_update_notifier": "false",
        "GIT_TERMINAL_PROMPT": "0"}


def before(page, folder, work):
    """Supplies the files that the commands of a page need."""
    if page == "java":
        (folder / "Program.java").write_text(PROGRAM)
        for command in [["javac", "-d", work, folder / "Program.java"], ["jar", "cfe", "program.jar", "Program", "Program.class"]]:
            subprocess.run([str(word) for word in command], cwd=work, check=True, capture_output=True)


@pytest.mark.tier3("nine programs, most of which test_front_programs.py starts, too")
@pytest.mark.parametrize("page", RESULTS)
def test_the_commands_of_a_page(page, stage, depot, images, tmp_path):
    password = stage.secret()

    def redirect(request):
        """All names are those of servers here."""
        url = urllib.parse.urlsplit(request.target)
        port = images.port if url.hostname == "registry.example" else depot.port
        request.target = url._replace(netloc=f"127.0.0.1:{port}").geturl()

    check = NtlmCheck(tmp_path, {"alice": password}, proxy=True, handler=redirect)
    proxy = stage.server(ForwardProxy(lambda request: response(403) if request.method == "CONNECT" else check(request)))
    broker = stage.configured(f'[proxy]\nurl = "{proxy.url}"\n[schemes]\nntlm = ["127.0.0.1"]\n')
    asked = stage.agent(password_answer("alice", password, domain="TESTDOM"), broker).asked
    work = tmp_path / "work"
    work.mkdir()
    environment = settings(tmp_path) | {"WATCHWORD_SOCKET": broker.socket}
    before(page, tmp_path, work)
    listed = commands(page)
    if page == "apt":  # the last command fills the lists, which the first one needs
        listed.reverse()
    done = subprocess.run(
        ["sh", "-e", "-c", "\n".join(listed)], cwd=work, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done
    assert RESULTS[page] in done.stdout or (pathlib.Path(work) / RESULTS[page]).exists(), done
    assert len(asked) == 1 and check.served, "all requests go through the proxy"


def test_every_page_is_short_listed_and_run():
    assert sorted(RESULTS) == sorted(path.stem for path in PAGES.iterdir()) and all(commands(page) for page in RESULTS)
    assert all(len(path.read_text().split()) <= 300 for path in PAGES.iterdir()), "a page is short"
    overview = (ROOT / "contrib/docs/unchanged-programs.md").read_text()
    assert [page for page in RESULTS if f"programs/{page}.md" not in overview] == []


