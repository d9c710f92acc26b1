"""The agent's windows for logins in the browser, with a scripted broker, a browser that only records what it is to open, and the
program that reads QR codes."""
import os
import queue
import time

import pytest

from rig.bodies import eventually
from test_shown_logins import BROWSER, DEVICE, agent_broker, challenge  # noqa: F401

pytestmark = pytest.mark.tier3("windows")

RECORDER = """#!/bin/sh
printf '%s %s %s\\n' "$(umask)" "$#" "$*" >> '{log}'
exit {status}
"""
ENTRY = """[Desktop Entry]
Type=Application
Name=Recorder
Exec={path} %u
MimeType=x-scheme-handler/http;x-scheme-handler/https;
"""
#: The browsers of this machine are not used.
NO_BROWSER = "[Removed Associations]\nx-scheme-handler/http=chromium.desktop;\nx-scheme-handler/https=chromium.desktop;\n"
OWN_BROWSER = "[Default Applications]\nx-scheme-handler/http=recorder.desktop\nx-scheme-handler/https=recorder.desktop\n"


class Browser:
    """A program in place of a browser, which records umask, number of arguments, and arguments. With `kind` "default" it is the
    browser of the desktop, otherwise the program `xdg-open`."""

    def __init__(self, folder, desktop, kind, status):
        self.log, self.bin = folder / "opened", folder / "bin"
        self.bin.mkdir()
        path = self.bin / ("recorder" if kind == "default" else "xdg-open")
        path.write_text(RECORDER.format(log=self.log, status=status))
        path.chmod(0o755)
        data = folder / "data" / "applications"
        data.mkdir(parents=True)
        (data / "recorder.desktop").write_text(ENTRY.format(path=path))
        self.environment = {"PATH": f"{self.bin}:{os.environ['PATH']}"}
        if kind == "default":
            self.environment["XDG_DATA_HOME"] = str(folder / "data")
        (desktop.folder / "config" / "mimeapps.list").write_text(OWN_BROWSER if kind == "default" else NO_BROWSER)

    @property
    def opened(self):
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def start(tmp_path, desktop, agent_broker, start_agent):  # noqa: F811
    """`start(kind, status)` starts an agent whose browser is `kind`; returns the agent, its broker and the browser."""
    def begin(kind="xdg-open", status=0, options=(), environment=None):
        browser = Browser(tmp_path, desktop, kind, status)
        agent = start_agent(agent_broker, desktop, *options, environment={**browser.environment, **(environment or {})})
        return agent.wait_until_registered(), agent_broker, browser

    return begin


def names(desktop):
    return [one["name"] for one in desktop.heard()]


def qr_code(desktop):
    """Returns the text of the QR code on the screen, if there is one."""
    return desktop.run("zbarimg", "--quiet", "--raw", str(desktop.picture("device"))).stdout.rstrip("\n")


@pytest.mark.parametrize("kind", ["default", "xdg-open"])
def test_the_page_is_opened_by_a_click_and_the_window_closes_after_the_login(start, desktop, kind):
    agent, broker, browser = start(kind)
    broker.ask(challenge(BROWSER))
    agent.window("Browser Login")
    for text in ("Log in at login.example", "Program: mytool", "Site: https://api.example", "Scopes: read, write", "Time left: 10 minutes"):
        desktop.hear(text)
    desktop.hear("Not Now", role="push button", focused=True)
    desktop.hear("Open Browser", role="push button", sensitive=True)
    assert browser.opened == [], "nothing is opened without a click"
    agent.press("Open Browser")
    desktop.hear("Waiting for the login in the browser…")
    umask = os.umask(0o022)
    os.umask(umask)
    line = f"{umask:04o} 1 {BROWSER['url']}"
    eventually(lambda: browser.opened == [line], lambda: browser.opened)
    desktop.picture(f"waiting-{kind}")
    agent.press("Open Again", "alt+g")
    eventually(lambda: browser.opened == [line] * 2, lambda: browser.opened)
    broker.withdraw()
    agent.no_window("Browser Login")
    broker.ask(challenge(BROWSER, challengeId="c2"))
    agent.window("Browser Login")
    assert not any("Stop Asking" in name for name in names(desktop)), "the login was not a refusal"
    desktop.hear("Not Now", role="push button", focused=True)
    desktop.key("Escape")
    assert broker.answer() == {"action": "cancel"}
    agent.no_window("Browser Login")
    assert broker.replies.empty() and len(agent.log.splitlines()) == 1, agent.log


