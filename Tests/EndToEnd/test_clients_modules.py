"""The clients as packages of their languages: how a program gets them, and what they declare."""
import json
import pathlib
import re
import shutil
import zipfile

import pytest

from rig.broker import ROOT
from rig.clients import CLIENTS, login, scripted  # noqa: F401
from rig.languages import LANGUAGES, built

PROGRAMS = pathlib.Path(__file__).with_name("programs")
GO_MODULE = "watchword.invalid/watchword/contrib/clients/go"
VERSION = re.search(r'current = "(.+)"', (ROOT / "Sources/WatchwordProtocol/Version.swift").read_text()).group(1)


@pytest.fixture
def proxy(tmp_path):
    """A module proxy (https://go.dev/ref/mod#goproxy-protocol) with the Go client in its current version."""
    versions = tmp_path / "proxy" / GO_MODULE / "@v"
    versions.mkdir(parents=True)
    (versions / "list").write_text(f"v{VERSION}\n")
    (versions / f"v{VERSION}.info").write_text(json.dumps({"Version": f"v{VERSION}", "Time": "2026-11-21T00:00:00Z"}))
    shutil.copy(CLIENTS / "go/go.mod", versions / f"v{VERSION}.mod")
    with zipfile.ZipFile(versions / f"v{VERSION}.zip", "w") as archive:
        for file in sorted((CLIENTS / "go").rglob("*")):
            if file.is_file():
                archive.write(file, f"{GO_MODULE}@v{VERSION}/{file.relative_to(CLIENTS / 'go')}")
    return f"file://{tmp_path}/proxy"


def test_a_go_program_of_another_module_fetches_the_client(proxy, tmp_path_factory):
    language = built("go", tmp_path_factory)
    program = language.folder / "elsewhere"
    program.mkdir()
    shutil.copy(PROGRAMS / "redirects.go", program / "main.go")
    (program / "go.mod").write_text("module example.org/program\n\ngo 1.19\n")
    # Modules in the cache are read-only otherwise, and could not be removed.
    settings = {"GOPROXY": proxy, "GONOSUMDB": GO_MODULE, "GOFLAGS": "-modcacherw"}
    language.tool("go", "get", f"{GO_MODULE}@latest", folder=program, **settings)
    language.tool("go", "build", "-o", "built", ".", folder=program, **settings)
    assert f"{GO_MODULE} v{VERSION}" in (program / "go.mod").read_text() and (program / "built").exists()


def test_the_go_modules_own_tests_pass(tmp_path_factory):
    told = built("go", tmp_path_factory).tool("go", "test", ".", "./httptransport")
    assert told.count("ok ") == 2, told


def test_the_go_client_has_every_kind_of_error():
    kinds = re.findall(r'^\tKind\w+ +Kind = "(\w+)"$', (CLIENTS / "go/kinds.go").read_text(), re.MULTILINE)
    assert kinds == [error["kind"] for error in json.loads((ROOT / "Protocol/errors.json").read_text())]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_client_sends_the_version_of_the_product(language, tmp_path, login, tmp_path_factory):
    """The scripted broker refuses `initialize`."""
    asked, error = [], {"code": 1014, "message": "refused", "data": {"kind": "denied", "retry": "never"}}

    def refuse(message):
        asked.append(message)
        return [{"id": message["id"], "error": error}]

    with scripted(tmp_path, refuse) as path:
        done = built(language, tmp_path_factory).run("http://127.0.0.1:1/", path, login("bob", "pw"))
    assert done.returncode != 0 and b"refused" in done.stderr
    assert (asked[0]["method"], asked[0]["params"]["client"]) == ("initialize", {"name": language.partition("-")[0], "version": VERSION})
