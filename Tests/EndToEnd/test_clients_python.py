"""The Python client, blocking and for asyncio, with the real broker; handlers for a single fetch; and names and ids in all clients: text
that Unicode or a language considers equal may be different.

U+212A is KELVIN SIGN, which many languages lower to `k`; U+0130 is lowered to `i` by some."""
import asyncio
import hashlib
import io
import json
import subprocess
import threading

import pytest

from rig.bodies import eventually
from rig.client import password_answer
from rig.clients import BINARY, CLIENTS, LARGE, login, run, scripted, site  # noqa: F401
from rig.languages import SCRIPTS, built

from watchword import (  # noqa: E402
    CANCEL, CONTINUE, DEFAULT, REJECT, BrokerError, BrokerNotRunning, ConnectionClosed, Password, Watchword,
    _adapting, _wire)
from watchword.aio import AsyncWatchword  # noqa: E402


def test_a_handler_needs_no_subscription_and_may_get_notifications(stage):
    server, password = stage.protected()
    client = stage.client(delivery="none")
    call = client.start("fetch/run", {"url": server.url, "auth": {"handler": {"delivery": "notification"}}})
    while (message := client.notifications.get(timeout=30))["method"] != "auth/pending":
        pass
    assert message["params"]["requestId"] == call and message["params"]["handler"] == "fetch"
    client.call("auth/respond", {"challengeId": message["params"]["challengeId"], "answer": password_answer("bob", password)})
    assert client.wait(call)["result"]["status"] == 200
    assert client.fetch(server.url + "/")["result"]["status"] == 200, "from the session"


@pytest.mark.parametrize("auth, member", [
    ({"handler": {"delivery": "result"}}, "delivery"), ({"handler": {"hosts": ["h"]}}, "hosts"),
    ({"handler": {"methods": "all"}}, "methods"), ({"handler": {}, "interaction": "agent"}, "handler"), ({"handler": True}, "handler")])
def test_an_invalid_handler_is_refused(stage, auth, member):
    failure = stage.client().fetch("http://127.0.0.1:1/", auth=auth)["error"]
    assert failure["data"]["kind"] == "invalidParams" and member in str(failure["data"])


def test_python(site):
    asked = []
    with Watchword(answer=lambda challenge: asked.append("all"), path=site.broker_path) as broker:
        assert broker.fetch(site.url + "/page", handler=lambda challenge: ("bob", site.password))["status"] == 200
        broker.call("session/clear")
        assert broker.fetch(site.url + "/page", handler=lambda challenge: DEFAULT)["status"] == 401 and asked == ["all"]
        begun = broker.start(site.url + "/page", handler=lambda challenge: ("bob", site.password))
        assert b"".join(broker.read(begun)) and broker.finish(begun)["status"] == 200
        assert asked == ["all"] and not broker._handlers._of_request


def test_python_with_many_at_once(site):
    """Each handler receives the challenge of its own fetch."""
    async def run():
        asked = {}

        def handler(number):
            async def ask(challenge):
                asked.setdefault(number, []).append(challenge["url"])
                return ("bob", site.password) if number % 2 else DEFAULT
            return ask

        async with AsyncWatchword(path=site.broker_path) as broker:
            found = await asyncio.gather(*(
                broker.fetch(f"{site.url}/page?{number}", handler=handler(number), auth={"useStorage": False}) for number in range(6)))
            begun = await broker.start(f"{site.url}/page?7", handler=handler(7), auth={"useStorage": False})
            body = b"".join([part async for part in broker.read(begun)])
            await broker.finish(begun)
            assert body and not broker._handlers._of_request
        return [one["status"] for one in found], asked

    statuses, asked = asyncio.run(run())
    assert len(asked) > 1 and all(url.endswith(f"?{number}") for number, urls in asked.items() for url in urls)
    assert all(statuses[number] == 200 for number in (1, 3, 5))


