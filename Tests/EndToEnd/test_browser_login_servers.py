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
    "long": {"access_token": "x" * 200_000}, "null": {"access_token": lambda old: [None][0]}}


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


@pytest.mark.parametrize("change", [
    {"nonce": "other"}, {"nonce": None}, {"aud": "other"}, {"aud": None}, {"aud": ["other"]}, {"iss": "https://other.example"}, {"iss": None},
    {"exp": 1}, {"exp": None}, {"exp": "x"}])
def test_an_id_token_for_another_login_is_refused(stage, change):
    site = Site(stage, scopes=["openid", "read"])
    site.server.config(id_token=change)
    client = stage.client(broker=site.broker())
    call = started(client, site.url)
    _, shown = log_in(client)
    failure(client, call[0])
    assert shown.status == 400 and site.sent_tokens() == [None]


@pytest.mark.parametrize("change", [{"id_token": None}, {"id_token": "x"}, {"id_token": "a.b.c"}, {"id_token": 5}, {"id_token": "." * 1000}])
def test_without_an_id_token_openid_is_not_logged_in(stage, change):
    site = Site(stage, scopes=["openid", "read"])
    site.server.config(token_response=change)
    client = stage.client(broker=site.broker())
    call = started(client, site.url)
    log_in(client)
    failure(client, call[0])
    assert site.sent_tokens() == [None]


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


def test_a_server_without_rotation_keeps_the_refresh_token(site, client):
    site.server.config(rotation=False)
    logged_in(client, site)
    for _ in range(3):
        site.server.revoke_access()
        assert client.fetch(site.url)["result"]["status"] == 200
    assert len({request.form["refresh_token"] for request in site.token_requests()[1:]}) == 1 and client.challenges.empty()


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


def test_huge_metadata_is_refused(site, client):
    site.server.fail("metadata", huge(site.server.metadata(), 8 << 20))
    assert "error" in client.fetch(site.url)
    assert client.challenges.empty()


@pytest.mark.parametrize("change", [
    {"code_challenge_methods_supported": ["plain"]}, {"authorization_endpoint": None}, {"authorization_endpoint": ""}, {"authorization_endpoint": 5},
    {"authorization_endpoint": "/relative"}, {"authorization_endpoint": "x" * 100_000}])
def test_a_server_that_cannot_log_in_a_browser(site, client, change):
    site.server.config(metadata={**change, "device_authorization_endpoint": None})
    failure(client, client.start("fetch/run", {"url": site.url}))
    assert client.challenges.empty()


def test_metadata_without_a_token_endpoint_ends_the_login(site, client):
    site.server.config(metadata={"token_endpoint": None})
    call = client.start("fetch/run", {"url": site.url})
    eventually(lambda: call in client.replies or not client.challenges.empty(), "the login begins or fails")
    if not client.challenges.empty():
        log_in(client)
    failure(client, call)


def test_an_authorization_endpoint_with_a_query_keeps_it(site, client):
    site.server.config(metadata={"authorization_endpoint": site.server.endpoint("authorize") + "?tenant=a%26b"})
    logged_in(client, site)
    assert site.server.authorizations[0]["tenant"] == "a&b"


# The answers of section 6 of the notes on OAuth


def codes(site):
    return [request.form["grant_type"] for request in site.token_requests()]


def test_a_renewal_that_is_refused_for_good_asks_once(site, client):
    logged_in(client, site)
    site.server.revoke_access()
    site.server.refuse("/token", "invalid_grant", grant="refresh_token")
    calls = started(client, site.url, 4)
    log_in(client)
    assert statuses(client, calls) == [200] * 4 and client.challenges.empty()
    assert codes(site) == ["authorization_code", "refresh_token", "authorization_code"]


def test_a_renewal_that_is_refused_without_a_reason_asks_once(site, client):
    logged_in(client, site)
    site.server.revoke_all()
    site.server.config(invalid_grant=dated(400))
    calls = started(client, site.url, 4)
    log_in(client)
    assert statuses(client, calls) == [200] * 4 and client.challenges.empty()
    assert codes(site) == ["authorization_code", "refresh_token", "authorization_code"]


@pytest.mark.tier3
def test_a_grant_that_was_refused_without_a_reason_is_kept_until_the_next_login(site, client):
    logged_in(client, site)
    site.server.revoke_access()
    site.server.fail("/token", dated(400), times=1)
    call = started(client, site.url)
    client.reply(client.challenges.get(timeout=30), {"action": "cancel"})
    client.wait(call[0])
    time.sleep(6)
    assert client.fetch(site.url)["result"]["status"] == 200 and len(site.server.authorizations) == 1


