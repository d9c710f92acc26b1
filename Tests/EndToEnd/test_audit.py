"""The audit log: its files, `events/subscribe`, and `watchword log`, which shows the uses of logins by programs."""
import datetime
import json
import os
import signal
import stat
import threading
import zoneinfo

import pytest

from rig import faults, leaks, schemas
from rig.audit import clear, events, kinds, lines, numbers, state, wait_for, wait_for_kinds
from rig.client import password_answer
from rig.scripted import response
from rig.terminal import Shell
from rig.waiting import is_polling


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


def test_a_hostile_realm_is_shown_as_text(stage, shell):
    password = stage.secret()
    realm = "x\\\"\u202e\x9b".encode().decode("latin-1") + "long " * 100
    server = stage.server(lambda request: response(401, b"", "WWW-Authenticate: Basic realm=\"" + realm + "\""))
    stage.allow(password, server)
    stage.client(answer=lambda params: password_answer("bob", password) if params["previousFailureCount"] == 0 else {"action": "cancel"},
                 name="\x1b[2J\nevil" + "n" * 1000).fetch(server.url)
    wait_for(lambda: kinds(shell.broker).count("challengeAnswered") == 2)
    assert all(len(line) < 2000 for line in lines(shell.broker))
    shown = shell.run("log").stdout.decode()
    assert len(shown.splitlines()) == len(lines(shell.broker))
    assert not any(sign in shown for sign in "\x1b\u202e\x07\r")


# Files

def test_the_audit_log_can_be_switched_off_and_on(stage):
    broker = stage.configured("[audit]\nenabled = false\n")
    client = stage.client()
    assert "result" in client.call("broker/lock")
    broker.reload("")
    clear(client, [1000])
    wait_for_kinds(broker, "sessionCleared")
    broker.reload("[audit]\nenabled = false\n")
    assert "result" in client.call("broker/unlock")
    broker.reload("")
    clear(client, [1001])
    wait_for_kinds(broker, "sessionCleared", "sessionCleared")


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


def test_a_line_has_time_program_action_site_and_user(stage, shell):
    server, password = stage.protected()
    assert shell.run("fetch", server.url.replace("//", f"//bob:{password}@")).stdout == b"welcome"
    wait_for_kinds(shell.broker, "credentialUsed", "credentialStored")
    used, stored = shell.run("log").stdout.decode().splitlines()
    time, _, rest = used.partition("  ")
    assert time == events(shell.broker)[0]["time"].replace("Z", "+00:00")
    pid = events(shell.broker)[0]["client"]["pid"]
    assert rest == f'watchword[{pid}]  used a login for {server.url} ("Staff", Basic) as bob, from its URL'
    assert stored.endswith(f'stored a login for {server.url} ("Staff", Basic) as bob in the session')


def test_lines_and_since_choose(stage, shell):
    clear(stage.client(), range(1000, 1020))
    wait_for(lambda: len(lines(shell.broker)) == 20)
    show = lambda *arguments: numbers(json.loads(line) for line in shell.run("log", "--json", *arguments).stdout.splitlines())
    assert show() == list(range(1000, 1020))
    assert show("--lines", "3") == [1017, 1018, 1019]
    assert show("--lines", "0") == []
    assert show("--since", "1h") == list(range(1000, 1020))
    assert show("--since", "0s") == []
    middle = events(shell.broker)[12]["time"]
    assert show("--since", middle)[-8:] == list(range(1012, 1020))
    assert show("--since", "2999-01-01") == []
    for wrong in (["--lines", "-1"], ["--since", "yesterday"]):
        assert shell.run("log", *wrong).returncode == 64


