"""The agent's notifications: a question whose window does not have the keyboard focus."""
import json
import pathlib
import subprocess

import pytest

from rig.desktop import Desktop
from rig.waiting import is_ready
from test_agent_looks import Shower

pytestmark = pytest.mark.tier3("windows")


class Service:
    """The notification service of a desktop; see rig/notifications.py."""

    def __init__(self, desktop):
        script = pathlib.Path(__file__).parent / "rig" / "notifications.py"
        # Without a buffer: `is_ready` does not see lines that are already read.
        self.process = desktop.start("/usr/bin/python3", str(script), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        assert self.next() == {"ready": True}

    def next(self):
        assert is_ready(self.process.stdout, 20), "no notification"
        return json.loads(self.process.stdout.readline())

    def click(self, number):
        self.process.stdin.write(f"{number}\n".encode())
        self.process.stdin.flush()


@pytest.fixture(scope="module")
def service(desktop):
    return Service(desktop)


@pytest.fixture(scope="module")
def behind(desktop, service):
    """Shows windows without the focus."""
    return Shower(desktop, "behind")


def test_an_unfocused_question_has_a_notification_until_it_is_answered(service, behind):
    behind("login-ntlm-saved")
    shown = service.next()
    assert (shown["summary"], shown["body"]) == ("Log in to intranet.example", "Asked by mytool")
    assert shown["actions"] == ["default", "Answer"]
    behind("trust-changed")
    # The first is withdrawn once its number is known.
    closed, following = sorted([service.next(), service.next()], key=lambda said: "shown" in said)
    assert closed == {"closed": shown["shown"]}
    shown = following
    assert shown["summary"] == "Is this really intranet.example?"
    service.click(shown["shown"])
    assert service.next() == {"closed": shown["shown"]}, "the window came to the front"


def test_the_program_name_is_escaped_in_a_notification(service, behind):
    behind("login-ntlm-saved", requester={"name": "x", "pid": 7, "subject": "exe:/tmp/<b>&Bank"})
    assert service.next()["body"] == "Asked by &lt;b&gt;&amp;Bank"


def test_a_window_with_the_focus_causes_no_notification(tmp_path):
    desktop = Desktop(tmp_path / "front")
    try:
        service, show = Service(desktop), Shower(desktop)
        show("login-ntlm-saved")
        desktop.hear("Password", role="password text", focused=True)
        desktop.hear("Log In", role="push button", sensitive=True)
        # The initial delay has passed. The next call of the service is the test's own.
        desktop.run("gdbus", "call", "--session", "--dest", "org.freedesktop.Notifications", "--object-path",
                    "/org/freedesktop/Notifications", "--method", "org.freedesktop.Notifications.CloseNotification", "77")
        assert service.next() == {"closed": 77}
    finally:
        desktop.end()
