"""Logins in a browser at authorization servers that are broken, slow or hostile: what happens with each answer, and that each wait ends."""
import time

import pytest

from rig.bodies import eventually
from rig.login_sites import Site, failure, held_login, is_closed, log_in, logged_in, login_url, started, statuses
from rig.oauth_answers import CLOSE, SILENT, dated, endless, error, huge, json_answer, page, slowly


@pytest.fixture
def site(stage):
    return Site(stage)


@pytest.fixture
def client(stage, site):
    return stage.client(broker=site.broker())


def text_is_plain(text):
    """Whether a terminal shows the text as it is."""
    return all(character.isprintable() or character == "\n" for character in text)


# Tokens

UNUSABLE = {
    "mac": {"token_type": "mac"}, "dpop": {"token_type": "DPoP"}, "n_a": {"token_type": "N_A"}, "escape": {"token_type": "\u001b[2Jx"},
    "no token": {"access_token": None}, "empty": {"access_token": ""}, "space": {"access_token": "a b"},
    "line": {"access_token": "a\r\nX-Injected: 1"}, "nul": {"access_token": "a\u0000"}, "accent": {"access_token": "é"}, "tab": {"access_token": "a\tb"},
    "quote": {"access_token": 'a"b'}, "number": {"access_token": 5}, "list": {"access_token": ["x"]}, "object": {"access_token": {"a": "x"}},
    "long": {"access_token": "x" * 200_000}, "null": {"access_token": lambda _: None}, "type 5": {"token_type": 5},
    "type list": {"token_type": ["mac"]}, "type object": {"token_type": {"a": 1}}, "type true": {"token_type": True}}


@pytest.mark.parametrize("name", UNUSABLE)
def test_an_unusable_token_is_not_used(site, client, name):
    site.server.config(token_response=UNUSABLE[name])
    call = started(client, site.url)
    _, shown = log_in(client)
    message = failure(client, call[0])
    assert text_is_plain(message) and shown.status == 400 and site.sent_tokens() == [None]
    assert text_is_plain(site.stage.brokers[0].log), site.stage.brokers[0].log
    assert client.challenges.empty() and len(site.token_requests()) == 1


REPLIES = {
    "html": page(200, "hello"), "empty": dated(200), "list": json_answer(200, [1]), "text": json_answer(200, "x"), "deep": dated(200, b"[" * 100_000),
    "huge": huge({"access_token": "x", "token_type": "bearer"}, 2 << 20), "endless": endless, "error": json_answer(200, {"error": "\u001b[2J"}),
    "500": dated(500), "503": dated(503, b"", "Retry-After: 1"), "429": dated(429), "204": dated(204), "400": dated(400), "403": error("invalid_code", 403),
    "cut": b"HTTP/1.1 200 X\r\nContent-Length: 100\r\n\r\n{", "utf-8": dated(200, b'{"access_token":"\xff","token_type":"bearer"}'), "garbage": b"\x00\x01\r\n\r\n",
    "twice": dated(200, b'{"access_token":"a","access_token":"b","token_type":"bearer"}')}


@pytest.mark.tier3
@pytest.mark.parametrize("name", REPLIES)
def test_a_broken_reply_to_a_code_ends_the_login(site, client, name):
    site.server.fail("/token", REPLIES[name])
    call = started(client, site.url)
    _, shown = log_in(client)
    reply = client.wait(call[0], 40)
    assert "error" in reply and text_is_plain(reply["error"]["message"]), reply
    assert shown.status == 400 and site.sent_tokens() == [None] and len(site.token_requests()) == 1 and client.challenges.empty()
    assert text_is_plain(site.stage.brokers[0].log)


def test_with_a_right_id_token_openid_is_logged_in(stage):
    site = Site(stage, scopes=["openid", "read"])
    site.server.config(id_token={"aud": ["other", "watchword"]})
    client = stage.client(broker=site.broker())
    logged_in(client, site)
    site.server.revoke_access()
    assert client.fetch(site.url)["result"]["status"] == 200 and client.challenges.empty()


@pytest.mark.parametrize("value", [None, "3600", "x", 1e30, 1.5, True, [3600]])
def test_any_lifetime_serves_several_fetches(site, client, value):
    site.server.config(token_response={"expires_in": value})
    logged_in(client, site)
    for _ in range(3):
        assert client.fetch(site.url)["result"]["status"] == 200
    assert client.challenges.empty() and len(site.server.authorizations) == 1
    assert len(site.token_requests()) <= 4


