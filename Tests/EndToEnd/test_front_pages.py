"""The documents about single programs: their commands are run as they are written, behind a proxy that requires NTLM."""
import hashlib
import os
import pathlib
import re
import subprocess
import urllib.parse

import pytest

from rig import browser, field_servers
from rig.broker import ROOT, program
from rig.client import password_answer
from rig.depots import nginx_depot
from rig.fixtures import reachable_folder, running
from rig.forwarding import ForwardProxy
from rig.ntlm import NtlmCheck
from rig.scripted import response
from rig.servers import find

PAGES = ROOT / "contrib/docs/programs"
#: The file that the commands of a page leave, or the text that they print.
RESULTS = {
    "apt": "hello_1.0_all.deb", "browsers": "<title>the page", "curl": "report.pdf", "docker": "demo/manifest.json",
    "git": "project/.git/HEAD", "java": "the page", "npm": "node_modules/left-pad/package.json", "pip": "requests-1.0-py3-none-any.whl",
    "wget": "report.pdf"}
PROGRAM = """import java.net.*;
class Program { public static void main(String[] a) throws Exception { new URL("http://intranet.example/page.txt").openStream().transferTo(System.out); } }
"""


def commands(page):
    blocks = re.findall(r"^```sh\n(.*?)^```", (PAGES / f"{page}.md").read_text(), re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.splitlines() if line.startswith("watchword run ")]


@pytest.fixture(scope="module")
def depot():
    with reachable_folder("pages") as folder, running(nginx_depot(folder, "intranet.example")) as server:
        depot = server.depot
        for name in ["report.pdf", "index.html"]:
            (depot.folder / name).write_text(browser.PAGE)
        depot.python_package("requests")
        depot.npm_package("left-pad")
        image = folder / "hello"
        (image / "DEBIAN").mkdir(parents=True)
        control = "Package: hello\nVersion: 1.0\nArchitecture: all\nMaintainer: x <x@x.example>\nDescription: x\n"
        (image / "DEBIAN" / "control").write_text(control)
        subprocess.run(["dpkg-deb", "--build", image, depot.folder / "deb" / "hello.deb"], check=True, capture_output=True)
        content = (depot.folder / "deb" / "hello.deb").read_bytes()
        (depot.folder / "deb" / "Packages").write_text(
            f"{control}Filename: ./hello.deb\nSize: {len(content)}\nSHA256: {hashlib.sha256(content).hexdigest()}\n")
        depot.publish()
        yield server


@pytest.fixture(scope="module")
def images():
    with reachable_folder("page-registry") as folder, running(field_servers.open_registry(folder)) as server:
        image = field_servers.Image(folder / "image", size=1000)
        subprocess.run(["sh", "-c", image.push_and_pull(f"127.0.0.1:{server.port}/demo:latest", folder / "back")], check=True)
        yield server


def settings(folder):
    """The configuration of the programs, by which they fetch from the hosts of the documents without TLS."""
    (folder / "apt").mkdir()
    (folder / "apt" / "sources.list").write_text("deb [trusted=yes] http://intranet.example/deb ./\n")
    for name in ["state/lists/partial", "cache/archives/partial"]:
        (folder / "apt" / name).mkdir(parents=True)
    (folder / "apt.conf").write_text(
        f'Dir::Etc::sourcelist "{folder}/apt/sources.list"; Dir::Etc::sourceparts "-"; Dir::State "{folder}/apt/state";\n'
        f'Dir::Cache "{folder}/apt/cache"; Acquire::Retries "0"; APT::Sandbox::User "root";\n')
    (folder / ".config" / "containers").mkdir(parents=True)
    (folder / ".config" / "containers" / "registries.conf").write_text('[[registry]]\nlocation = "registry.example"\ninsecure = true\n')
    (folder / "bin").mkdir()
    visit = browser.command("http://intranet.example/", folder / "profile").replace(find("chromium"), f"{find('chromium')} \"$@\"")
    for name, text in {"chromium": visit, "watchword": f"exec {os.path.realpath(program('watchword'))} \"$@\""}.items():
        (folder / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / "bin" / name).chmod(0o755)
    return {
        "PATH": f"{folder}/bin:{os.environ['PATH']}", "HOME": str(folder), "APT_CONFIG": f"{folder}/apt.conf",
        "PIP_INDEX_URL": "http://intranet.example/simple", "PIP_TRUSTED_HOST": "intranet.example", "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "npm_config_registry": "http://intranet.example/", "npm_config_audit": "false", "npm_config_update_notifier": "false",
        "GIT_TERMINAL_PROMPT": "0"}


def before(page, folder, work):
    """Supplies the files that the commands of a page need."""
    if page == "java":
        (folder / "Program.java").write_text(PROGRAM)
        for command in [["javac", "-d", work, folder / "Program.java"], ["jar", "cfe", "program.jar", "Program", "Program.class"]]:
            subprocess.run([str(word) for word in command], cwd=work, check=True, capture_output=True)


@pytest.mark.tier3("nine programs, most of which test_front_programs.py starts, too")
@pytest.mark.parametrize("page", RESULTS)
def test_the_commands_of_a_page(page, stage, depot, images, tmp_path):
    password = stage.secret()

    def redirect(request):
        """All names are those of servers here."""
        url = urllib.parse.urlsplit(request.target)
        port = images.port if url.hostname == "registry.example" else depot.port
        request.target = url._replace(netloc=f"127.0.0.1:{port}").geturl()

    check = NtlmCheck(tmp_path, {"alice": password}, proxy=True, handler=redirect)
    proxy = stage.server(ForwardProxy(lambda request: response(403) if request.method == "CONNECT" else check(request)))
    broker = stage.configured(f'[proxy]\nurl = "{proxy.url}"\n[schemes]\nntlm = ["127.0.0.1"]\n')
    asked = stage.agent(password_answer("alice", password, domain="TESTDOM"), broker).asked
    work = tmp_path / "work"
    work.mkdir()
    environment = settings(tmp_path) | {"WATCHWORD_SOCKET": broker.socket}
    before(page, tmp_path, work)
    listed = commands(page)
    if page == "apt":  # the last command fills the lists, which the first one needs
        listed.reverse()
    done = subprocess.run(
        ["sh", "-e", "-c", "\n".join(listed)], cwd=work, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done
    assert RESULTS[page] in done.stdout or (pathlib.Path(work) / RESULTS[page]).exists(), done
    assert len(asked) == 1 and check.served, "all requests go through the proxy"


def test_every_page_is_listed_and_run():
    assert sorted(RESULTS) == sorted(path.stem for path in PAGES.iterdir()) and all(commands(page) for page in RESULTS)
    overview = (ROOT / "contrib/docs/unchanged-programs.md").read_text()
    assert [page for page in RESULTS if f"programs/{page}.md" not in overview] == []


@pytest.mark.parametrize("page", RESULTS)
def test_a_page_is_short(page):
    assert len((PAGES / f"{page}.md").read_text().split()) <= 300
