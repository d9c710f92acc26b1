"""-v: the request and response as curl shows them, without secrets; and options that curl does not have, or the helper does not."""
import os
import re
import subprocess

import pytest

from rig.scripted import DigestCheck, basic_server, response


def lines(done, mark):
    """Returns what follows `mark` on each line, including empty texts."""
    return [line[1:].strip() for line in done.stderr.decode().splitlines() if line == mark.rstrip() or line.startswith(mark)]


def sent(request):
    return [f"{request.method} {request.target} {request.version}", *(f"{name}: {value}".strip() for name, value in request.headers), ""]


@pytest.mark.parametrize("words", [
    [], ["-H", "X-A: b", "-H", "X-C;", "-A", "report/1"], ["-H", "Accept:"], ["-H", "accept: text/csv"], ["--compressed"], ["-d", "a=b"],
    ["-r", "0-3"], ["-X", "DELETE"], ["-X", "POST"], ["-I"], ["-T", "/dev/null"], ["-L"]], ids=" ".join)
def test_the_requests_are_those_that_the_server_gets(stage, shell, words):
    def handle(request):
        if request.target == "/a?b=c" and "-L" in words:
            return response(302, b"", "Location: /there")
        return response(200, b"" if request.method == "HEAD" else b"ok", "X-B: c")

    server = stage.server(handle)
    done = shell.run("fetch", "-s", "-v", *words, server.url + "/a?b=c")
    assert done.returncode == 0
    received = [line for request in server.requests for line in sent(request)]
    assert lines(done, "> ") == received
    assert [line for line in lines(done, "< ") if line.startswith("HTTP/")] == ["HTTP/1.1 302 X"] * ("-L" in words) + ["HTTP/1.1 200 X"]
    assert "X-B: c" in lines(done, "< ")


def test_curl_shows_the_same(stage, shell):
    """The marks, the status lines and the response fields are those of curl."""
    server = stage.server(lambda request: response(404, b"none", "X-A: b"))
    ours = shell.run("fetch", "-s", "-v", server.url + "/x")
    theirs = subprocess.run(["curl", "-q", "-s", "-v", "--noproxy", "*", server.url + "/x"], capture_output=True)
    assert lines(ours, "< ") == lines(theirs, "< ")
    names = lambda done: {line.split(":")[0] for line in lines(done, "> ")}
    assert names(ours) == names(theirs)


def test_the_login_and_its_source(stage, shell):
    server, password = stage.protected()
    first = shell.run("fetch", "-s", "-v", "-u", f"bob:{password}", server.url)
    assert '* Logging in to the server with Basic as "bob" (from the command line)' in first.stderr.decode()
    assert '* The server accepted the login with Basic as "bob" (from the command line)' in first.stderr.decode()
    assert lines(first, "< ").count("HTTP/1.1 401 X") == 1
    second = shell.run("fetch", "-s", "-v", server.url)
    assert '* Logging in to the server with Basic as "bob" (from the session)' in second.stderr.decode()
    assert "Authorization: Basic [redacted]" in lines(second, "> ")
    third = shell.run("fetch", "-s", "-v", f"http://bob:{password}@127.0.0.1:{stage.server(basic_server('bob', password)).port}/")
    stage.allow(password, stage.servers[-1])
    assert "(from the URL)" in third.stderr.decode()
    for done in (first, second, third):
        assert password.encode() not in done.stderr and not re.search(rb"(?i)authorization: basic (?!\[redacted\])", done.stderr)


def test_the_digest_response_is_not_shown(stage, shell):
    password = stage.secret()
    server = stage.server(DigestCheck("bob", password))
    done = shell.run("fetch", "-s", "-v", "-u", f"bob:{password}", server.url)
    assert done.stdout == b"welcome" and "Authorization: Digest [redacted]" in lines(done, "> ")
    assert b'with Digest as "bob"' in done.stderr and b"cnonce" not in done.stderr


def test_a_request_without_a_response_is_shown(stage, shell):
    done = shell.run("fetch", "-s", "-v", "http://127.0.0.1:1/x")
    assert done.returncode == 7 and lines(done, "> ")[0] == "GET /x HTTP/1.1" and lines(done, "< ") == []


def test_write_out_has_the_user(stage, shell):
    server, password = stage.protected()
    done = shell.run("fetch", "-s", "-u", f"bob:{password}", "-o", os.devnull, "-w", "%{watchword_user} %{watchword_source}", server.url)
    assert done.stdout == b"bob explicit"


@pytest.mark.parametrize("option, words", [
    ("--netrc", [b"curl's -n, --netrc is refused", b"watchword credentials import", b"credentials.netrc"]), ("-c", [b"-c, --cookie-jar", b"-b name=value"]),
    ("--cacert", [b"--pinnedpubkey"]), ("--outptu", [b"Did you mean '--output'?"])])
def test_an_unsupported_option_is_refused_with_its_reason(shell, option, words):
    done = shell.run("fetch", option, "x", "http://127.0.0.1:1/")
    assert done.returncode == 2 and all(word in done.stderr for word in words), done.stderr
