"""Names and ids in the clients: text that Unicode or a language considers equal may be different.

U+212A is KELVIN SIGN, which many languages lower to `k`; U+0130 is lowered to `i` by some.
"""

import pytest

from rig.clients import login, run, scripted, site  # noqa: F401
from rig.languages import SCRIPTS, built

from watchword import Watchword, _adapting, _wire  # noqa: E402

KELVIN = "\u212a"


# Ids

def wrong_replies(number):
    """Yields replies that are not for the request with this id: ids of other types, other members, no id."""
    error = {"code": 1, "message": "wrong answer", "data": {"kind": "wrong"}}
    ids = [True, str(number), None, [number], number + 0.5, {"id": number}]
    return [*({"id": one, "error": error} for one in ids), {"error": error}, {"id": 99, "ID": number, "error": error},
            {"id": 99, "Id": number, "Error": error}]


@pytest.fixture
def broker_with_wrong_replies(tmp_path):
    """A broker that accepts every client and refuses every fetch; before each reply it sends the wrong ones."""
    def answer(request):
        right = {"result": {"protocolVersion": 1}} if request["method"] == "initialize" else {
            "error": {"code": 1014, "message": "right answer", "data": {"kind": "denied"}}}
        return [*wrong_replies(request["id"]), {"id": request["id"], **right}]

    with scripted(tmp_path, answer) as path:
        yield path


@pytest.mark.parametrize("language", list(SCRIPTS))
def test_a_reply_has_the_id_of_its_request(language, broker_with_wrong_replies, tmp_path_factory, login):
    done = built(language, tmp_path_factory).run("http://127.0.0.1:1/", broker_with_wrong_replies, login("bob", "pw"))
    assert done.returncode != 0 and b"right answer" in done.stderr and b"wrong" not in done.stderr, done.stderr


def test_a_reply_has_the_id_of_its_request_with_asyncio(broker_with_wrong_replies):
    from watchword import BrokerError
    from watchword.aio import AsyncWatchword

    async def main():
        async with AsyncWatchword(path=broker_with_wrong_replies) as broker:
            with pytest.raises(BrokerError, match="right answer"):
                await broker.fetch("http://127.0.0.1:1/")

    run(main())


# Login files

@pytest.mark.parametrize("language", list(SCRIPTS))
def test_a_password_with_blanks_of_other_scripts_is_sent_as_it_is(language, stage, site, tmp_path_factory, login):
    """The password ends with blanks, and contains characters that Python treats as line ends."""
    secret = stage.secret()
    password = f"\u00a0{secret}\u2028\u0085x\u3000 "
    server = stage.server(type(site)("bob", password))
    stage.allow(secret, server)
    done = built(language, tmp_path_factory).run(server.url + "/page", site.broker_path, login("bob", password))
    assert (done.returncode, done.stdout) == (0, b"staff page\n"), done.stderr
    assert server.seen[-1][2] == server.right


# Header fields, schemes, hosts, numbers

@pytest.mark.parametrize("name, kept", [
    (f"{KELVIN}eep-Alive", True), ("Keep-Alive", False), ("KEEP-ALIVE", False), ("Author\u0130zation", True), ("HO\u017fT", True)])
def test_only_the_fields_of_the_broker_are_left_out(name, kept):
    headers, credential = _adapting.split_headers([(name, "x")])
    assert headers == ([[name, "x"]] if kept else []) and credential is None


@pytest.mark.parametrize("value, credential", [
    ("Bearer  abc\t", {"type": "token", "token": "abc"}), ("BEARER \u00a0abc\u0085", {"type": "token", "token": "\u00a0abc\u0085"}),
    (f"{KELVIN}erberos x", {"type": "header", "scheme": f"{KELVIN}erberos", "value": "x"}),
    ("Bas\u0130c x", {"type": "header", "scheme": "Bas\u0130c", "value": "x"})])
def test_a_credential_is_taken_as_it_is(value, credential):
    assert _adapting.split_headers([("Authorization", value)]) == ([], credential)


@pytest.mark.parametrize("text, number", [
    ("12", 12), ("0", 0), ("\u0661\u0662", None), ("\u00b2", None), ("1_0", None), (" 1", None), ("+1", None), ("", None), (None, None)])
def test_a_length_is_of_ascii_digits(text, number):
    assert _wire.number(text) == number


def test_hosts_and_schemes_are_lowered_as_ascii():
    keyring_backend = pytest.importorskip("watchword.keyring_backend")
    assert keyring_backend._space("HTTPS://Bob@K.Example:444/x") == {"protocol": "https", "host": "k.example", "port": 444}
    assert keyring_backend._space("http://[FE80::1]/")["host"] == "fe80::1"
    assert keyring_backend._space(f"https://{KELVIN}.example/")["host"] == f"{KELVIN}.example"
    with pytest.raises(keyring_backend.errors.KeyringError):
        keyring_backend._space(f"http{KELVIN}://h/")


def test_a_lookalike_host_gets_no_stored_login(site):
    """The broker reports an invalid host; the password of the host that looks the same must not be used."""
    keyring_backend = pytest.importorskip("watchword.keyring_backend")
    keyring = keyring_backend.WatchwordKeyring(path=site.broker_path, persistence="forSession")
    keyring.set_password("https://k.example/", "bob", site.password)
    for act in (lambda: keyring.get_password(f"https://{KELVIN}.example/", "bob"),
                lambda: keyring.delete_password(f"https://{KELVIN}.example/", "bob"),
                lambda: keyring.set_password(f"https://{KELVIN}.example/", "bob", "x")):
        try:
            assert act() is None
        except keyring_backend.errors.KeyringError:
            pass
    with Watchword(path=site.broker_path) as broker:
        stored = broker.call("credential/list")["credentials"]
    assert [one["protectionSpace"]["host"] for one in stored if one["protectionSpace"]["host"] == "k.example"] == ["k.example"]
