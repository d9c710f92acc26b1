"""The proxy for unchanged programs on a socket of the service manager."""
import contextlib
import socket
import subprocess

import pytest

from rig.manager import Activation
from rig.scripted import ScriptedServer, response


@pytest.fixture
def activation(tmp_path):
    with contextlib.closing(ActivationWithFront(tmp_path)) as activation:
        yield activation


class ActivationWithFront(Activation):
    """Also listens at a TCP port. `configure` writes the configuration."""

    def __init__(self, folder):
        super().__init__(folder)
        self.listeners["front"] = socket.create_server(("127.0.0.1", 0))
        self.port = self.listeners["front"].getsockname()[1]
        (self.folder / ".config" / "watchword").mkdir(parents=True, mode=0o700)
        self.close = self.end

    def configure(self, text):
        path = self.folder / ".config" / "watchword" / "config.toml"
        path.write_text(text)
        path.chmod(0o600)

    def fetch(self, url):
        return subprocess.run(
            ["curl", "-sS", "--noproxy", "", "-x", f"http://127.0.0.1:{self.port}", url], capture_output=True, timeout=30)


def test_a_program_that_connects_before_the_broker_starts_is_served(activation):
    activation.configure(f'[front]\nproxy = "127.0.0.1:{activation.port}"\nhosts = ["127.0.0.1"]\n')
    with contextlib.closing(ScriptedServer(lambda request: response(200, b"page"))) as server:
        with socket.create_connection(("127.0.0.1", activation.port), timeout=30) as early:
            early.sendall(f"GET {server.url}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
            activation.start(("main", "front"), "broker:front")
            assert activation.next()["READY"] == "1"
            assert early.makefile("rb").read().endswith(b"\r\n\r\npage")
        assert activation.fetch(server.url).stdout == b"page"
        activation.process.terminate()
        assert activation.process.wait(30) == 0
        # The service manager still has the socket.
        with socket.create_connection(("127.0.0.1", activation.port), timeout=30) as early:
            early.sendall(f"GET {server.url}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
            activation.process.communicate(timeout=30)
            activation.start(("main", "front"), "broker:front")
            assert early.makefile("rb").read().endswith(b"\r\n\r\npage")


def test_a_socket_at_another_address_than_the_configured_one_is_not_used(activation):
    activation.configure('[front]\nproxy = "127.0.0.1:1"\n')
    activation.start(("main", "front"), "broker:front")
    assert activation.next()["READY"] == "1"
    activation.process.terminate()
    errors = activation.process.communicate(timeout=30)[1]
    assert f"the socket of the service manager is not used" in errors and f"127.0.0.1:{activation.port}" in errors


@pytest.mark.parametrize("address", ["0.0.0.0", "127.0.0.2"])
def test_a_socket_that_others_could_reach_is_refused(activation, address):
    activation.configure("")
    activation.listeners["front"].close()
    activation.listeners["front"] = socket.create_server((address, 0))
    activation.start(("main", "front"), "broker:front")
    errors = activation.process.communicate(timeout=30)[1]
    assert activation.process.returncode != 0 and "does not listen on a TCP port of 127.0.0.1 or ::1" in errors
