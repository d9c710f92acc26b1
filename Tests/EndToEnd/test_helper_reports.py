"""The helper's other output: -w, -D, --fail-with-body; and the header fields with options of their own."""
import os
import re
import subprocess

import pytest

from rig.scripted import response


@pytest.fixture
def plain(stage):
    return stage.server(lambda request: response(404 if "missing" in request.target else 200, b"the page", "Content-Type: text/csv"))


@pytest.mark.parametrize("words, code, out", [
    (["-w", "\\n%{http_code} %{size_download} %{content_type} %{url_effective} %{exitcode}\\n", "URL/a"], 0, "the page\n200 8 text/csv URL/a 0\n"),
    (["-o", os.devnull, "-w", "%{http_code}", "URL"], 0, "200"), (["-f", "-w", "%{http_code} %{exitcode}", "URL/missing"], 22, "404 22"),
    (["-w", "%{http_code} %{exitcode}", "http://127.0.0.1:1/"], 7, "000 7"),
    (["-o", os.devnull, "-w", "http://bob:x@h.example/ %{http_code}", "URL"], 0, "http://bob:x@h.example/ 200"),
    (["--fail-with-body", "URL/missing"], 22, "the page"), (["--fail-with-body", "URL"], 0, "the page"), (["--fail-with-body", "-f", "URL"], 2, "")])
def test_the_text_to_write_and_the_body(shell, plain, words, code, out):
    done = shell.run("fetch", "-s", *[word.replace("URL", plain.url) for word in words])
    assert (done.returncode, done.stdout.decode()) == (code, out.replace("URL", plain.url))


def test_write_out_has_the_user(stage, shell):
    server, password = stage.protected()
    done = shell.run("fetch", "-s", "-u", f"bob:{password}", "-o", os.devnull, "-w", "%{watchword_user} %{watchword_source}", server.url)
    assert done.stdout == b"bob explicit"


def test_curl_writes_the_same(shell, plain):
    """Compares both outputs, without what changes from one fetch to the next."""
    wanted = "%{http_code}|%{response_code}|%{size_download}|%{content_type}|%{method}|%{scheme}|%{url_effective}|%{exitcode}\\t%%\\n"
    ours = shell.run("fetch", "-s", "-o", os.devnull, "-w", wanted, plain.url + "/a").stdout
    theirs = subprocess.run(["curl", "-s", "--noproxy", "*", "-o", os.devnull, "-w", wanted, plain.url + "/a"], capture_output=True).stdout
    assert ours == theirs


def test_the_header_into_a_file(shell, plain, tmp_path):
    path = tmp_path / "header"
    assert shell.run("fetch", "-s", "-D", path, plain.url).stdout == b"the page"
    assert path.read_bytes().startswith(b"HTTP/1.1 200 X\r\n") and b"Content-Type: text/csv\r\n" in path.read_bytes()
    assert shell.run("fetch", "-s", "-D", "-", "-o", os.devnull, plain.url).stdout == path.read_bytes()
    done = shell.run("fetch", "-s", "-S", "-D", tmp_path / "none" / "header", plain.url)
    assert done.returncode == 23 and b"cannot write" in done.stderr


@pytest.mark.parametrize("options", [[], ["-Z"], ["-f"]])
def test_one_file_has_the_headers_of_all_urls(shell, plain, tmp_path, options):
    path = tmp_path / "header"
    shell.run("fetch", "-s", *options, "-D", path, plain.url + "/missing", plain.url)
    ours = re.findall(rb"^HTTP/1.1 (\d+)", path.read_bytes(), re.M)
    subprocess.run(["curl", "-s", "--noproxy", "*", *options, "-D", path, plain.url + "/missing", plain.url], capture_output=True)
    assert sorted(ours) == sorted(re.findall(rb"^HTTP/1.1 (\d+)", path.read_bytes(), re.M)) == [b"200", b"404"]


def test_fail_with_body_writes_it_into_a_file(shell, plain, tmp_path):
    done = shell.run("fetch", "-s", "--fail-with-body", "-o", tmp_path / "kept", plain.url + "/missing")
    assert done.returncode == 22 and (tmp_path / "kept").read_bytes() == b"the page"


def test_fields_with_options_of_their_own(shell, plain):
    shell.run("fetch", "-s", "-A", "report/1", "-e", "http://h.example/", "-r", "0-3", plain.url)
    shell.run("fetch", "-s", "-A", "report/1", "-H", "user-agent: other", plain.url)
    first, second = [request.headers for request in plain.requests]
    assert {("User-Agent", "report/1"), ("Referer", "http://h.example/"), ("Range", "bytes=0-3")} <= set(first)
    assert [value for name, value in second if name.lower() == "user-agent"] == ["other"]
    shell.run("fetch", "-s", "-e", "", plain.url)
    assert "Referer" not in dict(plain.requests[-1].headers)


@pytest.mark.parametrize("option, words", [
    ("--netrc", [b"curl's -n, --netrc is refused", b"watchword credentials import", b"credentials.netrc"]), ("-c", [b"-c, --cookie-jar", b"-b name=value"]),
    ("--cacert", [b"--pinnedpubkey"]), ("--outptu", [b"Did you mean '--output'?"])])
def test_an_unsupported_option_is_refused_with_its_reason(shell, option, words):
    done = shell.run("fetch", option, "x", "http://127.0.0.1:1/")
    assert done.returncode == 2 and all(word in done.stderr for word in words), done.stderr