@pytest.mark.parametrize("zone, offset", [("Europe/Berlin", "+01:00"), ("America/St_Johns", "-03:30"), ("UTC", "+00:00")])
def test_times_are_local(stage, shell, zone, offset):
    shell.environment["TZ"] = zone
    clear(stage.client(), range(1000, 1003))
    wait_for(lambda: len(lines(shell.broker)) == 3)
    moment = datetime.datetime.fromisoformat(events(shell.broker)[1]["time"])
    local = moment.astimezone(zoneinfo.ZoneInfo(zone)).isoformat(timespec="milliseconds")
    shown = shell.run("log").stdout.decode().splitlines()
    assert shown[1].startswith(f"{local}  ") and local.endswith(offset)
    for since in [local, local.removesuffix(offset), events(shell.broker)[1]["time"]]:
        assert shell.run("log", "--since", since).stdout.decode().splitlines()[-2:] == shown[1:]
    later = (moment + datetime.timedelta(hours=1)).astimezone(zoneinfo.ZoneInfo(zone))
    assert shell.run("log", "--since", later.strftime("%Y-%m-%dT%H:%M")).stdout == b""


def test_an_ambiguous_local_time_is_the_first_of_both(stage, shell):
    shell.environment["TZ"] = "Europe/Berlin"
    clear(stage.client(), [1000])
    wait_for(lambda: len(lines(shell.broker)) == 1)
    record, time = lines(shell.broker)[0], events(shell.broker)[0]["time"]
    # The clocks are set back from 3:00 to 2:00 at 1:00 UTC.
    times = [f"2026-10-25T0{hour}:{minute}:00.000Z" for hour in (0, 1) for minute in (20, 40)]
    (state(shell.broker) / "audit.jsonl").write_text("".join(record.replace(time, one) + "\n" for one in times))
    shown = shell.run("log", "--since", "2026-10-25T02:30").stdout.decode().splitlines()
    assert [line.split()[0] for line in shown] == [
        "2026-10-25T02:40:00.000+02:00", "2026-10-25T02:20:00.000+01:00", "2026-10-25T02:40:00.000+01:00"]


def test_a_missing_log_is_not_an_error(stage):
    done = Shell(stage.broker()).run("log")
    assert done.returncode == 0 and done.stdout == b"" and b"audit.jsonl" in done.stderr


@pytest.fixture
def follower(stage):
    """`watchword log --follow`, and its output so far."""
    processes = []

    def start(broker, *arguments):
        process = Shell(broker).start("log", "--follow", "--json", *arguments)
        process.found = []
        read = lambda: [process.found.append(json.loads(line)) for line in process.stdout]
        threading.Thread(target=read, daemon=True).start()
        processes.append(process)
        return process

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.wait(30)


def test_following_continues_through_new_files(stage, follower):
    broker = stage.configured("[audit]\nfile-bytes = 4096\nold-files = 4\n")
    client = stage.client()
    clear(client, range(1000, 1015))
    wait_for(lambda: len(lines(broker)) >= 15)
    process = follower(broker)
    wait_for(lambda: len(process.found) == 10)
    # A follower polls the files: the records between two polls have to fit into them.
    for start in range(1015, 1215, 20):
        clear(client, range(start, start + 20))
        wait_for(lambda: numbers(process.found)[-1:] == [start + 19])
    assert (state(broker) / "audit.4.jsonl").exists()
    assert numbers(process.found) == list(range(1005, 1215))
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130


def test_following_begins_before_there_is_a_file_and_outlives_the_broker(stage, follower):
    broker = stage.broker()
    process = follower(broker)
    wait_for(lambda: is_polling(process))
    clear(stage.client(), [1000])
    wait_for(lambda: numbers(process.found) == [1000])
    broker.kill()
    broker.start()
    clear(stage.client(broker=broker), [1001])
    wait_for(lambda: numbers(process.found) == [1000, 1001])
    assert process.poll() is None


def test_a_reader_that_closes_its_pipe_ends_the_command(stage):
    broker = stage.broker()
    clear(stage.client(), range(1000, 1010))
    wait_for(lambda: len(lines(broker)) == 10)
    process = Shell(broker).start("log", "--follow")
    assert process.stdout.readline()
    process.stdout.close()
    clear(stage.clients[0], [1010])
    assert process.wait(30) == 1 and process.stderr.read() == b""
    process.stderr.close()
