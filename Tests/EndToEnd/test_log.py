"""`watchword log`: the uses of logins by programs, for users."""
import datetime
import json
import signal
import threading
import zoneinfo

import pytest

from rig.audit import clear, events, lines, numbers, state, wait_for, wait_for_kinds
from rig.terminal import Shell
from rig.waiting import is_polling


def test_a_line_has_time_program_action_site_and_user(stage):
    server, password = stage.protected()
    broker = stage.broker()
    shell = Shell(broker)
    assert shell.run("fetch", server.url.replace("//", f"//bob:{password}@")).stdout == b"welcome"
    wait_for_kinds(broker, "credentialUsed", "credentialStored")
    used, stored = shell.run("log").stdout.decode().splitlines()
    time, _, rest = used.partition("  ")
    assert time == events(broker)[0]["time"].replace("Z", "+00:00")
    pid = events(broker)[0]["client"]["pid"]
    assert rest == f'watchword[{pid}]  used a login for {server.url} ("Staff", Basic) as bob, from its URL'
    assert stored.endswith(f'stored a login for {server.url} ("Staff", Basic) as bob in the session')


def test_lines_and_since_choose(stage):
    broker = stage.broker()
    shell = Shell(broker)
    client = stage.client()
    clear(client, range(1000, 1020))
    wait_for(lambda: len(lines(broker)) == 20)
    show = lambda *arguments: numbers(json.loads(line) for line in shell.run("log", "--json", *arguments).stdout.splitlines())
    assert show() == list(range(1000, 1020))
    assert show("--lines", "3") == [1017, 1018, 1019]
    assert show("--lines", "0") == []
    assert show("--since", "1h") == list(range(1000, 1020))
    assert show("--since", "0s") == []
    middle = events(broker)[12]["time"]
    assert show("--since", middle)[-8:] == list(range(1012, 1020))
    assert show("--since", "2999-01-01") == []
    for wrong in (["--lines", "-1"], ["--since", "yesterday"]):
        assert shell.run("log", *wrong).returncode == 64


@pytest.mark.parametrize("zone, offset", [("Europe/Berlin", "+01:00"), ("America/St_Johns", "-03:30"), ("UTC", "+00:00")])
def test_times_are_local(stage, zone, offset):
    broker = stage.broker()
    shell = Shell(broker)
    shell.environment["TZ"] = zone
    client = stage.client()
    clear(client, range(1000, 1003))
    wait_for(lambda: len(lines(broker)) == 3)
    moment = datetime.datetime.fromisoformat(events(broker)[1]["time"])
    local = moment.astimezone(zoneinfo.ZoneInfo(zone)).isoformat(timespec="milliseconds")
    shown = shell.run("log").stdout.decode().splitlines()
    assert shown[1].startswith(f"{local}  ") and local.endswith(offset)
    for since in [local, local.removesuffix(offset), events(broker)[1]["time"]]:
        assert shell.run("log", "--since", since).stdout.decode().splitlines()[-2:] == shown[1:]
    later = (moment + datetime.timedelta(hours=1)).astimezone(zoneinfo.ZoneInfo(zone))
    assert shell.run("log", "--since", later.strftime("%Y-%m-%dT%H:%M")).stdout == b""


def test_a_missing_log_is_not_an_error(stage):
    broker = stage.broker()
    done = Shell(broker).run("log")
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