def test_without_a_refresh_token_the_person_is_asked_again_once(site, client):
    site.server.config(refresh_tokens=False)
    logged_in(client, site)
    assert client.fetch(site.url)["result"]["status"] == 200 and client.challenges.empty()
    site.server.revoke_access()
    calls = started(client, site.url, 4)
    log_in(client)
    assert statuses(client, calls) == [200] * 4 and len(site.server.authorizations) == 2 and client.challenges.empty()


# Metadata

METADATA = {
    "html": page(200, "hello"), "empty": dated(200), "list": json_answer(200, []), "deep": dated(200, b'{"a":' * 50_000), "500": dated(500), "closed": CLOSE,
    "endless": endless, "garbage": b"\xff\xff\r\n\r\n", "204": dated(204)}


@pytest.mark.parametrize("place", ["server", "resource"])
@pytest.mark.parametrize("name", METADATA)
def test_broken_metadata_begins_no_login(stage, name, place):
    site = Site(stage, **({"issuer": None} if place == "resource" else {}))
    client = stage.client(broker=site.broker())
    before = stage.brokers[0].resident_kilobytes
    (site.server if place == "server" else site.resource).fail("metadata", METADATA[name])
    reply = client.fetch(site.url, seconds=40)
    assert "error" in reply and text_is_plain(reply["error"]["message"]), reply
    assert client.challenges.empty() and not site.server.authorizations
    assert stage.brokers[0].resident_kilobytes - before < 32 << 10


# The answers of section 6 of the notes on OAuth


def codes(site):
    return [request.form["grant_type"] for request in site.token_requests()]


@pytest.mark.parametrize("answer", [error("invalid_grant"), dated(400)], ids=["for good", "without a reason"])
def test_a_renewal_that_is_refused_asks_once(site, client, answer):
    logged_in(client, site)
    site.server.revoke_access()
    site.server.fail("/token", answer, grant="refresh_token")
    calls = started(client, site.url, 4)
    log_in(client)
    assert statuses(client, calls) == [200] * 4 and client.challenges.empty()
    assert codes(site) == ["authorization_code", "refresh_token", "authorization_code"]


def test_an_unreachable_server_is_named_with_the_step_that_needs_it(stage):
    """The program knows only the resource."""
    site = Site(stage, issuer="http://127.0.0.1:1")
    client = stage.client(broker=site.broker())
    message = failure(client, client.start("fetch/run", {"url": site.url}), "cannotConnect")
    assert message.startswith("cannot log in at http://127.0.0.1:1: cannot connect to 127.0.0.1, port 1;"), message


@pytest.mark.parametrize("code, description", [
    ("access_denied", "<script>alert(1)</script>"), ("server_error", "<script>alert(1)</script>"), ("x" * 5000, "<script>"),
    # As in the redirects of Microsoft Entra ID (AADSTS).
    ("server_error", "AADSTS50020: no <script>.\r\nTrace ID: 1\r\nTimestamp: 2")])
def test_an_error_at_the_login_page_ends_the_login(site, client, code, description):
    site.server.refuse("/authorize", code, description=description)
    call = started(client, site.url)
    _, shown = log_in(client)
    assert shown.status == 400 and b"script" not in shown.body
    message = failure(client, call[0], "challengeCancelled" if code == "access_denied" else "loginFailed")
    assert text_is_plain(message) and len(message) < 1000 and client.challenges.empty()
    assert not site.token_requests()


def test_a_declined_login_ends_the_fetches_that_waited_for_it_only(site, client):
    site.server.config(approves=False)
    calls = started(client, site.url, 3)
    log_in(client)
    for call in calls:
        failure(client, call, "challengeCancelled")
    assert client.challenges.empty() and len(site.server.authorizations) == 1
    client.start("fetch/run", {"url": site.url})
    assert client.challenges.get(timeout=30), "a later fetch begins a login of its own"


# Servers that do not answer


def waits(site, place):
    """The fault of a place, by its name."""
    server = site.resource if place == "resource" else site.server
    server.fail("metadata" if place != "/token" else "/token", SILENT)


@pytest.mark.parametrize("place", ["metadata", "resource"])
def test_the_time_limit_of_a_fetch_holds_while_metadata_is_fetched(stage, place):
    site = Site(stage, **({"issuer": None} if place == "resource" else {}))
    client = stage.client(broker=site.broker())
    waits(site, place)
    before = time.monotonic()
    reply = client.fetch(site.url, timeoutMs=1500)
    assert "error" in reply and 1 < time.monotonic() - before < 6, reply


