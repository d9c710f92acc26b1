"""The broker's socket file is removed or replaced while it runs: the broker listens again within seconds, or exits with a
message."""
import os
import socket

import pytest

from rig.manager import Activation
from rig.bodies import eventually
from rig.client import Client


def answers(path):
    try:
        client = Client(path, delivery=None)
    except OSError:
        return False
    try:
        return client.call("ping").get("result") == {}
    finally:
        client.close()


def sockets(broker):
    return [broker.socket, os.path.join(os.path.dirname(broker.socket), "restricted.sock")]


def remove(path):
    os.unlink(path)


def replace_with_a_dead_socket(path):
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(path + ".new")
    os.replace(path + ".new", path)


@pytest.mark.parametrize("harm", [remove, replace_with_a_dead_socket])
def test_the_broker_listens_again(stage, harm):
    broker = stage.broker()
    before = stage.client(broker=broker, delivery=None)
    for path in sockets(broker):
        harm(path)
    for path in sockets(broker):
        eventually(lambda: answers(path), lambda: broker.log[-1500:])
        assert os.stat(path).st_mode & 0o777 == 0o600
    assert before.call("ping")["result"] == {}, "open connections continue"
    assert broker.stop() == 0
    assert not any(os.path.exists(path) for path in sockets(broker))


def test_a_socket_is_created_again_with_its_removed_directory(stage):
    broker = stage.broker()
    folder = os.path.dirname(broker.socket)
    os.rename(folder, folder + ".away")
    eventually(lambda: answers(broker.socket), lambda: broker.log[-1500:])
    assert os.stat(folder).st_mode & 0o777 == 0o700


def test_a_file_that_is_not_a_socket_ends_the_broker_and_stays(stage):
    broker = stage.broker()
    with open(broker.socket + ".new", "w") as file:
        file.write("precious")
    os.replace(broker.socket + ".new", broker.socket)
    assert broker.process.wait(30) == 1
    assert "not a socket" in broker.log.splitlines()[-1]
    with open(broker.socket) as file:
        assert file.read() == "precious"


@pytest.mark.parametrize("name", ["main", "restricted"])
def test_the_service_managers_socket_ends_the_broker_with_a_message(tmp_path, name):
    """Only the service manager can create the socket again."""
    activation = Activation(tmp_path).start()
    try:
        assert activation.next()["READY"] == "1"
        os.unlink(activation.paths[name])
        assert activation.next()["STOPPING"] == "1"
        assert activation.process.wait(30) == 4
        said = activation.process.stderr.read().splitlines()[-1]
        assert activation.paths[name] in said and "systemctl --user restart watchword.socket" in said
    finally:
        activation.end()