def numbered(count, each=1 << 16):
    """Yields a body in parts, all of which differ."""
    return (number.to_bytes(8, "big") * (each // 8) for number in range(count))


def digest(parts):
    return hashlib.sha256(b"".join(parts)).hexdigest()


def test_the_package_is_well_typed(tmp_path):
    done = subprocess.run(
        ["/usr/bin/mypy", "--strict", "--config-file", "pyproject.toml", "--follow-imports=skip",
         "--cache-dir", str(tmp_path), "watchword"],
        cwd=CLIENTS / "python", capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("answer, status", [
    (("bob", None), 200), (Password("bob", None), 200), (CONTINUE, 401), (None, 401), (DEFAULT, 401), (REJECT, 401)])
def test_every_answer_has_its_effect(site, answer, status):
    if isinstance(answer, tuple):
        answer = ("bob", site.password)
    elif isinstance(answer, Password):
        answer = Password("bob", site.password, persistence="none")
    with Watchword(answer=lambda challenge: answer, path=site.broker_path) as broker:
        assert broker.fetch(site.url + "/page")["status"] == status


def test_cancel_and_invalid_answers_end_the_fetch(site):
    answers = iter([CANCEL, {"action": "credential", "credential": {"type": "password", "user": "bob", "pasword": "x"}}])
    with Watchword(answer=lambda challenge: next(answers), path=site.broker_path) as broker:
        for kind, code, retriable in [("challengeCancelled", 1010, False), ("invalidAnswer", 1013, False)]:
            with pytest.raises(BrokerError) as caught:
                broker.fetch(site.url + "/page")
            assert (caught.value.kind, caught.value.code, caught.value.retriable) == (kind, code, retriable)
            assert caught.value.message == str(caught.value) != ""
        with pytest.raises(BrokerError) as caught:
            broker.fetch("http://127.0.0.1:1/")
        assert (caught.value.kind, caught.value.retriable) == ("cannotConnect", True)


def test_an_error_in_the_answer_function_is_raised_and_sends_nothing(site, stage):
    agent = stage.agent(broker=site.broker, delivery=None)
    answers = iter([ZeroDivisionError("mine"), 7, KeyboardInterrupt(), ("bob", site.password)])

    def answer(challenge):
        made = next(answers)
        if isinstance(made, BaseException):
            raise made
        return made

    with Watchword(answer=answer, path=site.broker_path) as broker:
        for wanted in (ZeroDivisionError, TypeError, KeyboardInterrupt):
            with pytest.raises(wanted):
                broker.fetch(site.url + "/page")
        # The connection stays usable.
        assert broker.fetch(site.url + "/page")["status"] == 200
    assert [seen[2] for seen in site.seen if seen[2]] == [site.right]
    # No other respondent is asked instead.
    agent.call("ping")
    assert agent.challenges.empty()


def test_wrong_then_right(site):
    counts = []

    def answer(challenge):
        counts.append(challenge["previousFailureCount"])
        return "bob", site.password if counts[-1] else "wrong"

    with Watchword(answer=answer, path=site.broker_path) as broker:
        assert broker.content(broker.fetch(site.url + "/page")) == b"staff page\n"
    assert counts == [0, 1]


def test_bodies_of_every_kind_arrive_whole(site):
    with Watchword(answer=site.log_in, path=site.broker_path) as broker:
        assert broker.fetch(site.url + "/page")["body"] == {"type": "string", "value": "staff page\n"}
        assert broker.content(broker.fetch(site.url + "/binary")) == BINARY
        large = broker.fetch(site.url + "/large")
        assert large["body"]["type"] == "handle" and broker.content(large) == LARGE
        with broker.stream(site.url + "/large") as response:
            assert (response.status, b"".join(response)) == (200, LARGE)
        with pytest.raises(BrokerError) as caught:
            broker.content(broker.fetch(site.url + "/short"))
        assert caught.value.kind == "connectionLost"


def test_a_fetch_in_steps_has_a_head_and_its_body_as_a_file(site):
    with Watchword(answer=site.log_in, path=site.broker_path) as broker:
        begun = broker.start(site.url + "/large")
        head = broker.headers(begun)
        assert head["status"] == 200 and head["bodyBytes"] == len(LARGE)
        with broker.attach(begun) as body:
            assert body.read(5) == LARGE[:5] and body.read() == LARGE[5:]
        assert broker.finish(begun)["bodyBytes"] == len(LARGE)
        for step in [broker.headers, broker.attach]:
            with pytest.raises(BrokerError) as caught:
                step(broker.start("http://127.0.0.1:1/"))
            assert caught.value.kind == "cannotConnect"


@pytest.mark.parametrize("make", [
    lambda: b"x" * (3 << 20), lambda: "text \u00e9", lambda: BINARY, lambda: io.BytesIO(LARGE), lambda: numbered(40)],
    ids=["bytes", "text", "binary", "file", "iterable"])
def test_bodies_of_requests_arrive_whole(site, make):
    sent = make()
    whole = sent.encode() if isinstance(sent, str) else sent if isinstance(sent, bytes) else b"".join(sent)
    with Watchword(answer=site.log_in, path=site.broker_path) as broker:
        told = json.loads(broker.content(broker.fetch(site.url + "/echo", data=make(), method="PUT")))
    assert (told["length"], told["sha256"]) == (len(whole), digest([whole]))


def test_a_file_is_sent_with_its_size(site, tmp_path):
    (tmp_path / "large").write_bytes(LARGE)
    with Watchword(answer=site.log_in, path=site.broker_path) as broker, open(tmp_path / "large", "rb") as file:
        file.seek(5)
        told = json.loads(broker.content(broker.fetch(site.url + "/echo", data=file, method="PUT")))
    assert (told["sized"], told["sha256"]) == (str(len(LARGE) - 5), digest([LARGE[5:]]))


def test_an_error_in_the_body_is_raised_by_the_call(site):
    def broken():
        yield b"x" * 100
        raise OSError("the tape is torn")

    with Watchword(answer=site.log_in, path=site.broker_path) as broker:
        with pytest.raises(OSError, match="torn"):
            broker.fetch(site.url + "/open/echo", data=broken(), method="PUT")
        assert broker.fetch(site.url + "/page")["status"] == 200


def test_leaving_a_stream_ends_the_fetch(site):
    with Watchword(answer=site.log_in, path=site.broker_path) as broker:
        with broker.stream(site.url + "/slow") as response:
            assert next(iter(response)) == b"first"
        assert site.given_up.wait(30)
        assert broker.fetch(site.url + "/page")["status"] == 200


def test_without_a_broker_the_error_says_where_it_was_looked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("WATCHWORD_SOCKET", str(tmp_path / "none.sock"))
    for make in (Watchword, lambda: run(AsyncWatchword().connect())):
        with pytest.raises(BrokerNotRunning, match="systemctl --user start watchword.socket.*watchwordd") as caught:
            make()
        assert str(tmp_path / "none.sock") in str(caught.value) and isinstance(caught.value, ConnectionError)


def test_the_socket_is_looked_for_in_the_runtime_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("WATCHWORD_SOCKET", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert _wire.socket_path() == f"{tmp_path}/watchword/broker.sock"
    monkeypatch.setenv("XDG_RUNTIME_DIR", "relative")
    assert _wire.socket_path().startswith("/run/user/") and _wire.socket_path("/x") == "/x"


def test_a_broker_that_dies_ends_the_call(site):
    broker = Watchword(answer=site.log_in, path=site.broker_path)
    killer = threading.Thread(target=lambda: site.slow.wait(30) and site.broker.kill())
    killer.start()
    with pytest.raises(ConnectionClosed):
        broker.fetch(site.url + "/silent")
    killer.join(10)
    with pytest.raises(ConnectionClosed):
        broker.fetch(site.url + "/page")

    async def later():
        async with AsyncWatchword(path=path) as broker:
            with pytest.raises(ConnectionClosed):
                await broker.fetch("http://h/")
            with pytest.raises(ConnectionClosed):
                await broker.fetch("http://h/")

    with scripted(site.broker.folder, lambda asked: [{"id": 1, "result": {}}] if asked["method"] == "initialize" else None) as path:
        run(later())


# asyncio

def test_many_at_once_on_one_connection_are_asked_once(site):
    asked = []

    async def answer(challenge):
        asked.append(challenge)
        await asyncio.sleep(0)
        return "bob", site.password

    async def fetch_all():
        async with AsyncWatchword(answer=answer, path=site.broker_path) as broker:
            return await asyncio.gather(*(broker.fetch(f"{site.url}/page?{number}") for number in range(20)))

    assert [page["status"] for page in run(fetch_all())] == [200] * 20 and len(asked) == 1


def test_a_plain_function_may_block_without_stopping_the_loop(site):
    asked = threading.Event()

    def answer(challenge):
        assert asked.wait(30)
        return "bob", site.password

    async def both():
        async with AsyncWatchword(answer=answer, path=site.broker_path) as broker:
            staff = asyncio.ensure_future(broker.fetch(site.url + "/page"))
            assert (await broker.fetch(site.url + "/open"))["status"] == 200
            asked.set()
            return (await staff)["status"]

    assert run(both()) == 200


def test_a_task_that_is_cancelled_cancels_its_fetch(site):
    async def cancel():
        async with AsyncWatchword(answer=site.log_in, path=site.broker_path) as broker:
            task = asyncio.ensure_future(broker.fetch(site.url + "/silent"))
            await asyncio.to_thread(site.slow.wait, 30)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(site.given_up.wait, 30)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(broker.fetch(site.url + "/silent"), 0.1)
            async with broker.stream(site.url + "/slow") as response:
                async for part in response:
                    assert part == b"first"
                    break
            await asyncio.to_thread(eventually, lambda: "/slow" in site.ended_early, "the fetch has not ended")
            return (await broker.fetch(site.url + "/page"))["status"], broker._completed, broker._replies

    assert run(cancel()) == (200, {}, {})


def test_a_question_that_is_withdrawn_ends_the_answer(site):
    async def withdraw():
        asked, ended = asyncio.Event(), asyncio.Event()

        async def answer(challenge):
            asked.set()
            try:
                await asyncio.sleep(60)
            finally:
                ended.set()

        async with AsyncWatchword(answer=answer, path=site.broker_path) as broker:
            task = asyncio.ensure_future(broker.fetch(site.url + "/page"))
            await asyncio.wait_for(asked.wait(), 30)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.wait_for(ended.wait(), 30)

    run(withdraw())


def test_bodies_of_every_kind_at_once(site):
    async def pieces():
        for part in numbered(40):
            yield part

    async def fetch_all():
        async with AsyncWatchword(answer=site.log_in, path=site.broker_path) as broker:
            async def whole(**more):
                return await broker.content(await broker.fetch(site.url + more.pop("path"), **more))

            found = await asyncio.gather(
                whole(path="/binary"), whole(path="/large"), whole(path="/echo", data=LARGE, method="PUT"),
                whole(path="/echo", data=pieces(), method="PUT"), whole(path="/echo", data=io.BytesIO(LARGE), method="POST"))
            download = await broker.start(site.url + "/large")
            reader, writer = await broker.attach(download)
            attached = await reader.read(-1)
            writer.close()
            return *found, attached, (await broker.finish(download))["bodyBytes"], broker._completed, broker._begun

    binary, large, sent, streamed, file, attached, count, *left = run(fetch_all())
    assert (binary, large == LARGE, attached == LARGE, count, left) == (BINARY, True, True, len(LARGE), [{}, {}])
    told = [json.loads(one)["sha256"] for one in (sent, streamed, file)]
    assert told == [digest([LARGE]), digest(numbered(40)), digest([LARGE])]


def test_errors_in_the_answer_function_and_in_the_body_with_asyncio(site):
    """The first is reported to the loop, and cancels the fetch; the other is raised by the call."""
    async def broken():
        yield b"x" * 100
        raise OSError("the tape is torn")

    async def fail():
        told = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context["exception"]))
        async with AsyncWatchword(answer=lambda challenge: 1 // 0, path=site.broker_path) as broker:
            with pytest.raises(BrokerError) as caught:
                await broker.fetch(site.url + "/page")
            assert (caught.value.kind, [type(error) for error in told]) == ("challengeCancelled", [ZeroDivisionError])
        async with AsyncWatchword(answer=site.log_in, path=site.broker_path) as broker:
            with pytest.raises(OSError, match="torn"):
                await broker.fetch(site.url + "/open/echo", data=broken(), method="PUT")
            return (await broker.fetch(site.url + "/page"))["status"]

    assert run(fail()) == 200


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


@pytest.mark.parametrize("language", [*SCRIPTS, "asyncio"])
def test_a_reply_has_the_id_of_its_request(language, broker_with_wrong_replies, tmp_path_factory, login):
    if language != "asyncio":
        done = built(language, tmp_path_factory).run("http://127.0.0.1:1/", broker_with_wrong_replies, login("bob", "pw"))
        assert done.returncode != 0 and b"right answer" in done.stderr and b"wrong" not in done.stderr, done.stderr
        return

    async def main():
        async with AsyncWatchword(path=broker_with_wrong_replies) as broker:
            with pytest.raises(BrokerError, match="right answer"):
                await broker.fetch("http://127.0.0.1:1/")

    run(main())


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
