"""What a broker has written about who used what for where."""
import json
import pathlib

from .bodies import eventually
from .scripted import basic_server


def state(broker):
    return pathlib.Path(broker.home) / ".local/state/watchword"


def lines(broker, name="audit.jsonl"):
    path = state(broker) / name
    return path.read_text().splitlines() if path.exists() else []


def events(broker, name="audit.jsonl"):
    return [json.loads(line) for line in lines(broker, name)]


def whole_events(broker, name="audit.jsonl"):
    """The events of all lines, but for a last one without its end; any other that is no JSON is an error."""
    return [json.loads(line) for line in (state(broker) / name).read_bytes().split(b"\n")[:-1]]


def kinds(broker):
    return [event["kind"] for event in events(broker)]


def wait_for(condition, seconds=10):
    return eventually(condition, "it did not come", seconds)


def wait_for_kinds(broker, *wanted):
    """The writing is not waited for by anybody; the order is that of what happened."""
    wait_for(lambda: len(kinds(broker)) >= len(wanted))
    assert kinds(broker) == list(wanted)


def protected(stage, user="bob", realm="Staff"):
    password = stage.secret()
    server = stage.server(basic_server(user, password, realm))
    stage.allow(password, server)
    return server, password


def clear(client, numbers):
    """One event each, that can be told from the others."""
    for number in numbers:
        assert "result" in client.call("session/clear", {"origin": f"http://h:{number}"})


def numbers(found):
    return [int(event["origin"].rpartition(":")[2]) for event in found if event["kind"] == "sessionCleared" and "origin" in event]
