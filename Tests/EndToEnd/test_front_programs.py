"""Unchanged programs, skopeo and Chromium behind an authenticating proxy, and at a server with Digest: they log in with one question, and web
pages cannot use it against the user."""
import concurrent.futures
import pathlib

import pytest

from rig import audit, browser, field_servers, servers
from rig.bodies import eventually
from rig.client import password_answer
from rig.depots import Depot, nginx_depot
from rig.fixtures import reachable_folder, running
from rig.forwarding import ForwardProxy, Socks5Server
from rig.local_fronts import open_proxy, open_site, run
from rig.scripted import ScriptedServer, response
from rig.servers import free_port

PROGRAMS = ["curl", "wget", "git", "pip", "apt", "npm", "java"]


@pytest.fixture(scope="module")
def origin():
    with reachable_folder("depot") as folder, running(nginx_depot(folder, "intranet.test")) as server:
        yield server.depot


def fetch_with_all(broker, depot, folder):
    """Runs all programs at the same time, each with `watchword run`; returns the output of those that failed."""
    commands = depot.programs(folder)
    assert list(commands) == PROGRAMS

    def start(name):
        command, file = commands[name]
        done = run(broker, "sh", "-c", command, seconds=120, environment={"HOME": str(folder), "GIT_TERMINAL_PROMPT": "0"})
        found = done.returncode == 0 and (pathlib.Path(folder) / file).exists()
        return None if found else f"{name}: {done.returncode} {done.stdout[-300:]} {done.stderr[-600:]}"

    with concurrent.futures.ThreadPoolExecutor(len(commands)) as pool:
        return [problem for problem in pool.map(start, commands) if problem]


@pytest.fixture(params=["NTLM", "Kerberos"])
def behind(request, stage):
    """The agent of a broker behind a proxy with this scheme, which asks alice at most once, whatever the programs do."""
    fixture = request.getfixturevalue
    if request.param == "NTLM":
        proxy, users = fixture("ntlm_proxy"), fixture("ntlm_users")
        broker = stage.configured(f'[proxy]\nurl = "http://127.0.0.1:{proxy.port}"\n[schemes]\nntlm = ["127.0.0.1"]\n')
        agent = stage.agent(password_answer("alice", users["alice"], domain="TESTDOM"), broker)
    else:
        broker = stage.configured(
            f'[proxy]\nurl = "{fixture("squid").url("negotiate")}"\n[schemes]\nnegotiate = ["localhost"]\n',
            environment=fixture("realm").log_in("alice", fixture("kerberos_users")["alice"]))
        agent = stage.agent({"action": "cancel"}, broker)
    agent.broker = broker
    yield agent
    if request.param == "NTLM":
        assert len(agent.asked) == 1 and agent.asked[0]["protectionSpace"]["isProxy"], "one question for all programs"
        assert {user for _, _, user in proxy.handler.served} == {"TESTDOM\\alice"}
    else:
        assert agent.asked == [], "the tickets suffice"


def test_through_a_proxy(behind, origin, tmp_path):
    assert fetch_with_all(behind.broker, origin, tmp_path) == []


def test_at_a_server_with_digest(stage, account, tmp_path):
    with reachable_folder("digest-depot") as folder, running(servers.apache_digest(folder, *account)) as server:
        depot = Depot(pathlib.Path(folder) / "www" / "private" / "depot", f"http://127.0.0.1:{server.port}/private/depot")
        broker = stage.broker()
        asked = stage.agent(password_answer(*account), broker).asked
        assert fetch_with_all(broker, depot, tmp_path) == []
        assert len(asked) == 1 and asked[0]["protectionSpace"]["authenticationMethod"] == "httpDigest"


def test_a_tunnel_through_a_proxy_with_a_login_reaches_the_server_unchanged(stage, squid, account, tls, nginx_tls):
    broker = stage.configured(f'[proxy]\nurl = "{squid.url("digest")}"\n[front]\ntunnel-ports = [{nginx_tls.port}]\n')
    asked = stage.agent(password_answer(*account), broker).asked
    for _ in range(2):
        done = run(broker, "curl", "-sS", "--cacert", str(tls / "ca.pem"), f"https://localhost:{nginx_tls.port}/open.txt")
        assert done.stdout == b"open page\n", done
    assert len(asked) == 1 and asked[0]["protectionSpace"]["isProxy"]


