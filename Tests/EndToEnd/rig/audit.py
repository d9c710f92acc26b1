"""Reads the audit log of a broker."""
import json
import pathlib

from .bodies import eventually


def state(broker):
    return pathlib.Path(broker.home) / ".local/state/watchword"


def lines(broker, name="audit.jsonl"):
    """Returns the complete lines: the last record may just be being written."""
    path = state(broker) / name
    return path.read_bytes().decode(errors="replace").split("\n")[:-1] if path.exists() else []


def events(broker, name="audit.jsonl"):
    return [json.loads(line) for line in lines(broker, name)]


def kinds(broker):
    return [event["kind"] for event in events(broker)]


def wait_for(condition, seconds=30):
    return eventually(condition, "the audit log does not contain the events", seconds)


def wait_for_kinds(broker, *wanted):
    """Waits until the audit log contains events of these kinds in this order: records are written asynchronously."""
    wait_for(lambda: len(kinds(broker)) >= len(wanted))
    assert kinds(broker) == list(wanted)


def clear(client, numbers):
    """Clears the session for an origin with each number: one event each, which differs from the others."""
    for number in numbers:
        assert "result" in client.call("session/clear", {"origin": f"http://h:{number}"})


def numbers(found):
    return [int(event["origin"].rpartition(":")[2]) for event in found if event["kind"] == "sessionCleared" and "origin" in event]
