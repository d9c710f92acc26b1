"""The agent's windows for less common logins, for the prompts of programs, and for logins in the browser, with a scripted broker, a browser
that only records what it is to open, and the program that reads QR codes."""
import os
import queue
import subprocess
import time

import pytest

from rig.bodies import eventually
from rig.desktop import Desktop
from rig.ntlm import DOMAIN
from rig.scripted import basic, basic_server, bearer_server
from rig.servers import executable
from rig.terminal import Shell
from rig.tls import PASSPHRASE
from test_agent_looks import GERMAN, SCREEN, Shower
from test_agent_windows import ask, asked, started, two_logins  # noqa: F401
from test_bridges import tools  # noqa: F401
from test_shown_logins import BROWSER, DEVICE, agent_broker, challenge  # noqa: F401

pytestmark = pytest.mark.tier3("windows")


def test_ntlm_asks_for_the_domain_too(stage, asked, desktop, ntlm, ntlm_users):
    stage.watch(ntlm)
    agent, client, fetch = asked(ntlm.url, "Log In", stage.configured('[schemes]\nntlm = ["127.0.0.1"]\n'))
    agent.open_details()
    desktop.hear("NTLM: a hash is sent, which can be relayed")
    desktop.key("alt+u")
    desktop.fill({"User": "alice", "Password": ntlm_users["alice"]})
    desktop.key("alt+m")
    desktop.fill({"Domain": DOMAIN})
    desktop.picture("ntlm")
    agent.press("Log In", "Return")
    assert client.wait(fetch)["result"]["status"] == 200
    assert ntlm.handler.served[-1][2] == f"{DOMAIN}\\alice"


def test_a_token_is_typed_refused_and_typed_again(stage, asked, desktop):
    token = stage.secret()
    server = stage.server(bearer_server(token))
    stage.allow(token, server)
    agent, client, fetch = asked(server.url, "Token")
    agent.open_details()
    desktop.hear("Bearer: the token itself is sent")
    desktop.key("alt+t")
    desktop.hear("Token", role="password text", focused=True)
    desktop.hear("Cancel", role="push button")
    desktop.key("Return")
    desktop.type("not-it")
    agent.press("Send", "Return")
    desktop.hear("The last token was refused. Attempt 2.")
    desktop.hear("Token", role="password text", focused=True)
    desktop.picture("token")
    desktop.type(token)
    agent.press("Send", "Return")
    assert client.wait(fetch)["result"]["body"]["value"] == "for the bearer\n"


@pytest.mark.parametrize("scheme", ["basic", "digest"])
def test_a_proxy_is_named_as_a_proxy(stage, asked, desktop, squid, nginx, account, scheme):
    user, password = account
    stage.watch(squid, nginx)
    broker = stage.configured(f'[proxy]\nurl = "{squid.url(scheme)}"\n')
    agent, client, fetch = asked(f"http://127.0.0.1:{nginx.port}/open.txt", "Log In", broker)
    desktop.hear_all(f"Log in to the proxy localhost:{squid.ports[scheme]}", "The proxy says: “Proxy”")
    desktop.fill({"User": user, "Password": password})
    desktop.picture(f"proxy-{scheme}")
    agent.press("Log In", "Return")
    result = client.wait(fetch)["result"]
    assert (result["status"], result["proxyAuth"]["source"]) == (200, "agent")


def test_an_empty_password_is_sent_by_the_button_and_not_by_enter(stage, asked, desktop):
    server = stage.server(basic_server("a-token-as-user", ""))
    agent, client, fetch = asked(server.url, "Log In")
    desktop.fill({"User": "a-token-as-user"})
    desktop.hear("Log In", role="push button", sensitive=True)
    for _ in range(3):
        desktop.key("Return")
    # Keys are handled in order: once this one has had its effect, so have the others.
    desktop.hear("Password", role="password text", focused=True)
    desktop.key("shift+Tab")
    desktop.hear("User", role="text", focused=True)
    assert server.authorizations == [None], "nothing was sent"
    agent.press("Log In", "alt+l")
    assert client.wait(fetch)["result"]["status"] == 200


