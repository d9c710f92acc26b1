"""requests, httpx and keyring with the broker: the behaviour that their users rely on is unchanged."""
import asyncio
import hashlib
import io
import os
import shutil
import subprocess
import sys
import threading

import httpx
import keyring.errors
import pytest
import requests

from rig.bodies import eventually
from rig.clients import BINARY, CLIENTS, LARGE, login, run, site  # noqa: F401
from rig.languages import built
from rig.scripted import response
from rig.tls import TlsServer

from watchword import BrokerError, Watchword  # noqa: E402
from watchword import _adapting  # noqa: E402
from watchword.httpx_transport import AsyncWatchwordTransport, InsecureRedirect, WatchwordTransport  # noqa: E402
from watchword.keyring_backend import PasswordNotHandedOut, WatchwordKeyring  # noqa: E402
from watchword.requests_adapter import WatchwordAdapter  # noqa: E402
from watchword import requests_adapter  # noqa: E402


def mounted(site, answer=None, **params):
    session = requests.Session()
    session.trust_env = False
    for scheme in ("http://", "https://"):
        session.mount(scheme, WatchwordAdapter(answer, site.broker_path, **params))
    return session


@pytest.fixture
def session(site):
    with mounted(site, site.log_in) as session:
        yield session


@pytest.fixture
def client(site):
    with httpx.Client(transport=WatchwordTransport(site.log_in, site.broker_path), timeout=None) as client:
        yield client


def digest(data):
    return hashlib.sha256(data).hexdigest()


# requests

def test_requests_gets_real_responses(site, session):
    page = session.get(site.url + "/page", params={"a": "b c"})
    assert (page.status_code, page.text, page.reason, page.ok) == (200, "staff page\n", "OK", True)
    assert page.url == site.url + "/page?a=b+c" and page.headers["content-type"] == "text/plain"
    assert page.watchword["auth"]["source"] == "client"
    assert session.get(site.url + "/binary").content == BINARY
    assert session.get(site.url + "/large").content == LARGE
    assert session.get(site.url + "/packed").text == "packed page\n"
    assert session.head(site.url + "/large").headers["Content-Length"] == str(len(LARGE))
    with pytest.raises(requests.HTTPError):
        session.get(site.url + "/open/refuse").raise_for_status()


def test_requests_keeps_its_cookies_and_repeated_headers(site, session):
    cookies = session.get(site.url + "/cookies")
    assert cookies.headers["Set-Cookie"] == "a=1; Path=/, b=2; Path=/"
    assert cookies.cookies.get_dict() == session.cookies.get_dict() == {"a": "1", "b": "2"}
    assert session.get(site.url + "/echo").json()["cookie"] == "a=1; b=2"


def test_requests_sends_bodies_of_every_kind(site, session, tmp_path):
    (tmp_path / "large").write_bytes(LARGE)
    with open(tmp_path / "large", "rb") as file:
        sized = session.put(site.url + "/echo", data=file).json()
    assert (sized["sized"], sized["sha256"]) == (str(len(LARGE)), digest(LARGE))
    parts = session.post(site.url + "/echo", data=(part for part in [b"one", b"two"])).json()
    assert (parts["sized"], parts["sha256"]) == (None, digest(b"onetwo"))
    assert session.post(site.url + "/echo", data={"a": "\u00e9"}).json()["sha256"] == digest(b"a=%C3%A9")
    assert session.post(site.url + "/echo", json={"a": 1}).json()["type"] == "application/json"
    files = session.post(site.url + "/echo", files={"file": ("large", LARGE)}).json()
    assert files["type"].startswith("multipart/form-data; boundary=") and files["length"] > len(LARGE)
    assert session.post(site.url + "/echo", data=LARGE).json()["sha256"] == digest(LARGE)


def test_requests_streams_while_the_body_is_on_its_way(site, session):
    with session.get(site.url + "/slow", stream=True) as response:
        parts = response.iter_content(None)
        assert next(parts) == b"first"
        site.release.set()
        assert b"".join(parts) == b"second"
    site.release.clear()
    with session.get(site.url + "/slow", stream=True) as response:
        assert next(response.iter_content(None)) == b"first"
    assert site.given_up.wait(30), "closing the response has not ended the fetch"
    assert session.get(site.url + "/page").ok


