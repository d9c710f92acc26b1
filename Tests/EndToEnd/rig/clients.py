"""Where the clients are, and fixtures for trying them."""
import asyncio
import contextlib
import pathlib
import sys

import pytest

from .client_sites import ClientSite

CLIENTS = pathlib.Path(__file__).resolve().parents[3] / "contrib" / "clients"
sys.path.insert(0, str(CLIENTS / "python"))


@pytest.fixture
def site(stage):
    """A `ClientSite` whose user is bob; `site.password` is what it wants, `site.broker_path` where the broker is."""
    password = stage.secret()
    site = stage.server(ClientSite("bob", password))
    stage.allow(password, site)
    site.password, site.broker = password, stage.broker()
    site.broker_path = site.broker.socket
    site.log_in = lambda challenge: ("bob", password)
    return site


def run(coroutine, seconds=20):
    """What the coroutine returns; it has to end in time."""
    return asyncio.run(asyncio.wait_for(coroutine, seconds))


@contextlib.contextmanager
def scripted(tmp_path, *lines):
    """A socket whose broker answers each line that comes with the next of `lines`, and then hangs up."""
    import socket
    import threading

    path = str(tmp_path / "scripted.sock")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(1)

    def serve():
        connection, _ = listener.accept()
        with connection, connection.makefile("rb") as asked:
            for line in lines:
                asked.readline()
                connection.sendall(line)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield path
    finally:
        listener.close()
        thread.join(5)