@pytest.mark.tier3
@pytest.mark.parametrize("code", ["invalid_client", "unauthorized_client", "invalid_scope", "invalid_target"])
@pytest.mark.parametrize("grant", ["authorization_code", "refresh_token"])
def test_an_error_of_the_configuration_is_no_question(site, client, code, grant):
    if grant == "refresh_token":
        logged_in(client, site)
        site.server.revoke_access()
    site.server.refuse("/token", code, grant=grant)
    call = started(client, site.url)
    if grant == "authorization_code":
        log_in(client)
    message = failure(client, call[0])
    assert code in message and "configuration" in message and client.challenges.empty()
    # The grant is not forgotten.
    site.server.clear_faults()
    if grant == "refresh_token":
        time.sleep(5.5)
        assert client.fetch(site.url)["result"]["status"] == 200 and client.challenges.empty()


@pytest.mark.tier3
@pytest.mark.parametrize("answer", [dated(500), dated(502), dated(503), dated(429), CLOSE])
def test_a_renewal_at_a_server_out_of_order_keeps_the_grant(site, client, answer):
    logged_in(client, site)
    site.server.revoke_access()
    site.server.fail("/token", answer)
    reply = client.fetch(site.url)
    assert "error" in reply and client.challenges.empty(), reply
    site.server.clear_faults()
    time.sleep(5.5)
    assert client.fetch(site.url)["result"]["status"] == 200 and client.challenges.empty() and len(site.server.authorizations) == 1


def test_an_unreachable_server_is_named_with_the_step_that_needs_it(stage):
    """The program knows only the resource."""
    site = Site(stage, issuer="http://127.0.0.1:1")
    client = stage.client(broker=site.broker())
    message = failure(client, client.start("fetch/run", {"url": site.url}), "cannotConnect")
    assert message.startswith("cannot log in at http://127.0.0.1:1: cannot connect to 127.0.0.1, port 1;"), message


@pytest.mark.parametrize("code", ["access_denied", "server_error", "temporarily_unavailable", "invalid_request", "invalid_scope", "x" * 5000])
def test_an_error_at_the_login_page_ends_the_login(site, client, code):
    site.server.refuse("/authorize", code, description="<script>alert(1)</script>")
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


@pytest.mark.parametrize("status", [401, 403])
def test_an_insufficient_scope_asks_for_the_union_once(site, client, status):
    site.resource.config(insufficient_status=status)
    logged_in(client, site)
    call = started(client, site.url + "/w")
    challenge, _ = log_in(client)
    assert challenge["params"]["login"]["scopes"] == ["read", "write"] and statuses(client, call) == [200]
    assert client.challenges.empty() and len(site.server.authorizations) == 2


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


def test_a_wrong_secret_of_a_client_is_an_error_of_the_configuration(stage, machine):
    machine.server.client("machine", "another")
    client = stage.client(broker=machine.broker())
    message = failure(client, client.start("fetch/run", {"url": machine.url}))
    assert "invalid_client" in message and "configuration" in message and client.challenges.empty()


def test_a_wrong_secret_refused_without_a_reason(stage, machine):
    machine.server.fail("/token", dated(403))
    client = stage.client(broker=machine.broker())
    message = failure(client, client.start("fetch/run", {"url": machine.url}))
    assert "403" in message and client.challenges.empty()


def test_a_secret_in_the_body_if_the_server_takes_nothing_else(stage, machine):
    machine.server.config(auth_methods=("client_secret_post",))
    client = stage.client(broker=machine.broker())
    assert client.fetch(machine.url)["result"]["status"] == 200
    request = machine.token_requests()[0]
    assert request.authorization is None and request.form["client_secret"] == machine.secret


def test_a_file_that_others_can_read_is_no_secret(stage, machine):
    secret_file(stage, machine.secret, 0o644)
    client = stage.client(broker=machine.broker())
    client.fetch(machine.url, auth={"interaction": "none"})
    assert not machine.token_requests()


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


def test_no_client_is_registered_at_a_server_with_a_client_id(stage, site):
    site.server.config(registration=True)
    client = stage.client(broker=site.broker())
    logged_in(client, site)
    assert not site.server.registrations


@pytest.mark.parametrize("answer", [
    {"client_id": None}, {"client_id": ""}, {"client_id": 5}, {"client_id": ["x"]}])
def test_a_broken_registration_begins_no_login(stage, site, answer):
    site.options |= {"client-id": None, "register": True}
    site.server.config(registration=True, registration_response=answer)
    client = stage.client(broker=site.broker())
    failure(client, client.start("fetch/run", {"url": site.url}))
    assert client.challenges.empty()