def test_a_stored_login_is_offered_and_used(stage, started, desktop, kerberos_users, kerberos_apache, realm):
    """Without a ticket, the weaker scheme must be asked about."""
    broker = stage.configured('[schemes]\nnegotiate = ["localhost"]\n', environment=realm.environment())
    agent, client = started(broker), stage.client(delivery=None)
    url = kerberos_apache.url + "/either/page.txt"
    own = {"type": "password", "user": "bob", "password": kerberos_users["bob"]}
    assert client.fetch(url, credential=own)["result"]["status"] == 200
    fetch = ask(client, url, auth={"interaction": "agent", "preemptive": False})
    agent.window("Log In")
    desktop.hear("Use the Saved Login of bob", role="push button")
    desktop.picture("stored")
    desktop.hear("Log In", role="push button", sensitive=True)
    agent.press("Use the Saved Login of bob", "alt+e")
    assert client.wait(fetch)["result"]["status"] == 200


def test_one_of_several_saved_logins_is_picked(stage, asked, desktop, gnome):
    server, password = two_logins(stage, gnome)
    agent, client, fetch = asked(server.url, "Log In", stage.broker(environment=gnome.for_broker))
    # The list is enabled after the initial delay.
    desktop.hear("Saved logins: choose one, or type another", role="list", sensitive=True)
    desktop.hear("“alice”, saved in the keyring", role="list item")
    desktop.hear("“bob”, saved in the keyring", role="list item")
    desktop.hear("User", role="text", focused=True)
    desktop.key("alt+a")
    if not desktop.hear("saved in the keyring", role="list item", focused=True)["name"].startswith("“alice”"):
        desktop.key("Down")
    desktop.hear("“alice”, saved in the keyring", role="list item", focused=True)
    desktop.hear("Cancel", role="push button")
    desktop.picture("known")
    desktop.key("Return")
    result = client.wait(fetch)["result"]
    assert (result["status"], result["auth"]["source"], result["auth"]["user"]) == (200, "keyring", "alice")
    assert server.authorizations == [None, basic("alice", password)]
    agent.no_window("Log In")


def test_another_name_than_those_listed_is_a_login(stage, asked, desktop, gnome):
    server, _ = two_logins(stage, gnome)
    agent, client, fetch = asked(server.url, "Log In", stage.broker(environment=gnome.for_broker))
    desktop.fill({"User": "carol", "Password": "carols-own"})
    agent.press("Log In", "Return")
    desktop.hear("The last password was refused. Attempt 2.")
    assert server.authorizations == [None, basic("carol", "carols-own")]
    desktop.hear("“alice”, saved in the keyring", role="list item")
    desktop.key("Escape")
    assert client.wait(fetch)["error"]["data"]["kind"] == "challengeCancelled"


def test_a_certificate_is_chosen_among_the_files(stage, asked, desktop, certificates, client_nginx):
    server = client_nginx()
    agent, client, fetch = asked(f"{server.url}/page.txt", "Client Certificate", stage.broker("--ca-file", str(certificates / "ca.pem")))
    agent.go("Choose the certificate", "space")
    eventually(lambda: "Choose the certificate" in desktop.windows().values(), lambda: desktop.windows())
    # A slash begins a path.
    desktop.type(str(certificates / "client.p12"))
    desktop.picture("chooser")
    desktop.key("Return")
    eventually(lambda: "Choose the certificate" not in desktop.windows().values(), lambda: desktop.windows())
    desktop.hear("Certificate: PEM", role="text", focused=True)
    agent.go("Passphrase or PIN, if there is one")
    desktop.type(PASSPHRASE)
    desktop.picture("certificate")
    agent.press("Use Certificate", "Return")
    assert client.wait(fetch)["result"]["body"]["value"] == "page for you\n"


@pytest.mark.parametrize("words", [[], ["text=2", GERMAN]], ids=["english", "german-text"])
def test_a_hostile_prompt_fits(tmp_path, words):
    screen = Desktop(tmp_path / "small", size="x".join(map(str, SCREEN)))
    try:
        window = Shower(screen, *words)(
            "prompt-confirmation", text="\n".join(["_x<b>\u202e" + "long " * 200] * 60), program="bank_login " * 40)
        screen.hear("‹U+202E›")
        screen.picture("prompt-hostile")
        assert window["outside"] == [] and window["width"] <= SCREEN[0] and window["height"] <= SCREEN[1] - 40
    finally:
        screen.end()


