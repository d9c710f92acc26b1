"""Socket activation, and notifications to the service manager."""
import os
import signal
import time

import pytest

from rig.manager import Activation
from rig.client import Client


@pytest.fixture(params=["path", "abstract"])
def activation(tmp_path, request):
    activation = Activation(tmp_path, is_abstract=request.param == "abstract")
    yield activation
    activation.end()


@pytest.fixture
def plain(tmp_path):
    activation = Activation(tmp_path)
    yield activation
    activation.end()


def is_restricted(path):
    client = Client(path, delivery=None)
    reply = client.call("server/status", {})
    client.close()
    return "error" in reply and reply["error"]["data"]["kind"] == "denied"


def test_the_manager_is_notified_of_start_reload_and_end(activation):
    configuration = activation.folder / ".config" / "watchword" / "config.toml"
    configuration.parent.mkdir(parents=True)
    activation.start()
    assert activation.next() == {"READY": "1", "STATUS": "Listening."}
    for text, said in [
            ("malformed", "Listening; the configuration is invalid."),
            ('[process]\nfilter-system-calls = true\n[tokens]\nmodule = "/m.so"\n',
             "Listening; restart the broker for tokens.module and process.filter-system-calls to take effect."),
            ("", "Listening.")]:
        configuration.write_text(text)
        before = time.monotonic_ns() // 1000
        activation.process.send_signal(signal.SIGHUP)
        began = activation.next()
        assert began["RELOADING"] == "1" and before <= int(began["MONOTONIC_USEC"]) <= time.monotonic_ns() // 1000
        assert activation.next() == {"READY": "1", "STATUS": said}
    activation.process.send_signal(signal.SIGTERM)
    assert activation.next()["STOPPING"] == "1"
    assert activation.process.wait(30) == 0


@pytest.mark.parametrize("handed,names", [
    (("main", "restricted"), "broker:restricted"), (("restricted", "main"), "restricted:broker"), (("main",), "broker"),
    (("main",), "-")])
def test_sockets_are_assigned_by_name_and_not_removed(plain, handed, names):
    plain.start(handed, names)
    plain.next()
    for name in handed:
        assert is_restricted(plain.paths[name]) is (name == "restricted")
    assert not (plain.folder / ".local" / "share").exists()
    plain.process.terminate()
    assert plain.process.wait(30) == 0
    assert os.path.exists(plain.paths["main"]) and os.path.exists(plain.paths["restricted"])


def test_the_watchdog_is_notified(plain):
    plain.start(WATCHDOG_USEC="100000")
    plain.next()
    assert all(plain.lives() for _ in range(3))
    plain.process.send_signal(signal.SIGSTOP)
    while plain.lives(0.3):
        pass
    plain.process.send_signal(signal.SIGCONT)
    assert plain.lives()


def test_without_a_watchdog_no_notifications_are_sent(plain):
    plain.start()
    plain.next()
    assert not plain.lives(0.2)


def test_an_absent_manager_stops_nothing(plain):
    plain.heard.close()
    plain.start()
    assert is_restricted(plain.paths["restricted"])
    plain.process.terminate()
    assert plain.process.wait(30) == 0