def test_requests_follows_redirects_itself_and_each_is_decided_again(site, session, stage):
    other = stage.server(type(site)("bob", stage.secret()))
    site.other = other.url
    answers = iter([("bob", site.password), None])
    with mounted(site, lambda challenge: next(answers)) as session:
        page = session.get(site.url + "/redirect", headers={"X-Mine": "1"})
    assert [step.status_code for step in page.history] == [302] and page.url == other.url + "/page"
    assert page.status_code == 401 and all(user is None for _, _, user in other.seen)


def test_requests_credentials_go_to_the_broker_and_not_into_a_header(site):
    with mounted(site) as session:
        # The login is not sent before the server has requested it.
        assert session.get(site.url + "/open/echo", auth=("bob", site.password)).ok
        page = session.get(site.url + "/page", auth=("bob", site.password))
        assert page.ok and page.watchword["auth"] == {"authenticationMethod": "httpBasic", "source": "explicit", "user": "bob"}
        assert [user for _, _, user in site.seen] == [None, None, site.right]
        assert session.get(site.url.replace("//", f"//bob:{site.password}@") + "/echo").ok


def test_errors_have_the_types_of_requests(site, session, tmp_path):
    for wanted, ask in [
            (requests.ConnectionError, lambda: session.get("http://127.0.0.1:1/")),
            (requests.exceptions.ReadTimeout, lambda: session.get(site.url + "/silent", timeout=0.5)),
            (requests.exceptions.SSLError, lambda: session.get(site.url + "/page", verify=False)),
            (requests.exceptions.ProxyError, lambda: session.get(site.url + "/page", proxies={"http": "127.0.0.1:1"})),
            (requests.exceptions.InvalidHeader, lambda: session.get(site.url, headers={"Authorization": "Basic ?"})),
            (requests.exceptions.ChunkedEncodingError, lambda: session.get(site.url + "/short").content)]:
        with pytest.raises(wanted):
            ask()
    with requests.Session() as lost:
        lost.mount("http://", WatchwordAdapter(path=str(tmp_path / "none.sock")))
        with pytest.raises(requests.ConnectionError, match="none.sock.*watchwordd"):
            lost.get(site.url)


