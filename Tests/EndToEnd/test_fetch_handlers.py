"""A handler for a single fetch, beside the subscription of its connection: which respondent is asked, in which order, and what
is sent."""
import asyncio

import pytest

from rig.client import password_answer
from rig.clients import site  # noqa: F401

from watchword import DEFAULT, Watchword
from watchword.aio import AsyncWatchword


@pytest.fixture
def place(stage):
    server, password = stage.protected("bob")
    return server, password


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
