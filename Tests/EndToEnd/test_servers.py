"""Real servers: the tests compare their logs."""
import re

from rig.client import password_answer
from rig.servers import marked


def test_nginx_basic(stage, nginx, account):
    user, password = account
    client = stage.client(answer=lambda params: password_answer(user, password))
    url = f"http://127.0.0.1:{nginx.port}"
    page, open_page = marked("/staff/page.txt"), marked("/open.txt")
    assert client.fetch(url + page)["result"]["body"]["value"] == "staff page\n"
    assert client.fetch(url + page)["result"]["exchanges"] == 1
    assert client.fetch(url + open_page)["result"]["auth"] is None
    assert nginx.lines(page, 3) == [f"{status} {who} HTTP/1.1 {page}" for status, who in [(401, "-"), (200, user), (200, user)]]
    assert nginx.lines(open_page) == [f"200 - HTTP/1.1 {open_page}"]


def test_nginx_over_tls_and_http2(stage, nginx_tls, account, tls):
    user, password = account
    stage.broker("--ca-file", str(tls / "ca.pem"))
    asked, page = [], marked("/staff/page.txt")
    client = stage.client(answer=lambda params: asked.append(params) or password_answer(user, password))
    for host in ["localhost", "127.0.0.1"]:
        result = client.fetch(f"https://{host}:{nginx_tls.port}{page}")["result"]
        assert (result["status"], result["httpVersion"]) == (200, "2")
    assert [params["protectionSpace"]["host"] for params in asked] == ["localhost", "127.0.0.1"]
    assert asked[0]["protectionSpace"]["receivesCredentialSecurely"] is True
    assert nginx_tls.lines(page, 4) == [f"401 - HTTP/2.0 {page}", f"200 {user} HTTP/2.0 {page}"] * 2


def test_a_certificate_of_an_unknown_authority_is_not_trusted(stage, nginx_tls, account, tls):
    user, password = account
    client = stage.client()
    page = marked("/staff/page.txt")
    credential = {"type": "password", "user": user, "password": password}
    url = f"https://localhost:{nginx_tls.port}"
    assert client.fetch(url + page, credential=credential)["error"]["data"]["kind"] == "serverNotTrusted"
    # The server writes a later request to its log, and no earlier one.
    trusting, last = stage.client(broker=stage.broker("--ca-file", str(tls / "ca.pem"))), marked("/open.txt")
    assert trusting.fetch(url + last)["result"]["status"] == 200
    assert nginx_tls.lines(last) and page not in nginx_tls.log


def test_apache_digest(stage, apache, account):
    user, password = account
    asked = []
    client = stage.client(answer=lambda params: asked.append(params) or password_answer(user, password))
    url = f"http://127.0.0.1:{apache.port}/private/page.txt"
    results = [client.fetch(url)["result"] for _ in range(3)]
    assert [result["status"] for result in results] == [200, 200, 200]
    assert [result["exchanges"] for result in results] == [2, 1, 1]
    assert results[0]["auth"]["authenticationMethod"] == "httpDigest"
    assert len(asked) == 1


def test_httpbin_digest_sha256_hidden_basic_and_redirects(stage, httpbin):
    client = stage.client(answer=lambda params: password_answer("bob", "pw", persistence="none"))
    url = f"http://127.0.0.1:{httpbin.port}"
    digest = client.fetch(url + "/digest-auth/auth/bob/pw/SHA-256")["result"]
    assert digest["status"] == 200 and digest["auth"]["authenticationMethod"] == "httpDigest"
    assert client.fetch(url + "/basic-auth/bob/pw")["result"]["auth"]["authenticationMethod"] == "httpBasic"
    # Responds with 404 and no challenge, so no credential is sent before one.
    hidden = client.fetch(url + "/hidden-basic-auth/bob/pw", credential={"type": "password", "user": "bob", "password": "pw"})
    assert hidden["result"]["status"] == 404 and hidden["result"]["exchanges"] == 1
    redirected = client.fetch(url + "/redirect-to?url=/basic-auth/bob/pw")["result"]
    assert redirected["status"] == 200 and re.search("/basic-auth/bob/pw$", redirected["url"])
    assert client.fetch(url + "/redirect/3", maxRedirects=2)["error"]["data"]["kind"] == "tooManyRedirects"
