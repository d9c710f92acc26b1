"""`watchword credentials import`: logins of netrc files and of git's credential store, and how they reach a server."""
import os

import pytest
from rig.scripted import basic


def test_gits_store_is_imported_and_used(stage, shell, tmp_path):
    server, password = stage.protected()
    file = tmp_path / ".git-credentials"
    file.write_text(f"http://bob:{password}@127.0.0.1:{server.port}\nhttps://eve@h\n")
    file.chmod(0o600)
    done = shell.run("credentials", "import", str(file), "--dry-run")
    assert done.returncode == 3 and b"not stored (--dry-run)" in done.stdout
    assert shell.run("fetch", "-s", server.url).returncode == 67
    done = shell.run("credentials", "import", str(file))
    assert done.returncode == 3, done
    assert done.stdout.decode() == f"http://127.0.0.1:{server.port} as bob: stored in the session\n"
    # The middle of a long path is left out.
    said = "/.git-credentials, line 2: not stored: no user and password, or invalid percent-encoding\n"
    assert done.stderr.decode().endswith(said) and done.stderr.count(b"\n") == 2
    assert done.stderr.startswith(b"watchword: stored 1 of 2 logins; not these:\n")
    count = len(server.requests)
    assert shell.run("fetch", "-s", server.url).stdout == b"welcome"
    assert server.authorizations[count:] == [None, basic("bob", password)]


def test_a_netrc_file_is_imported(stage, shell, tmp_path):
    password = stage.secret()
    file = tmp_path / "netrc"
    file.write_text(f"machine h.example login bob password {password}\ndefault login any password x\n")
    file.chmod(0o644)
    done = shell.run("credentials", "import", str(file))
    assert done.returncode == 3 and done.stdout == b"https://h.example:443 as bob: stored in the session\n"
    assert b"other users can read or change" in done.stderr and b"line 2: not stored: default" in done.stderr
    listed = stage.client(delivery=None).call("credential/list", {})["result"]["credentials"]
    assert [(one["user"], one["protectionSpace"]["host"], one["protectionSpace"]["port"]) for one in listed] == [("bob", "h.example", 443)]


def test_an_import_continues_behind_an_entry_that_it_cannot_take(stage, shell, tmp_path):
    file = tmp_path / ".git-credentials"
    file.write_text("https://one:pw@a.example\nhttps://two:%ff%fe@b.example\nhttps://four:pw@-.example:99999\nhttps://three:pw@c.example\n")
    file.chmod(0o600)
    done = shell.run("credentials", "import", str(file))
    assert done.returncode == 3, done
    assert done.stdout.decode().splitlines() == [f"https://{host}.example:443 as {user}: stored in the session" for host, user in [("a", "one"), ("c", "three")]]
    head, *rest = done.stderr.decode().splitlines()
    assert head == "watchword: stored 2 of 4 logins; not these:"
    assert [line.partition(", ")[2] for line in rest] == ["line 2: not stored: the password is not UTF-8 text", "line 3: not stored: no valid host"]
    listed = stage.client(delivery=None).call("credential/list", {})["result"]["credentials"]
    assert {one["user"] for one in listed} == {"one", "three"}


def test_a_whole_import_has_the_status_0(shell, tmp_path):
    file = tmp_path / ".git-credentials"
    file.write_text("https://one:pw@a.example\n")
    file.chmod(0o600)
    done = shell.run("credentials", "import", str(file))
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("make, said", [
    (lambda path: None, "cannot read"), (lambda path: path.mkdir(), "not a regular file"),
    (lambda path: path.write_text(""), "no login found"), (lambda path: os.mkfifo(path), "not a regular file"),
    (lambda path: path.write_text("x" * (1 << 20) + "y"), "larger than")])
def test_a_file_of_another_format_is_refused(shell, tmp_path, make, said):
    make(tmp_path / ".netrc")
    done = shell.run("credentials", "import", str(tmp_path / ".netrc"))
    assert done.returncode == 1 and said in done.stderr.decode(), done


def test_a_name_that_says_nothing_needs_a_format(shell, tmp_path):
    done = shell.run("credentials", "import", str(tmp_path / "passwords"))
    assert done.returncode == 64 and b"--format" in done.stderr
