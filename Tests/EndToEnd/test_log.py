"""`watchword log`: what people see of who used what for where."""
import json
import signal
import subprocess
import threading
import time

import pytest

from rig.audit import clear, events, lines, numbers, protected, state, wait_for, wait_for_kinds
from rig.broker import program
from rig.terminal import Shell


def test_a_line_says_when_who_what_where_as_whom(stage):
    server, password = protected(stage)
    broker = stage.broker()
    shell = Shell(broker)
    assert shell.run("fetch", server.url.replace("//", f"//bob:{password}@")).stdout == b"welcome"
    wait_for_kinds(broker, "credentialUsed", "credentialStored")
    used, stored = shell.run("log").stdout.decode().splitlines()
    time, _, rest = used.partition("  ")
    assert time == events(broker)[0]["time"]
    pid = events(broker)[0]["client"]["pid"]
    assert rest == f'watchword[{pid}]  used a log-in for {server.url} ("Staff", Basic) as bob, which was in its URL'
    assert stored.endswith(f'stored a log-in for {server.url} ("Staff", Basic) as bob in the session')


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


def test_no_log_is_no_mistake(stage):
    broker = stage.broker()
    done = Shell(broker).run("log")
    assert done.returncode == 0 and done.stdout == b"" and b"audit.jsonl" in done.stderr


@pytest.fixture
def follower(stage):
    """`watchword log --follow`, and all that it has printed so far."""
    processes = []

    def start(broker, *arguments):
        process = subprocess.Popen(
            [program("watchword"), "log", "--follow", "--json", *arguments], env=Shell(broker).environment,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.found = []
        read = lambda: [process.found.append(json.loads(line)) for line in process.stdout]
        threading.Thread(target=read, daemon=True).start()
        processes.append(process)
        return process

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.wait(10)


def test_following_goes_on_through_new_files(stage, follower):
    broker = stage.configured("[audit]\nfile-bytes = 4096\nold-files = 4\n")
    client = stage.client()
    clear(client, range(1000, 1015))
    wait_for(lambda: len(lines(broker)) >= 15)
    process = follower(broker)
    wait_for(lambda: len(process.found) == 10)
    for start in range(1015, 1215, 10):
        clear(client, range(start, start + 10))
        time.sleep(0.1)
    assert (state(broker) / "audit.4.jsonl").exists()
    wait_for(lambda: numbers(process.found)[-1:] == [1214])
    assert numbers(process.found) == list(range(1005, 1215))
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 130


def test_following_begins_before_there_is_a_file_and_outlives_the_broker(stage, follower):
    broker = stage.broker()
    process = follower(broker)
    time.sleep(0.3)
    clear(stage.client(), [1000])
    wait_for(lambda: numbers(process.found) == [1000])
    broker.kill()
    broker.start()
    clear(stage.client(broker=broker), [1001])
    wait_for(lambda: numbers(process.found) == [1000, 1001])
    assert process.poll() is None


def test_a_reader_that_has_enough_ends_it(stage):
    broker = stage.broker()
    clear(stage.client(), range(1000, 1010))
    wait_for(lambda: len(lines(broker)) == 10)
    process = subprocess.Popen(
        [program("watchword"), "log", "--follow"], env=Shell(broker).environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline()
    process.stdout.close()
    clear(stage.clients[0], [1010])
    assert process.wait(10) == 1 and process.stderr.read() == b""
    process.stderr.close()
