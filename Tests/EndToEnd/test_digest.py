"""RFC 7616 over the real socket, with a server that computes everything with hashlib."""
import pytest

from rig.client import password_answer
from rig.scripted import DigestCheck

ALGORITHMS = ["MD5", "MD5-sess", "SHA-256", "SHA-256-sess", "SHA-512-256", "SHA-512-256-sess"]


class Site:
    """One server, and one client that answers its challenges."""

    def __init__(self, stage, user="bob", password=None, **more):
        password = password or stage.secret()
        self.check = DigestCheck(user, password, **more)
        self.server = stage.server(self.check)
        self.asked = []
        self.client = stage.client(answer=lambda params: self.asked.append(params) or password_answer(user, password))

    def fetch(self, path="/x", **more):
        return self.client.fetch(self.server.url + path, **more)

    def statuses(self, paths, **more):
        replies = [self.fetch(path, **more)["result"] for path in paths]
        assert self.check.problems == []
        return [(reply["status"], reply["exchanges"]) for reply in replies]


@pytest.fixture
def site(stage):
    return lambda **more: Site(stage, **more)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("body", [None, "", "Grüße\r\n" * 1000])
def test_rule_d4_auth_int_covers_the_body(site, algorithm, body):
    place = site(algorithm=algorithm, qop="auth-int")
    more = {} if body is None else {"method": "POST", "body": {"type": "string", "value": body}}
    assert place.statuses(["/a?b=c", "/a?b=d"], **more) == [(200, 2), (200, 1)]
    assert [request.body for request in place.server.requests] == [(body or "").encode()] * 3


def test_rule_d7_a_proxy_sees_the_whole_url_and_the_server_the_path(stage):
    password = stage.secret()
    # A forwarding proxy sends the server the origin form (RFC 9112 section 3.2.1).
    check = DigestCheck("bob", password)
    targets = []

    def forward(request):
        targets.append(request.target)
        request.target = request.target.removeprefix("http://elsewhere.example")
        return check(request)

    proxy = stage.server(forward)
    client = stage.client(answer=lambda params: password_answer("bob", password), broker=stage.configured(f'[proxy]\nurl = "{proxy.url}"\n'))
    assert client.fetch("http://elsewhere.example:80/a/../b?c=%22d")["result"]["status"] == 200
    assert check.problems == []
    assert targets == ["http://elsewhere.example/b?c=%22d"] * 2
    assert 'uri="/b?c=%22d"' in proxy.authorizations[-1]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("charset", ["UTF-8", None])
@pytest.mark.parametrize("userhash", [False, True])
def test_rule_d10_and_d11_users_and_passwords_beyond_ascii_are_accepted(site, algorithm, charset, userhash):
    place = site(user="Jäsøn Doe", password="Sécret, or nöt?", algorithm=algorithm, charset=charset, userhash=userhash)
    assert place.statuses(["/x", "/y"]) == [(200, 2), (200, 1)]


@pytest.mark.parametrize("charset", ["UTF-8", None])
@pytest.mark.parametrize("user, password", [("Łukasz \"日\"", "€uro"), ("bob", "€uro"), ("日", "Grüße"), ("Zoë", "€")])
def test_rule_d11_users_and_passwords_beyond_iso_8859_1_are_sent_as_utf_8(site, charset, user, password):
    place = site(user=user, password=password, charset=charset)
    assert place.statuses(["/x", "/y"]) == [(200, 2), (200, 1)]


def test_rule_d11_a_listed_host_gets_latin_1(stage):
    check = DigestCheck("Zoë", "geheim§ç", encoding="latin-1")
    server = stage.server(check)
    client = stage.client(broker=stage.configured('[schemes]\nlatin1 = ["127.0.0.1"]'), answer=lambda _: password_answer("Zoë", "geheim§ç"))
    assert [client.fetch(server.url + "/x")["result"]["exchanges"] for _ in range(2)] == [2, 1] and check.problems == []


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("qop", ["auth", "auth-int"])
def test_rule_d15_a_right_proof_is_accepted(site, algorithm, qop):
    place = site(algorithm=algorithm, qop=qop, proof="right", announces=True, user="é", charset="UTF-8")
    assert place.statuses(["/x", "/y"]) == [(200, 2), (200, 1)]


def test_rule_d15_the_shell_helper_reports_a_wrong_proof_and_exits_with_67(stage, shell):
    password = stage.secret()
    server = stage.server(DigestCheck("bob", password, proof="wrong"))
    store = ["credentials", "store", server.url, "--user", "bob", "--password-stdin"]
    assert shell.run(*store, input=password.encode()).returncode == 0
    done = shell.run("fetch", server.url)
    assert (done.returncode, done.stdout) == (67, b"")
    assert b"rspauth" in done.stderr
