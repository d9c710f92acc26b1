"""The audit log: its files, and `events/subscribe`."""
import json
import os
import stat

import pytest

from rig import faults, leaks, schemas
from rig.audit import clear, events, kinds, lines, numbers, state, wait_for, wait_for_kinds
from rig.client import password_answer
from rig.scripted import response
from rig.terminal import Shell

# One event each; ids of open requests must differ.
# Records


def test_a_fetch_with_a_wrong_and_a_right_password(stage):
    server, right = stage.protected()
    wrong = stage.secret(server)
    broker = stage.broker()
    answers = [wrong, right]
    client = stage.client(answer=lambda params: password_answer("bob", answers.pop(0)), name="mytool")
    result = client.fetch(f"{server.url}/some/path?token=abcdef#part", headers=[["X-Mine", "ghijkl"]])["result"]
    assert result["status"] == 200
    wait_for_kinds(
        broker, "challengeAsked", "challengeAnswered", "credentialUsed", "credentialRefused",
        "challengeAsked", "challengeAnswered", "credentialUsed", "credentialStored")
    for event in events(broker):
        schemas.check(event, {"$ref": "#/components/schemas/event"})
        assert event["client"] == {"name": "mytool", "pid": os.getpid(), "uid": os.getuid(), "executable": os.path.realpath("/proc/self/exe")}
        assert event["fetchId"] == result["fetchId"]
        space = event["protectionSpace"]
        assert (space["host"], space["port"], space["realm"], space["authenticationMethod"]) == ("127.0.0.1", server.port, "Staff", "httpBasic")
    used = events(broker)[2]
    assert (used["user"], used["source"], used["origin"]) == ("bob", "client", server.url)
    text = (state(broker) / "audit.jsonl").read_bytes()
    for secret in (wrong, right):
        assert not any(form in text for form in leaks.forms(secret))
    for word in (b"path", b"token", b"abcdef", b"part", b"ghijkl", b"X-Mine", b"Authorization"):
        assert word not in text
    assert stat.S_IMODE((state(broker) / "audit.jsonl").stat().st_mode) == 0o600
    assert stat.S_IMODE(state(broker).stat().st_mode) == 0o700


def test_a_hostile_realm_is_shown_as_text(stage):
    password = stage.secret()
    realm = "x\\\"\u202e\x9b".encode().decode("latin-1") + "long " * 100
    server = stage.server(lambda request: response(401, b"", "WWW-Authenticate: Basic realm=\"" + realm + "\""))
    stage.allow(password, server)
    broker = stage.broker()
    shell = Shell(broker)
    stage.client(answer=lambda params: password_answer("bob", password) if params["previousFailureCount"] == 0 else {"action": "cancel"},
                 name="\x1b[2J\nevil" + "n" * 1000).fetch(server.url)
    wait_for(lambda: kinds(broker).count("challengeAnswered") == 2)
    assert all(len(line) < 2000 for line in lines(broker))
    shown = shell.run("log").stdout.decode()
    assert len(shown.splitlines()) == len(lines(broker))
    assert not any(sign in shown for sign in "\x1b\u202e\x07\r")


# Files


def test_a_full_disk_stops_no_fetch(stage):
    server, password = stage.protected()
    broker = stage.broker()
    state(broker).mkdir(parents=True)
    with faults.small(state(broker), "64k"):
        client = stage.client(answer=lambda params: password_answer("bob", password))
        clear(client, range(1000, 1010))
        wait_for(lambda: len(lines(broker)) == 10)
        filler = state(broker) / "filler"
        with pytest.raises(OSError), open(filler, "wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
        clear(client, range(1010, 1100))
        assert client.fetch(server.url)["result"]["status"] == 200
        wait_for(lambda: "cannot write the audit log" in broker.log)
        written = (state(broker) / "audit.jsonl").read_text().count("\n")
        filler.unlink()
        clear(client, [2000])
        wait_for(lambda: "the audit log is written again" in broker.log)
        assert broker.log.count("cannot write the audit log") == 1
        wait_for(lambda: any("http://h:2000" in line for line in lines(broker)))
        text = (state(broker) / "audit.jsonl").read_text()
        assert text.endswith("\n")
        found = []
        for line in text.splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                assert found, "half a record, at which the disk was full"
        # The records that were queued when the disk had room again are in between.
        [lost] = [event for event in found if event["kind"] == "eventsLost"]
        assert found[-1]["kind"] == "sessionCleared" and numbers(found)[-1] == 2000
        # 101 of cleared sessions, and those of the fetch: asked, answered, used, stored.
        assert len(found) - 1 + lost["count"] == 101 + 4, (written, lost)
        shown = Shell(broker).run("log")
        assert shown.returncode == 0 and f"could not write {lost['count']} event".encode() in shown.stdout
        broker.stop()
