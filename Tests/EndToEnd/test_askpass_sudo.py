"""`watchword-askpass` as the askpass program of the real sudo, with `watchword agent` at a terminal."""
import os
import subprocess

import pytest

from rig.bodies import eventually
from rig.fixtures import new_password, reachable_folder
from rig.manager import SudoUser
from rig.terminal import Terminal

if os.geteuid() != 0:
    pytest.fail("only root can give a user a password; run the tests as root", pytrace=False)


@pytest.fixture
def user():
    """A user with a running broker, and the password."""
    password = new_password()
    with reachable_folder("sudo") as folder:
        user = SudoUser(folder, password)
        with open(folder / "broker.log", "wb") as log:
            broker = subprocess.Popen(user.inside(f"{folder}/binaries/watchwordd"), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            eventually((user.runtime / "watchword" / "broker.sock").exists, lambda: (folder / "broker.log").read_text())
            yield user, password
            assert password not in (folder / "broker.log").read_text()
        finally:
            broker.terminate()
            broker.wait(20)
            user.end()


def test_sudo_gets_its_password_from_the_agent(user):
    user, password = user
    agent = Terminal(*user.inside(f"{user.folder}/binaries/watchword", "agent"), environment=dict(os.environ))
    agent.expect("showing the questions of all programs")
    sudo = subprocess.Popen(
        user.inside("sudo", "-A", "id", "-u"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    agent.expect('"sudo" asks (its name and text are not verified):\r\n    [sudo] password for desk:')
    agent.expect("Your answer (Ctrl-D to cancel): ")
    agent.type("wrong\n")
    # sudo asks again after a wrong password.
    agent.expect("Your answer (Ctrl-D to cancel): ", times=2)
    agent.type(password + "\n")
    output, errors = sudo.communicate(timeout=60)
    assert (sudo.returncode, output) == (0, b"0\n"), errors
    refused = subprocess.Popen(
        user.inside("sudo", "-k", "-A", "true"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True)
    agent.expect("Your answer (Ctrl-D to cancel): ", times=3)
    agent.type("\x04")
    assert b"no password was provided" in refused.communicate(timeout=60)[1] and refused.returncode == 1
    agent.type("\x03")
    assert agent.end() == 130
    assert password.encode() not in agent.shown