def test_python_requests_and_urllib(stage, origin, ntlm_proxy, ntlm_users):
    broker = stage.configured(f'[proxy]\nurl = "http://127.0.0.1:{ntlm_proxy.port}"\n[schemes]\nntlm = ["127.0.0.1"]\n')
    stage.agent(password_answer("alice", ntlm_users["alice"], domain="TESTDOM"), broker)
    for script in ["import requests; print(requests.get('{}').text, end='')",
                   "import urllib.request; print(urllib.request.urlopen('{}').read().decode(), end='')"]:
        done = run(broker, "/usr/bin/python3", "-c", script.format(f"{origin.url}/page.txt"))
        assert done.stdout == b"the page\n", done


@pytest.fixture(scope="module")
def images():
    with reachable_folder("registry") as folder, running(field_servers.open_registry(folder)) as server:
        yield server


@pytest.fixture
def image(tmp_path):
    return field_servers.Image(tmp_path / "image")


def push_and_pull(broker, image, host, folder):
    """Does it with two programs at the same time; into one repository, the registry could not (500). skopeo reaches addresses of this machine without a proxy, so the host is a name."""
    commands = [image.push_and_pull(f"{host}/{tag}:demo", folder / f"back-{tag}") for tag in ["one", "two"]]
    done = run(broker, "sh", "-c", f"({commands[0]}) & {commands[1]}; done=$?; wait $! && exit $done", seconds=120, environment={"HOME": str(folder)})
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    for tag in ["one", "two"]:
        assert field_servers.content(folder / f"back-{tag}") == image.content


def test_an_image_through_a_proxy(behind, images, image, tmp_path):
    push_and_pull(behind.broker, image, f"intranet.test:{images.port}", tmp_path)
    assert {one["requester"]["subject"] for one in behind.asked} <= {"exe:/usr/bin/skopeo"}


def test_at_a_registry_with_digest(stage, images, image, account, tmp_path):
    with reachable_folder("registry-gate") as folder, running(field_servers.apache_digest_gate(folder, images, *account)) as gate:
        broker = stage.broker()
        asked = stage.agent(password_answer(*account), broker).asked
        push_and_pull(broker, image, f"registry.localhost:{gate.port}", tmp_path)
        assert len(asked) == 1 and asked[0]["protectionSpace"]["authenticationMethod"] == "httpDigest", asked
        stored = [line.split()[1:3] for line in gate.wait_for_log(" PUT ").splitlines() if line.startswith("201 ")]
        assert [account[0], "PUT"] in stored


@pytest.fixture(scope="module")
def page_origin():
    """A public server with a page, by the name that proxies know."""
    with reachable_folder("browser") as folder, running(nginx_depot(folder, "intranet.test")) as server:
        (server.depot.folder / "index.html").write_text(browser.PAGE)
        yield server.depot.url


def loads_the_page(broker, url, folder, text="the page"):
    """Whether curl gets a page at `url`, and Chromium then shows the one there with what its script has fetched."""
    both = f"curl -sS -f -o {folder}/curl {url}page.txt && {browser.through_front(url, folder / 'profile')}"
    done = run(broker, "sh", "-c", both, seconds=120, environment={"HOME": str(folder)})
    assert done.returncode == 0 and browser.title(done.stdout.decode()) == text, done
    return (pathlib.Path(folder) / "curl").read_text() == f"{text}\n"


def test_a_browser_through_a_proxy(behind, page_origin, tmp_path):
    assert loads_the_page(behind.broker, f"{page_origin}/", tmp_path)


def test_a_browser_at_a_server_with_digest(stage, account, tmp_path):
    with reachable_folder("browser-digest") as folder, running(servers.apache_digest(folder, *account)) as server:
        (folder / "www" / "private" / "index.html").write_text(browser.PAGE)
        broker = stage.broker()
        asked = stage.agent(password_answer(*account), broker).asked
        assert loads_the_page(broker, f"http://127.0.0.1:{server.port}/private/", tmp_path, text="private page")
        assert len(asked) == 1 and asked[0]["protectionSpace"]["authenticationMethod"] == "httpDigest", asked


# Web pages against the user

@pytest.fixture
def intranet(stage):
    """A server whose page only bob may see, a broker that knows his password, and one of its clients."""
    server, password = stage.protected(body=b"<title>for bob</title>")

    def start(*configuration, url=server.url, also=()):
        for other in also:
            stage.allow(password, other)
        broker = stage.configured(*configuration) if configuration else stage.broker()
        client = stage.client(broker=broker, answer=lambda challenge: password_answer("bob", password))
        assert client.fetch(url)["result"]["status"] == 200
        server.requests.clear()
        return client

    server.start = start
    return server


