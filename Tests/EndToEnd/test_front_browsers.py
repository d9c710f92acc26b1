"""Chromium, unchanged, with fronts: it logs in without knowing it, and web pages cannot use it against the user."""
import pathlib

import pytest

from rig import audit, browser, servers
from rig.bodies import eventually
from rig.client import password_answer
from rig.depots import nginx_depot
from rig.fixtures import reachable_folder, running
from rig.forwarding import ForwardProxy, Socks5Server
from rig.local_fronts import open_proxy, open_site, run
from rig.scripted import ScriptedServer, response
from rig.servers import free_port


@pytest.fixture(scope="module")
def origin():
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


def test_through_a_proxy_with_ntlm(stage, origin, ntlm_proxy, ntlm_users, tmp_path):
    broker = stage.configured(f'[proxy]\nurl = "http://127.0.0.1:{ntlm_proxy.port}"\n[schemes]\nntlm = ["127.0.0.1"]\n')
    asked = stage.agent(password_answer("alice", ntlm_users["alice"], domain="TESTDOM"), broker).asked
    assert loads_the_page(broker, f"{origin}/", tmp_path)
    assert len(asked) == 1 and asked[0]["protectionSpace"]["isProxy"], asked
    assert {user for _, _, user in ntlm_proxy.handler.served} == {"TESTDOM\\alice"}


def test_through_a_proxy_with_kerberos(stage, origin, squid, realm, kerberos_users, tmp_path):
    broker = stage.configured(
        f'[proxy]\nurl = "{squid.url("negotiate")}"\n[schemes]\nnegotiate = ["localhost"]\n',
        environment=realm.log_in("alice", kerberos_users["alice"]))
    asked = stage.agent({"action": "cancel"}, broker).asked
    assert loads_the_page(broker, f"{origin}/", tmp_path)
    assert asked == [], "the tickets suffice"


def test_at_a_server_with_digest(stage, account, tmp_path):
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
