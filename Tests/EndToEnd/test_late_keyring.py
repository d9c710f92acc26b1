"""libsecret and GLib are loaded on the first use of the keyring, not at the start of a program."""
import os
import platform
import subprocess

import pytest

from rig.broker import program
from rig.client import password_answer
from rig.scripted import basic_server

KEYRING = ("libsecret-1.so", "libglib-2.0.so", "libgobject-2.0.so", "libgio-2.0.so")
# On other systems the linker binds the functions.
pytestmark = pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="no table of functions for this processor")


def loaded(broker):
    """Returns which of the keyring's libraries the broker has loaded."""
    with open(f"/proc/{broker.process.pid}/maps") as maps:
        text = maps.read()
    return [name for name in KEYRING if name in text]


@pytest.mark.parametrize("name", ["watchword", "watchwordd"])
def test_no_program_is_linked_with_them(name):
    """A function that Sources/CSecretLoader/functions.h does not list would link its library again."""
    found = subprocess.run(["readelf", "--dynamic", "--wide", program(name)], capture_output=True, text=True, check=True).stdout
    needed = [line for line in found.splitlines() if "(NEEDED)" in line]
    assert needed and not [line for line in needed if any(library in line for library in KEYRING)]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root sees what a broker has loaded")
def test_the_first_use_loads_them(stage, gnome):
    broker = stage.broker(environment=gnome.for_broker)
    client = stage.client(broker=broker)
    assert loaded(broker) == []
    client.call("credential/list", None)
    assert loaded(broker) == list(KEYRING)
    assert client.call("server/status")["result"]["keyring"]["state"] == "usable"


def test_a_library_that_cannot_be_loaded(stage, gnome, tmp_path):
    """Only the keyring is unavailable, and the reason names the library. A netrc file is not used instead of the keyring, which
    may contain another login. The library may become available later."""
    library = tmp_path / "libsecret-1.so.0"
    library.write_text("no library")
    password = stage.secret()
    server = stage.server(basic_server("bob", password))
    stage.allow(password, server)
    netrc = stage.folder / "logins.netrc"
    netrc.write_text(f"machine 127.0.0.1:{server.port} login eve password wrong\n")
    netrc.chmod(0o600)
    broker = stage.configured(
        f'[credentials]\nnetrc = "{netrc}"\n', environment={**gnome.for_broker, "LD_LIBRARY_PATH": str(tmp_path)})
    client = stage.client(broker=broker, answer=lambda challenge: password_answer("bob", password))
    for _ in range(2):
        keyring = client.call("credential/list", None)["result"]["keyring"]
        assert keyring["state"] == "unavailable"
        status = client.call("server/status")["result"]["keyring"]
        assert status["kind"] == "refused" and "libsecret-1" in status["reason"]
    assert client.fetch(server.url)["result"]["status"] == 200
    assert len(server.authorizations) == 2, "the netrc file was not used"
    library.unlink()
    assert client.call("credential/list", None)["result"]["keyring"]["state"] != "unavailable"
    assert broker.stop() == 0


def test_without_a_bus_there_is_no_keyring_to_load_a_library_for(stage, tmp_path):
    (tmp_path / "libsecret-1.so.0").write_text("no library")
    password = stage.secret()
    server = stage.server(basic_server("bob", password))
    stage.allow(password, server)
    netrc = stage.folder / "logins.netrc"
    netrc.write_text(f"machine 127.0.0.1:{server.port} login bob password {password}\n")
    netrc.chmod(0o600)
    broker = stage.configured(f'[credentials]\nnetrc = "{netrc}"\n', environment={"LD_LIBRARY_PATH": str(tmp_path)})
    result = stage.client(broker=broker, answer=lambda challenge: pytest.fail("unexpected challenge")).fetch(server.url)["result"]
    assert (result["status"], result["auth"]["source"]) == (200, "netrc")
