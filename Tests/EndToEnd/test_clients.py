"""The clients of all languages make a challenged fetch from a real server, with the script of the documentation."""
import re
import threading

import pytest

from rig.clients import BINARY, LARGE, login, site  # noqa: F401
from rig.languages import LANGUAGES, SCRIPTS, built, shown
from rig.scripted import basic

pytestmark = pytest.mark.parametrize("language", LANGUAGES, indirect=True)


@pytest.fixture(scope="session")
def language(request, tmp_path_factory):
    return built(request.param, tmp_path_factory)


def test_the_script_is_ten_lines(language):
    lines = shown(SCRIPTS[language.name][0]).splitlines()
    inside_imports, counted = False, []
    for line in lines:
        inside_imports = (inside_imports or line.startswith("import (")) and line != ")"
        is_import = inside_imports or re.match(r"(import|use|from|package) ", line) or line == ")"
        if not is_import and line.strip(" \t})];,?") and not line.startswith("#"):
            counted.append(line)
    assert 0 < len(counted) <= 10, counted


def test_the_script_fetches_from_nginx(language, stage, nginx, account, login):
    done = language.run(f"http://127.0.0.1:{nginx.port}/staff/page.txt", stage.broker().socket, login(*account))
    assert (done.returncode, done.stdout) == (0, b"staff page\n"), done.stderr
    assert account[1].encode() not in done.stderr


def test_a_wrong_password_is_asked_about_again_and_ends(language, site, login):
    """Scripts that cannot ask anyone cancel; the others give the same answer again, which is not sent again."""
    assert b"staff page" not in language.run(site.url + "/page", site.broker_path, login("bob", "wrong")).stdout
    assert [sent for _, _, sent in site.seen if sent] == [basic("bob", "wrong")]


def test_bodies_are_delivered_unchanged(language, site, login):
    for path, body in [("/binary", BINARY), ("/large", LARGE)]:
        done = language.run(site.url + path, site.broker_path, login("bob", site.password))
        assert (done.returncode, done.stdout == body) == (0, True), done.stderr


def test_without_a_broker_the_error_says_what_to_do(language, tmp_path, login):
    done = language.run("http://127.0.0.1:1/", tmp_path / "none.sock", login("bob", "x"))
    assert done.returncode != 0 and done.stdout == b""
    assert str(tmp_path / "none.sock").encode() in done.stderr and b"watchwordd" in done.stderr


def test_errors_of_the_broker_are_shown(language, stage, login):
    done = language.run("http://127.0.0.1:1/", stage.broker().socket, login("bob", "x"))
    assert done.returncode != 0 and done.stdout == b""
    assert b"cannot connect" in done.stderr or b"cannotConnect" in done.stderr, done.stderr


def test_a_broker_that_dies_ends_the_script(language, site, login):
    killer = threading.Thread(target=lambda: site.slow.wait(30) and site.broker.kill(), daemon=True)
    killer.start()
    done = language.run(site.url + "/silent", site.broker_path, login("bob", site.password))
    killer.join(20)
    assert done.returncode != 0 and b"closed the connection" in done.stderr, done.stderr