def refusals(broker):
    return [event["reason"] for event in audit.events(broker) if event["kind"] == "frontRequest"]


@pytest.mark.tier3("starts Chromium several times; test_front_attacks.py sends the same fields")
def test_a_page_of_another_site_cannot_use_the_front_of_a_site(stage, intranet):
    host, port = open_site(intranet.start(), intranet.url)
    target = f"http://{host}:{port}/"
    assert browser.title(browser.show(target)) == "for bob", "the browser reaches the front"
    intranet.requests.clear()
    before = len(refusals(stage.brokers[0]))
    attempts = ["simple", "read", "post", "preflight", "image", "frame", "socket"]
    evil = stage.server(browser.Attacker(target, *attempts))
    for name in ["127.0.0.1", "localhost"]:
        report = evil.attack(f"http://{name}:{evil.port}/")
        assert report == "simple=opaque read=failed post=opaque preflight=failed image=error frame=load socket=error"
    assert not intranet.requests, "nothing reaches the site"
    # Refusals of one process are recorded once a minute.
    eventually(lambda: len(refusals(stage.brokers[0])) >= before + 2, lambda: refusals(stage.brokers[0]))
    assert set(refusals(stage.brokers[0])[before:]) == {"foreign-page"}
    victim = stage.server(ScriptedServer(lambda request: response(200, b"page")))
    evil = stage.server(browser.Attacker(f"{victim.url}/", *attempts))
    evil.attack(evil.url)
    assert {request.target for request in victim.requests} >= {f"/{name}" for name in attempts}, "a server without a front is reached"


class Rebinding(Socks5Server):
    """Resolves `rebound.test` as an attacker's name server does: first to the attacker, and to this machine once the page was
    loaded. Chromium also connects to hosts of its vendor."""

    def __init__(self, attacker):
        self.attacker = attacker
        super().__init__()

    def destination(self, host, port):
        return self.attacker.port if host == "rebound.test" and not self.attacker.requests else port


@pytest.mark.tier3("starts Chromium several times; test_front_attacks.py sends the same fields")
def test_a_name_that_is_rebound_to_this_machine_cannot_use_a_front(stage, intranet):
    """The page and its request have the same origin, so the browser marks the request in no way."""
    _, front = open_site(intranet.start(), intranet.url)
    victim = stage.server(ScriptedServer(lambda request: response(200, b"page")))  # it does not look at the name
    for port, report in [(front, "read=basic403 frame=load"), (victim.port, "read=basic200page frame=load")]:
        target = f"http://rebound.test:{port}/"
        evil = stage.server(browser.Attacker(target, "read", "frame"))
        socks = stage.server(Rebinding(evil))
        assert evil.attack(target, f"--proxy-server=socks5://127.0.0.1:{socks.port}") == report
    assert not intranet.requests
    assert set(refusals(stage.brokers[0])) == {"wrong-name"}


@pytest.mark.tier3("starts Chromium several times; test_front_attacks.py sends the same fields")
def test_a_page_cannot_use_a_proxy_by_its_address(stage, intranet):
    (host, port), _ = open_proxy(intranet.start())
    evil = stage.server(browser.Attacker(f"http://{host}:{port}/", "simple", "read", "post", "socket"))
    assert evil.attack(evil.url) == "simple=opaque read=failed post=opaque socket=error"
    assert not intranet.requests and set(refusals(stage.brokers[0])) == {"not-for-proxy"}


@pytest.mark.tier3("starts Chromium several times; test_front_attacks.py sends the same fields")
def test_marked_requests_of_a_page_use_no_login_through_the_proxy_of_the_browser(stage, intranet):
    """Chromium marks a request to a plain http site only by `Origin`, and images not at all."""
    upstream, port = stage.server(ForwardProxy()), free_port()
    url = f"http://intranet.test:{intranet.port}/"
    intranet.start(
        f'[proxy]\nurl = "{upstream.url}"\n[front]\nproxy = "127.0.0.1:{port}"\nhosts = ["evil.test", "intranet.test"]\n', url=url, also=[upstream])
    through = f"--proxy-server=127.0.0.1:{port}"
    assert browser.title(browser.show(url, through)) == "for bob"
    intranet.requests.clear()
    evil = stage.server(browser.Attacker(url, "read", "post", "preflight"))
    assert evil.attack(f"http://evil.test:{evil.port}/", through) == "read=failed post=opaque preflight=failed"
    assert {request.target for request in intranet.requests} >= {"/read", "/post"}
    assert {request.authorization for request in intranet.requests} == {None}
