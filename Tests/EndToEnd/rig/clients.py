"""The paths of the clients, and fixtures to test them."""
import asyncio
import sys

import pytest

from .broker import part
from .client_sites import ClientSite
from .scripted_broker import scripted  # noqa: F401

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