@pytest.fixture
def prompt(tools):  # noqa: F811
    """`prompt(agent, text)` starts askpass as another program would."""
    started_processes = []

    def start(agent, *words, **environment):
        process = subprocess.Popen(
            words if len(words) > 1 else [tools / "watchword-askpass", *words],
            env={**Shell(agent.broker).environment, "SSH_ASKPASS": str(tools / "watchword-askpass"), "SSH_ASKPASS_REQUIRE": "force",
                 "LC_ALL": "C", **environment},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        started_processes.append(process)
        return process

    yield start
    for process in started_processes:
        process.kill()
        process.communicate()


def test_ssh_keygen_gets_a_passphrase_typed_into_the_window(stage, started, desktop, prompt):  # noqa: F811
    secret, agent = stage.secret(), started()
    key = agent.broker.home / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", secret, "-f", str(key)], check=True, stdin=subprocess.DEVNULL)
    reading = prompt(agent, "ssh-keygen", "-y", "-f", str(key))
    agent.window("Prompt")
    desktop.hear_all("“ssh-keygen” asks:", "Enter passphrase:", "The name of the program and its text are not verified.")
    desktop.hear("Answer", role="password text", focused=True)
    # Enter in the empty field sends nothing.
    desktop.key("Return")
    agent.open_details()
    desktop.hear("/watchword, process")
    desktop.key("alt+a")
    desktop.hear("Answer", role="password text", focused=True)
    desktop.type(secret)
    desktop.picture("prompt-typed")
    agent.press("OK", "Return")
    output, errors = reading.communicate(timeout=30)
    assert reading.returncode == 0 and output.startswith(b"ssh-ed25519 "), errors
    agent.no_window("Prompt")
    assert secret not in agent.log + agent.broker.log


def test_a_visible_answer_is_typed(started, desktop, prompt):  # noqa: F811
    agent = started()
    asking = prompt(agent, "Username for 'https://git.example': ")
    agent.window("Prompt")
    desktop.fill({"Answer": "b_ob"})
    agent.press("OK")
    assert asking.communicate(timeout=30)[0] == b"b_ob\n"


@pytest.mark.parametrize("button, key, code", [("Yes", None, 0), ("No", "Return", 1), ("No", "Escape", 1)])
def test_a_confirmation_is_answered(started, desktop, prompt, button, key, code):  # noqa: F811
    """Enter and Escape mean no."""
    agent = started()
    asking = prompt(agent, "Allow use of key bob@example?", SSH_ASKPASS_PROMPT="confirm")
    agent.window("Prompt")
    desktop.hear("No", role="push button", focused=True)
    agent.press("Yes", key) if button == "Yes" else (desktop.hear("Yes", role="push button", sensitive=True), desktop.key(key))
    assert asking.wait(30) == code


def test_the_window_closes_with_its_program(started, desktop, prompt):  # noqa: F811
    agent = started()
    asking = prompt(agent, "Confirm user presence for key ED25519-SK", SSH_ASKPASS_PROMPT="none")
    agent.window("Prompt")
    desktop.hear("Confirm user presence for key ED25519-SK")
    asking.terminate()
    agent.no_window("Prompt")


def test_the_next_prompt_waits_and_the_prompts_of_a_program_are_stopped(started, desktop, prompt):  # noqa: F811
    agent = started()
    first = prompt(agent, "first")
    agent.window("Prompt")
    # Another caller: the first one has to wait after its cancelled prompt.
    prompt(agent, "/bin/sh", "-c", '"$0" second; exit $?', first.args[0])
    desktop.hear("first")
    desktop.hear("Answer", role="password text", focused=True)
    desktop.hear("OK", role="push button", sensitive=True)
    desktop.key("Escape")
    assert first.wait(30) == 1
    desktop.hear("second")
    agent.window("Prompt")
    agent.press("Stop All Prompts from watchword")
    agent.no_window("Prompt")
    refused = prompt(agent, "third")
    assert b"prompts of this program are stopped" in refused.communicate(timeout=30)[1]


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
        executable(path, RECORDER.format(log=self.log, status=status))
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
