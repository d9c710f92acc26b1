"""A login of the session that was accepted a while ago, after the password has changed on the server: SEMANTICS rule 22.

With any scheme, and however many fetches begin at once, the account gets one failed login.
"""
import contextlib
import socket
import time

import pytest

from rig.client import password_answer
from rig.forwarding import ForwardProxy
from rig.ntlm import DOMAIN, NtlmCheck
from rig.scripted import ScriptedServer, basic, basic_server, response
from rig.tls import TlsServer

FETCHES = 50
LONG_AGO = 11


def log_in(stage, faults, url, old, user="bob", configuration="", **parameters):
    """Returns a broker whose session has this login for `url`, accepted long ago, and a client that leaves its challenges open."""
    broker = stage.configured(configuration, environment=faults.environment)
    with_answer = stage.client(broker=broker, answer=lambda challenge: password_answer(user, old))
    assert with_answer.fetch(url, **parameters)["result"]["status"] == 200
    faults.pass_time(LONG_AGO)
    return stage.client(broker=broker)


def run(client, url, user, new, **parameters):
    """Makes fifty concurrent fetches; the respondent knows the new password."""
    calls = [client.start("fetch/run", {"url": f"{url}/{number}", **parameters}) for number in range(FETCHES)]
    challenge = client.challenges.get(timeout=30)
    assert challenge["params"]["previousFailureCount"] == 1
    client.reply(challenge, password_answer(user, new))
    answers = [client.wait(call) for call in calls]
    assert [answer for answer in answers if "error" in answer] == []
    statuses = [answer["result"]["status"] for answer in answers]
    assert statuses == [200] * FETCHES and client.challenges.empty()


@pytest.mark.parametrize("preemptive", [True, False])
def test_rule_22_a_changed_basic_password_costs_one_failed_login(stage, faults, preemptive):
    old, new = stage.secret(), stage.secret()
    server = stage.server(basic_server("bob", old))
    stage.allow(old, server), stage.allow(new, server)
    client = log_in(stage, faults, f"{server.url}/first", old)
    accepting, before = basic_server("bob", new).handler, len(server.requests)
    server.handler = accepting
    run(client, server.url, "bob", new, auth={"preemptive": preemptive})
    sent = [request.authorization for request in server.requests[before:]]
    assert sent.count(basic("bob", old)) == 1 and sent.count(basic("bob", new)) == FETCHES


class Restarting:
    """Closes all connections of a scripted server on demand, as a server that starts again does."""

    def __init__(self, handler):
        self.open, self.ended = [], 0
        super().__init__(handler)

    def _open(self, connection, number):
        self.open.append(connection)
        return super()._open(connection, number)

    def restart(self):
        for connection in self.open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _respond(self, connection, request, early):
        return request.connection <= self.ended or super()._respond(connection, request, early)


class RestartingServer(Restarting, ScriptedServer):
    pass


class RestartingProxy(Restarting, ForwardProxy):
    pass


class RestartingTlsServer(Restarting, TlsServer):
    pass


@pytest.mark.parametrize("place", ["server", "server, at the next request", "server, which asks again", "proxy", "proxy, which asks again", "tunnel", "tunnel, at the next request"])
def test_rule_22_connections_that_end_with_the_old_password_cost_three_failed_logins(stage, certificates, place):
    """The broker cannot know that the fetches have to log in again before it has sent their requests."""
    old, new, user = stage.secret(), stage.secret(), f"{DOMAIN}\\bob"
    configuration = '[schemes]\nntlm = ["127.0.0.1"]\n'
    if place.startswith("server"):
        check = NtlmCheck(stage.folder, {"bob": old}, handler=lambda request: time.sleep(0.05) or response(200, b"welcome"))
        guarded = origin = stage.server(RestartingServer(check))
    else:
        check = NtlmCheck(stage.folder, {"bob": old}, proxy=True, handler=lambda request: time.sleep(0.05))
        guarded = stage.server(RestartingProxy(check))
        configuration += f'[proxy]\nurl = "{guarded.url}"\n'
        origin = stage.server(RestartingTlsServer(certificates) if place.startswith("tunnel") else lambda request: response(200, b"welcome"))
        if place.startswith("tunnel"):
            origin.handler = lambda request: time.sleep(0.05) or response(200, b"welcome")
    broker = stage.configured(configuration, "--ca-file", str(certificates / "ca.pem"))
    asked = stage.client(broker=broker, answer=lambda challenge: password_answer(user, old))
    assert asked.fetch(origin.url)["result"]["status"] == 200
    calls = [asked.start("fetch/run", {"url": f"{origin.url}/{number}"}) for number in range(FETCHES)]
    assert [asked.wait(call)["result"]["status"] for call in calls] == [200] * FETCHES
    assert len({connection for connection, _, _ in check.served}) > 3, "several connections are kept"
    time.sleep(0.1)  # the window of attempts closes
    changed = NtlmCheck(stage.folder, {"bob": new}, proxy=check.proxy, handler=check.handler)
    guarded.handler = changed
    if "next" in place:
        ending = origin if place.startswith("tunnel") else guarded
        ending.ended = ending.connections
    elif "again" not in place:
        guarded.restart()
    run(stage.client(broker=broker), origin.url, user, new)
    assert 1 <= len(changed.refused) <= 3, f"{len(changed.refused)} failed logins"