def test_requests_from_many_threads(site, session):
    found = []
    threads = [threading.Thread(target=lambda: found.append(session.get(site.url + "/page").text)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert found == ["staff page\n"] * 8


def insecure_redirect(stage, certificates, site, *fields):
    """An https server that requires a login and then redirects to plain http."""
    fields = fields or (f"Location: {site.url}/open",)
    return stage.server(TlsServer(certificates, "self-signed", handler=lambda request: (
        response(302, b"", *fields) if request.authorization
        else response(401, b"", 'WWW-Authenticate: Basic realm="Staff"'))))


def pinned(server, site):
    """Returns the `tls` parameters of a fetch that accepts this server's certificate."""
    challenges = []
    with Watchword(answer=challenges.append, path=site.broker_path) as broker:
        broker.call("auth/subscribe", mode="everything")
        with pytest.raises(BrokerError, match="certificate"):
            broker.fetch(server.url)
    pin = challenges[0]["protectionSpace"]["serverTrust"]["chain"][0]["spkiSha256"]
    return {"pin": {"type": "trust", "spkiSha256": pin}}


@pytest.mark.parametrize("spelling", [
    "http://", "ht\ttp://", "\thttp://", "ht%74p://", "%68ttp://", "HTTP://", "http:", "ftp://"])
def test_no_redirect_leads_from_https_to_http_after_a_login(stage, site, certificates, spelling):
    target = spelling + site.url.removeprefix("http://") + "/open"
    server = insecure_redirect(stage, certificates, site, f"Location: {target}")
    stage.allow(site.password, server)
    tls = pinned(server, site)
    with mounted(site, site.log_in, tls=tls) as session:
        session.cookies.set("session", "private")
        with pytest.raises(requests_adapter.InsecureRedirect, match="redirects from https to another scheme"):
            session.get(server.url, headers={"X-Private": "1"})
    with httpx.Client(transport=WatchwordTransport(site.log_in, site.broker_path, tls=tls), follow_redirects=True) as client:
        with pytest.raises(InsecureRedirect, match="redirects from https to another scheme"):
            client.get(server.url)
    assert site.seen == []


@pytest.fixture
def detour(stage, site, certificates):
    """An https server whose page, after the login, redirects to another of its pages, which redirects to plain http."""
    def answer(request):
        if request.target == "/next":
            return response(302, b"", f"Location: {site.url}/open")
        if request.authorization:
            return response(302, b"", "Location: /next")
        return response(401, b"", 'WWW-Authenticate: Basic realm="Staff"')

    server = stage.server(TlsServer(certificates, "self-signed", handler=answer))
    stage.allow(site.password, server)
    return server


def test_go_a_redirect_after_the_one_with_the_login_leads_not_to_http_either(site, detour, login, tmp_path_factory):
    language = built("go", tmp_path_factory)
    pin = pinned(detour, site)["pin"]["spkiSha256"]
    done = language.run(detour.url, site.broker_path, login("bob", site.password), [*language.program("redirects"), pin])
    assert done.stdout.decode().split("\n") == ["http 200", "refused", ""], done.stderr.decode()
    assert len(site.seen) == 1


def test_a_redirect_after_the_one_with_the_login_leads_not_to_http_either(site, detour):
    server, tls = detour, pinned(detour, site)
    with mounted(site, site.log_in, tls=tls) as session:
        # Without a login in the chain, the redirect is followed.
        assert session.get(f"{server.url}/next").ok and site.seen
        site.seen.clear()
        with pytest.raises(requests_adapter.InsecureRedirect, match="redirects from https to another scheme"):
            session.get(f"{server.url}/staff/page", headers={"X-Private": "1"})
    with httpx.Client(transport=WatchwordTransport(site.log_in, site.broker_path, tls=tls), follow_redirects=True) as client:
        with pytest.raises(InsecureRedirect, match="redirects from https to another scheme"):
            client.get(f"{server.url}/staff/page")

    async def fetch():
        transport = AsyncWatchwordTransport(site.log_in, site.broker_path, tls=tls)
        async with httpx.AsyncClient(transport=transport, follow_redirects=True) as client:
            await client.get(f"{server.url}/staff/page")

    with pytest.raises(InsecureRedirect, match="redirects from https to another scheme"):
        asyncio.run(fetch())
    assert site.seen == []


@pytest.mark.parametrize("locations, is_insecure", [
    (["http://h/"], True), (["hTTp:/h"], True), (["ht\ttp://h/"], True), (["ht%74p://h/"], True), (["http:\\\\h/"], True),
    ([" http://h/"], True), (["\x01http://h/"], True), (["/page", "http://h/"], True), (["view-source:http://h/"], True),
    (["https://h/"], False), (["HTTPS://h/"], False), (["//h/"], False), (["/a:b"], False), (["?http://h/"], False),
    (["#http:"], False), (["a%20b/c:d"], False), ([""], False), ([], False)])
def test_only_a_target_that_keeps_to_https_however_it_is_read_passes(locations, is_insecure):
    headers = [("Content-Type", "text/html")] + [("location", target) for target in locations]
    assert (_adapting.insecure_target("https://site.example/page", 302, headers) is not None) == is_insecure
    assert _adapting.insecure_target("https://site.example/page", 200, headers) is None
    assert _adapting.insecure_target("http://site.example/page", 302, headers) is None


# httpx

def test_httpx_gets_real_responses(site, client):
    page = client.get(site.url + "/page")
    assert (page.status_code, page.text, page.http_version, page.reason_phrase) == (200, "staff page\n", "HTTP/1.1", "OK")
    assert page.extensions["watchword"]["auth"]["source"] == "client"
    assert client.get(site.url + "/packed").text == "packed page\n"
    assert client.get(site.url + "/binary").content == BINARY and client.get(site.url + "/large").content == LARGE
    cookies = client.get(site.url + "/cookies")
    assert cookies.headers.get_list("set-cookie") == ["a=1; Path=/", "b=2; Path=/"]
    assert dict(client.cookies) == {"a": "1", "b": "2"}
    assert client.get(site.url + "/echo").json()["cookie"] == "a=1; b=2"


def test_httpx_sends_bodies_of_every_kind(site, client):
    assert client.put(site.url + "/echo", content=LARGE).json()["sha256"] == digest(LARGE)
    assert client.post(site.url + "/echo", content=(part for part in [b"one", b"two"])).json()["sha256"] == digest(b"onetwo")
    assert client.post(site.url + "/echo", data={"a": "b"}).json()["sha256"] == digest(b"a=b")
    told = client.post(site.url + "/echo", files={"file": ("large", io.BytesIO(LARGE))}).json()
    assert told["length"] > len(LARGE) and told["sized"] == str(told["length"])


def test_httpx_streams_redirects_and_logs_in(site, client, stage):
    with client.stream("GET", site.url + "/slow") as response:
        parts = response.iter_raw()
        assert next(parts) == b"first"
    assert site.given_up.wait(30)
    site.other = site.url
    page = client.get(site.url + "/redirect", follow_redirects=True)
    assert page.status_code == 200 and [step.status_code for step in page.history] == [302]
    with httpx.Client(transport=WatchwordTransport(path=site.broker_path, auth={"useStorage": False})) as anonymous:
        assert anonymous.get(site.url + "/page").status_code == 401
        assert anonymous.get(site.url + "/page", auth=("bob", site.password)).extensions["watchword"]["auth"]["source"] == "explicit"
        assert anonymous.get(site.url + "/open/echo", auth=("bob", site.password)).status_code == 200
    assert site.seen[-1] == ("GET", "/open/echo", None)


def test_errors_have_the_types_of_httpx(site, client, tmp_path):
    for wanted, ask in [
            (httpx.ConnectError, lambda: client.get("http://127.0.0.1:1/")),
            (httpx.ReadTimeout, lambda: client.get(site.url + "/silent", timeout=0.5)),
            (httpx.LocalProtocolError, lambda: client.get(site.url, headers={"Authorization": "Basic ?"})),
            (httpx.ReadError, lambda: client.get(site.url + "/short"))]:
        with pytest.raises(wanted):
            ask()
    assert client.get(site.url + "/page").status_code == 200
    with httpx.Client(transport=WatchwordTransport(path=str(tmp_path / "none.sock"))) as lost:
        with pytest.raises(httpx.ConnectError, match="none.sock.*watchwordd"):
            lost.get(site.url)


def test_httpx_with_asyncio(site):
    async def pieces():
        yield b"one"
        yield b"two"

    async def use():
        transport = AsyncWatchwordTransport(site.log_in, site.broker_path)
        async with httpx.AsyncClient(transport=transport, timeout=None) as client:
            pages = await asyncio.gather(*(client.get(f"{site.url}/page?{number}") for number in range(80)))
            sent = (await client.put(site.url + "/echo", content=pieces())).json()
            large = (await client.get(site.url + "/large")).content
            async with client.stream("GET", site.url + "/slow") as response:
                async for part in response.aiter_raw():
                    break
            assert await asyncio.to_thread(site.given_up.wait, 30)
            with pytest.raises(httpx.ConnectError):
                await client.get("http://127.0.0.1:1/")
            with pytest.raises(httpx.ReadTimeout):
                await client.get(site.url + "/silent", timeout=0.5)
            task = asyncio.ensure_future(client.get(site.url + "/silent?2"))
            await asyncio.to_thread(eventually, lambda: "/silent?2" in site.begun, "the server has received no request")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(eventually, lambda: "/silent?2" in site.ended_early, "the fetch has not ended")
            assert transport._room._value == 60
            return pages, sent["sha256"], large == LARGE, part

    pages, *rest = run(use())
    assert {page.text for page in pages} == {"staff page\n"} and rest == [digest(b"onetwo"), True, b"first"]


# keyring

def test_keyring_stores_logins_for_fetches_and_releases_none(site):
    backend = WatchwordKeyring(site.broker_path, persistence="forSession")
    assert backend.get_password(site.url, "bob") is None and backend.get_credential(site.url, None) is None
    backend.set_password(site.url + "/simple/", "bob", site.password)
    with Watchword(path=site.broker_path) as broker:
        page = broker.fetch(site.url + "/page")
        assert page["status"] == 200 and page["auth"]["user"] == "bob"
    for ask in (lambda: backend.get_password(site.url, "bob"), lambda: backend.get_credential(site.url, None)):
        with pytest.raises(PasswordNotHandedOut, match="credentials.hand-out.*requests_adapter") as caught:
            ask()
        assert site.password not in str(caught.value)
    with pytest.raises(keyring.errors.PasswordDeleteError, match="alice"):
        backend.delete_password(site.url, "alice")
    backend.delete_password(site.url, "bob")
    with Watchword(path=site.broker_path) as broker:
        assert broker.fetch(site.url + "/page")["status"] == 401


def test_keyring_releases_the_passwords_that_the_configuration_lists(stage):
    program = os.path.realpath(sys.executable)
    broker = stage.configured(f'[credentials]\nhand-out = ["{program} pypi.example"]\n')
    backend = WatchwordKeyring(broker.socket, persistence="forSession")
    assert backend.get_password("https://pypi.example/simple/", "bob") is None
    for user, password in [("bob", "released-1"), ("amy", "released-2")]:
        backend.set_password("https://pypi.example/simple/", user, password)
        backend.set_password("https://other.example/", user, password)
    assert backend.get_password("pypi.example", "amy") == "released-2"
    found = backend.get_credential("https://pypi.example", None)
    assert (found.username, found.password) == ("bob", "released-1")
    with pytest.raises(PasswordNotHandedOut, match="other.example"):
        backend.get_password("https://other.example/", "bob")
    with Watchword(path=broker.socket) as client:
        client.call("broker/lock")
    with pytest.raises(keyring.errors.KeyringLocked):
        backend.get_password("pypi.example", "amy")


def test_keyring_reports_obstacles(site, tmp_path):
    # There is no keyring on this bus.
    with pytest.raises(keyring.errors.PasswordSetError):
        WatchwordKeyring(site.broker_path).set_password(site.url, "bob", site.password)
    with pytest.raises(keyring.errors.KeyringError, match="none.sock"):
        WatchwordKeyring(str(tmp_path / "none.sock")).get_password(site.url, "bob")
    with pytest.raises(keyring.errors.KeyringError, match="neither an http"):
        WatchwordKeyring(site.broker_path).get_password("ftp://h/", "bob")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The package as pip installs it, from a copy, because building writes into the source folder."""
    folder = tmp_path_factory.mktemp("pip")
    shutil.copytree(CLIENTS / "python", folder / "source", ignore=shutil.ignore_patterns("__pycache__"))
    done = subprocess.run(
        ["/usr/bin/python3", "-m", "pip", "install", "-q", "--no-index", "--no-build-isolation", "--no-deps", "--no-compile",
         "--disable-pip-version-check", "--root-user-action=ignore", "--target", folder / "site", folder / "source"],
        capture_output=True, text=True, env={"HOME": str(folder), "PATH": "/usr/bin:/bin"})
    assert done.returncode == 0, done.stderr
    return folder / "site"


def test_keyring_is_available_only_on_request(site, installed, tmp_path):
    assert (installed / "watchword" / "py.typed").exists()
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(installed),
                   "WATCHWORD_SOCKET": site.broker_path, "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nonexistent"}
    # The selected backend, those that it chains to, and all available ones.
    script = """import keyring
used = keyring.get_keyring()
for found in [used], getattr(used, "backends", []), keyring.backend.get_all_keyring():
    print(*(type(one).__name__ for one in found))"""

    def show(**more):
        done = subprocess.run(["/usr/bin/python3", "-c", script], env={**environment, **more}, capture_output=True, text=True)
        return [line.split() for line in done.stdout.split("\n")]

    used, _, known, _ = show(PYTHON_KEYRING_BACKEND="watchword.keyring_backend.WatchwordKeyring")
    assert used == ["WatchwordKeyring"] and "WatchwordKeyring" in known
    used, chain, known, _ = show()
    assert "WatchwordKeyring" not in used + chain and "WatchwordKeyring" in known