def test_an_address_of_another_machine_is_not_opened(start, desktop):
    agent, broker, browser = start()
    broker.ask(challenge(BROWSER, url="http://127.0.0.1.evil.example/"))
    agent.window("Browser Login")
    desktop.hear("The address of this login is not opened, because it is not one of this machine: http://127.0.0.1.evil.example/")
    # The other buttons are enabled after the initial delay.
    time.sleep(0.6)
    desktop.hear("Open Browser", role="push button", sensitive=False)
    desktop.key("alt+o")
    agent.press("Not Now")
    assert broker.answer() == {"action": "cancel"}
    assert browser.opened == []


def test_a_code_is_shown_with_its_address_its_qr_code_and_a_warning(start, desktop):
    agent, broker, browser = start()
    broker.ask(challenge(DEVICE))
    agent.window("Browser Login")
    desktop.hear("Continue only if you started this. If someone sent you this code, cancel.")
    desktop.hear("WDJB-MJHT", role="label", focusable=True)
    desktop.hear("https://login.example/device", role="label", focusable=True)
    assert eventually(lambda: qr_code(desktop), "no QR code") == DEVICE["completeUrl"]
    agent.press("Copy Code")
    agent.press("Enter a Token by Hand")
    agent.window("Token")
    desktop.hear("Token", role="password text", focused=True)
    desktop.key("ctrl+v")
    agent.press("Send", "Return")
    answer = broker.answer()
    assert answer["credential"]["token"] == "WDJB-MJHT" and answer["credential"]["type"] == "token"
    agent.no_window("Token")
    assert browser.opened == []


def test_the_page_for_the_code_is_opened_without_the_code(start, desktop):
    """Some servers approve a login as soon as the address with the code is opened."""
    agent, broker, browser = start()
    broker.ask(challenge(DEVICE))
    agent.window("Browser Login")
    agent.press("Open Browser")
    eventually(lambda: browser.opened, "nothing was opened")
    assert browser.opened[0].endswith(" 1 https://login.example/device")
    # The window for the token closes as well.
    agent.press("Enter a Token by Hand", "alt+t")
    agent.window("Token")
    broker.withdraw()
    agent.no_window("Token")
    assert broker.replies.empty()


def test_without_a_browser_the_address_is_copied_and_without_qrencode_there_is_no_qr_code(start, desktop, tmp_path):
    agent, broker, browser = start(status=3, environment={"PATH": f"{tmp_path}/bin"})
    broker.ask(challenge(DEVICE))
    agent.window("Browser Login")
    agent.press("Open Browser")
    desktop.hear("No browser was found. Copy the address into one.")
    # Not replaced by the next look at the clock.
    time.sleep(1.2)
    desktop.hear("No browser was found. Copy the address into one.")
    assert qr_code(desktop) == ""
    agent.press("Copy Address", "alt+a")
    agent.press("Enter a Token by Hand", "alt+t")
    agent.window("Token")
    desktop.hear("Token", role="password text", focused=True)
    desktop.key("ctrl+v")
    agent.press("Send", "Return")
    assert broker.answer()["credential"]["token"] == DEVICE["url"]


def test_the_time_of_a_login_ends(start, desktop):
    agent, broker, browser = start()
    broker.ask(challenge(BROWSER, seconds=4))
    agent.window("Browser Login")
    desktop.hear("Time left: ")
    desktop.hear("Open Browser", role="push button", sensitive=True)
    desktop.hear("The time for this login is over.")
    desktop.hear("Open Browser", role="push button", sensitive=False)
    desktop.picture("over")
    with pytest.raises(queue.Empty):
        broker.replies.get(timeout=0.5)
    agent.press("Not Now")
    assert broker.answer() == {"action": "cancel"}
    assert browser.opened == []


def test_zenity_shows_the_code_opens_the_page_and_closes(start, desktop):
    agent, broker, browser = start(options=("--fallback", "zenity"))
    broker.ask(challenge(DEVICE))
    shown = desktop.hear("Log in at login.example")["name"]
    assert "\nhttps://login.example/device\nWDJB-MJHT\n" in shown and "Continue only if you started this." in shown
    desktop.hear("Open the browser")
    desktop.has_keyboard("Watchword")
    desktop.picture("zenity")
    desktop.key("Home", "space", "Return")
    eventually(lambda: browser.opened, "nothing was opened")
    assert browser.opened[0].endswith(f" 1 {DEVICE['url']}")
    desktop.hear("Enter a token by hand")
    broker.withdraw()
    eventually(lambda: not desktop.windows(), lambda: desktop.summary())
    assert broker.replies.empty()