def test_the_time_limit_of_a_fetch_holds_while_a_token_is_renewed(site, client):
    logged_in(client, site)
    site.server.revoke_access()
    site.server.fail("/token", SILENT)
    before = time.monotonic()
    reply = client.fetch(site.url, timeoutMs=1500)
    assert "error" in reply and time.monotonic() - before < 6, reply
    assert client.challenges.empty()


@pytest.mark.tier3
def test_the_time_limit_of_the_broker_holds_for_a_silent_server(site, client):
    site.server.fail("/token", SILENT)
    call = started(client, site.url)
    before = time.monotonic()
    _, shown = log_in(client, )
    assert shown.status == 400 and time.monotonic() - before < 45
    assert "error" in client.wait(call[0], 45)


@pytest.mark.tier3
@pytest.mark.parametrize("place", ["metadata", "resource", "/token", "login"])
@pytest.mark.parametrize("end", ["cancel", "disconnect", "stop"])
def test_every_wait_ends_with_the_client_and_the_broker(stage, place, end):
    site = Site(stage, **({"issuer": None} if place == "resource" else {}))
    broker = site.broker()
    client = stage.client(broker=broker)
    url = None
    if place == "/token":
        call, challenge, back = held_login(client, site.url)
        site.server.fail("/token", SILENT)
        import threading
        threading.Thread(target=lambda: swallow(back.follow), daemon=True).start()
        site.server.wait_for("/token")
    else:
        if place != "login":
            waits(site, place)
        call = client.start("fetch/run", {"url": site.url})
        if place == "login":
            url = login_url(client.challenges.get(timeout=30))
        else:
            (site.resource if place == "resource" else site.server).wait_for("metadata")
    if end == "cancel":
        client.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": call}})
        assert "error" in client.wait(call, 10)
    elif end == "disconnect":
        client.close()
    else:
        before = time.monotonic()
        assert broker.stop() == 0 and time.monotonic() - before < 10
        return
    if url:
        eventually(lambda: is_closed(url), "the listener is closed", 15)
    other = stage.client(broker=broker)
    assert other.fetch(site.resource.url + "/open")["result"]["status"] == 200


def swallow(action):
    try:
        action()
    except (OSError, Exception):
        pass


def test_a_slow_login_page_of_metadata_is_limited_in_time(site, client):
    site.server.fail("metadata", slowly(b"HTTP/1.1 200 X\r\nContent-Length: 100000\r\n\r\n" + b" " * 1000, 0.2))
    before = time.monotonic()
    assert "error" in client.fetch(site.url, timeoutMs=2000) and time.monotonic() - before < 8


# Clients without a person


def secret_file(stage, secret, mode=0o600):
    path = stage.folder / "client-secret"
    path.write_text(secret + "\n")
    path.chmod(mode)
    return str(path)


@pytest.fixture
def machine(stage, site):
    """A site with the flow client-credentials."""
    secret = stage.secret(site.server)
    site.server.client("machine", secret)
    site.options |= {"flow": "client-credentials", "client-id": "machine", "client-secret-file": secret_file(stage, secret), "scopes": ["read"]}
    site.secret = secret
    return site


def test_client_credentials_ask_nobody(stage, machine):
    client = stage.client(broker=machine.broker())
    assert statuses(client, started(client, machine.url, 5)) == [200] * 5
    assert client.challenges.empty() and len(machine.token_requests()) == 1
    machine.server.revoke_access()
    assert statuses(client, started(client, machine.url, 5)) == [200] * 5
    assert client.challenges.empty() and len(machine.token_requests()) == 2


# Registration


def test_a_client_is_registered_where_that_is_allowed(stage, site):
    site.options |= {"client-id": None, "register": True}
    site.server.config(registration=True)
    client = stage.client(broker=site.broker())
    logged_in(client, site)
    assert site.server.registrations[0]["token_endpoint_auth_method"] == "none" and site.server.authorizations[0]["client_id"].startswith("dyn")
    site.server.revoke_access()
    assert client.fetch(site.url)["result"]["status"] == 200 and len(site.server.registrations) == 1
    site.server.revoke_all()
    calls = started(client, site.url, 3)
    log_in(client)
    assert statuses(client, calls) == [200] * 3 and client.challenges.empty()
