"""The paths of the clients, and fixtures to test them."""
import asyncio
import contextlib
import json
import socket
import sys
import threading

import pytest

from .broker import part
from .client_sites import ClientSite
from .scripted import end_listening

CLIENTS = part("share/watchword/clients", "clients")
sys.path.insert(0, str(CLIENTS / "python"))


@pytest.fixture
def site(stage):
    """A `ClientSite` for the user bob with the password `site.password`; `site.broker_path` is the broker's socket."""
    password = stage.secret()
    site = stage.server(ClientSite("bob", password))
    stage.allow(password, site)
    site.password, site.broker = password, stage.broker()
    site.broker_path = site.broker.socket
    site.log_in = lambda challenge: ("bob", password)
    return site


@pytest.fixture
def login(tmp_path):
    """`login(user, password)` writes a file that the scripts of the clients read, and returns its path."""
    def write(user, password):
        path = tmp_path / "login"
        path.touch(mode=0o600)
        path.write_text(f"{user}\n{password}\n", newline="")
        return path

    return write


def run(coroutine, seconds=30):
    """Returns the result of a coroutine, which must end in time."""
    return asyncio.run(asyncio.wait_for(coroutine, seconds))


@contextlib.contextmanager
def scripted(folder, answer):
    """Yields the path of a socket whose broker sends the messages that `answer(message)` yields, and then closes the connection if that
    returned None."""
    path = folder / "scripted.sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()

    def serve(connection):
        with contextlib.suppress(OSError), connection, connection.makefile("rb") as asked:
            for line in asked:
                if (told := answer(json.loads(line))) is None:
                    return
                connection.sendall(b"".join(json.dumps({"jsonrpc": "2.0", **one}).encode() + b"\n" for one in told))

    def accept():
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield str(path)
    finally:
        end_listening(listener)
