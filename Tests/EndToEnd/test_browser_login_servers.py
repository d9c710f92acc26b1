"""Logins in a browser at authorization servers that are broken, slow or hostile: what happens with each answer, and that each wait ends."""
import threading
import time

import pytest

from rig import tiny_browser
from rig.bodies import eventually
from rig.login_sites import (  # noqa: F401
    Site, client, failure, held_login, is_closed, log_in, logged_in, login_url, site, started, statuses)
from rig.oauth_answers import CLOSE, SILENT, dated, endless, huge, json_answer, slowly


def text_is_plain(text):
    """Whether a terminal shows the text as it is."""
    return all(character.isprintable() or character == "\n" for character in text)


# Tokens

UNUSABLE = {
    "escape": {"token_type": "\u001b[2Jx"}, "line": {"access_token": "a\r\nX-Injected: 1"}, "long": {"access_token": "x" * 200_000},
    "list": {"access_token": ["x"]}, "null": {"access_token": lambda _: None}, "type object": {"token_type": {"a": 1}}}


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
    "deep": dated(200, b"[" * 100_000), "huge": huge({"access_token": "x", "token_type": "bearer"}, 2 << 20), "endless": endless,
    "error": json_answer(200, {"error": "\u001b[2J"}), "503": dated(503, b"", "Retry-After: 1"), "cut": b"HTTP/1.1 200 X\r\nContent-Length: 100\r\n\r\n{",
    "utf-8": dated(200, b'{"access_token":"\xff","token_type":"bearer"}'), "garbage": b"\x00\x01\r\n\r\n",
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


# Metadata

METADATA = {"deep": dated(200, b'{"a":' * 50_000), "500": dated(500), "closed": CLOSE, "endless": endless, "garbage": b"\xff\xff\r\n\r\n"}


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


# Servers that do not answer


WAITS = {"/token": "/token", "device": "/token", "/device_authorization": "/device_authorization"}


def waits(site, place):
    """Makes the server of a place silent."""
    (site.resource if place == "resource" else site.server).fail(WAITS.get(place, "metadata"), SILENT)


@pytest.mark.parametrize("place", ["metadata", "resource", "/token", "slow"])
def test_the_time_limit_of_a_fetch_holds(stage, place):
    site = Site(stage, **({"issuer": None} if place == "resource" else {}))
    client = stage.client(broker=site.broker())
    if place == "/token":
        logged_in(client, site)
        site.server.revoke_access()
    if place == "slow":
        site.server.fail("metadata", slowly(b"HTTP/1.1 200 X\r\nContent-Length: 100000\r\n\r\n" + b" " * 1000, 0.2))
    else:
        waits(site, place)
    before = time.monotonic()
    assert "error" in client.fetch(site.url, timeoutMs=1500) and 1 < time.monotonic() - before < 6 and client.challenges.empty()


@pytest.mark.tier3
def test_the_time_limit_of_the_broker_holds_for_a_silent_server(site, client):
    site.server.fail("/token", SILENT)
    call = started(client, site.url)
    before = time.monotonic()
    _, shown = log_in(client)
    assert shown.status == 400 and time.monotonic() - before < 45
    assert "error" in client.wait(call[0], 45)


@pytest.mark.tier3
@pytest.mark.parametrize("place", ["metadata", "resource", "/token", "login", "/device_authorization", "device"])
@pytest.mark.parametrize("end", ["cancel", "disconnect", "stop"])
def test_every_wait_ends_with_the_client_and_the_broker(stage, place, end):
    site = Site(stage, **({"issuer": None} if place == "resource" else {"flow": "device"} if "device" in place else {}))
    broker = site.broker()
    client = stage.client(broker=broker)
    url = None
    if place == "/token":
        call, _, back = held_login(client, site.url)
        site.server.fail("/token", SILENT)
        threading.Thread(target=tiny_browser.quietly, args=[back.follow], daemon=True).start()
        site.server.wait_for("/token")
    else:
        if place != "login":
            waits(site, place)
        call = client.start("fetch/run", {"url": site.url})
        if place == "login":
            url = login_url(client.challenges.get(timeout=30))
        else:
            (site.resource if place == "resource" else site.server).wait_for(WAITS.get(place, "metadata"))
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
