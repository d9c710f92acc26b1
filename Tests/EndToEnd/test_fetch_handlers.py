"""A handler for a single fetch, beside the subscription of its connection: which respondent is asked, in which order, and what
is sent."""
import asyncio
import socket
import threading

import pytest

from rig.bodies import eventually
from rig.client import password_answer
from rig.clients import site  # noqa: F401
from rig.scripted import basic_server, response

from watchword import DEFAULT, Watchword
from watchword.aio import AsyncWatchword


def handled(challenge):
    return challenge.get("handler")


@pytest.fixture
def place(stage):
    server, password = stage.protected("bob")
    return server, password


def test_rule_15_the_order_is_handler_connection_agent(stage, place):
    server, password = place
    asked = []

    def answer(who, reply):
        def ask(challenge):
            asked.append((who, challenge.get("handler"), challenge.get("requestId")))
            return reply
        return ask

    agent = stage.client(answer=answer("agent", password_answer("bob", password)))
    agent.call("agent/register", {"name": "desk"})
    client = stage.client(answer=answer("client", {"action": "default"}))
    call = client.start("fetch/run", {"url": server.url, "auth": {"handler": {}}})
    assert client.wait(call)["result"]["auth"]["source"] == "agent"
    assert asked == [("client", "fetch", call), ("client", None, None), ("agent", None, None)]


def test_a_handler_needs_no_subscription_and_may_get_notifications(stage, place):
    server, password = place
    client = stage.client(delivery="none")
    call = client.start("fetch/run", {"url": server.url, "auth": {"handler": {"delivery": "notification"}}})
    while (message := client.notifications.get(timeout=30))["method"] != "auth/pending":
        pass
    assert message["params"]["requestId"] == call and message["params"]["handler"] == "fetch"
    client.call("auth/respond", {"challengeId": message["params"]["challengeId"], "answer": password_answer("bob", password)})
    assert client.wait(call)["result"]["status"] == 200
    assert client.fetch(server.url + "/")["result"]["status"] == 200, "from the session"


def test_a_stored_credential_waits_for_the_handlers_answer(stage, place):
    server, password = place
    client = stage.client(answer=lambda challenge: {"action": "default" if handled(challenge) else "continue"})
    space = {"protocol": "http", "host": "127.0.0.1", "port": server.port}
    stored = {"type": "password", "user": "bob", "password": password, "persistence": "forSession"}
    client.call("credential/store", {"protectionSpace": space, "credential": stored})
    silent = stage.client()
    call = silent.start("fetch/run", {"url": server.url, "auth": {"handler": {"mode": "everything"}}})
    asked = silent.challenges.get(timeout=30)
    assert asked["params"]["proposedCredential"]["source"] == "session" and server.authorizations == [None]
    # The handler disconnects: no stored credential is sent (SEMANTICS rule 26).
    silent.close()
    observer = stage.client()
    eventually(lambda: not observer.call("fetch/list")["result"]["fetches"], "the fetch has not ended")
    assert server.authorizations == [None]
    assert client.fetch(server.url, auth={"handler": {"mode": "everything"}})["result"]["status"] == 200


def test_a_handler_that_cannot_answer_is_not_asked_and_sends_nothing(stage):
    """The client has shut down its writing side before the server challenges."""
    gate, password = threading.Event(), stage.secret()
    inner = basic_server("bob", password).handler
    server = stage.server(lambda request: gate.wait(30) and inner(request))
    client = stage.client()
    space = {"protocol": "http", "host": "127.0.0.1", "port": server.port}
    stored = {"type": "password", "user": "bob", "password": password, "persistence": "forSession"}
    client.call("credential/store", {"protectionSpace": space, "credential": stored})
    call = client.start("fetch/run", {"url": server.url, "auth": {"handler": {"mode": "everything"}}})
    eventually(lambda: server.requests, "the server has received no request")
    client.socket.shutdown(socket.SHUT_WR)
    # The broker has handled the shutdown before this reply.
    assert "result" in stage.client().call("ping")
    gate.set()
    assert client.wait(call)["result"]["status"] == 401
    assert server.authorizations == [None] and client.challenges.empty()


def test_each_handler_is_asked_whatever_the_connection_decides(stage, place):
    """Two fetches of one client into one protection space: the subscription has the question, and the fetch with a handler
    waits."""
    server, password = place
    client = stage.client()
    first = client.start("fetch/run", {"url": server.url + "/1"})
    asked = client.challenges.get(timeout=30)
    second = client.start("fetch/run", {"url": server.url + "/2", "auth": {"handler": {}}})
    eventually(lambda: client.call("server/status")["result"]["fetches"]["waiting"] == 1, "the fetch does not wait")
    client.reply(asked, {"action": "continue"})
    assert client.wait(first)["result"]["status"] == 401
    own = client.challenges.get(timeout=30)
    assert own["params"]["requestId"] == second
    client.reply(own, password_answer("bob", password))
    assert client.wait(second)["result"]["status"] == 200


def test_the_next_round_of_a_scheme_is_for_the_respondent_of_the_last_one(stage):
    def handle(request):
        if request.authorization == "Steps two":
            return response(200, b"welcome")
        return response(401, b"", f"WWW-Authenticate: Steps {'second' if request.authorization else 'first'}")

    asked = []

    def answer(challenge):
        asked.append((challenge.get("handler"), challenge.get("state")))
        step, state = ("two", None) if challenge.get("state") else ("one", "after-one")
        credential = {"type": "header", "scheme": "Steps", "value": step, **({"state": state} if state else {})}
        return {"action": "credential", "credential": credential}

    server = stage.server(handle)
    for delivery in ["request", "none"]:
        client = stage.client(answer=answer, delivery=delivery)
        found = client.fetch(server.url, auth={"handler": {}})
        assert found["result"]["status"] == 200, found
    assert asked == [("fetch", None), ("fetch", "after-one")] * 2
    # The same applies after the handler has answered `default`.
    asked.clear()
    client = stage.client(answer=lambda challenge: answer(challenge) if not handled(challenge) else {"action": "default"})
    assert client.fetch(server.url, auth={"handler": {}})["result"]["status"] == 200
    assert asked == [(None, None), (None, "after-one")]
    handlers = [message for who, message in client.messages if who == "broker" and handled(message.get("params") or {})]
    assert len(handlers) == 1


def test_a_client_that_ends_its_subscription_keeps_the_handler(stage, place):
    server, password = place
    client = stage.client()
    call = client.start("fetch/run", {"url": server.url, "auth": {"handler": {}}})
    asked = client.challenges.get(timeout=30)
    client.call("auth/unsubscribe")
    client.reply(asked, password_answer("bob", password))
    assert client.wait(call)["result"]["status"] == 200


@pytest.mark.parametrize("auth, member", [
    ({"handler": {"delivery": "result"}}, "delivery"), ({"handler": {"hosts": ["h"]}}, "hosts"),
    ({"handler": {"methods": "all"}}, "methods"), ({"handler": {}, "interaction": "agent"}, "handler"), ({"handler": True}, "handler")])
def test_an_invalid_handler_is_refused(stage, auth, member):
    failure = stage.client().fetch("http://127.0.0.1:1/", auth=auth)["error"]
    assert failure["data"]["kind"] == "invalidParams" and member in str(failure["data"])


def test_a_handler_is_refused_with_delivery_result(stage):
    failure = stage.client(delivery="result").fetch("http://127.0.0.1:1/", auth={"handler": {}})["error"]
    assert failure["data"]["kind"] == "invalidParams" and "requires delivery request or notification" in str(failure["data"])


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
