"""Old and malformed challenges: asked about, marked as weak, and never preferred to better ones (SEMANTICS rule 27)."""
import hashlib
import re

import pytest
from rig.client import password_answer
from rig.scripted import ScriptedServer, basic, response

OLD = 'Digest realm="old", nonce="n"'


def asking(*challenges, right=None):
    """A server that challenges with these fields until it receives `right`."""
    def handle(request):
        if right and request.authorization == right:
            return response(200, b"in")
        return response(401, b"log in", *(f"WWW-Authenticate: {one}" for one in challenges))

    return ScriptedServer(handle)


def legacy(user, password):
    """The server's side of RFC 2069, computed here."""
    def handle(request):
        found = dict(re.findall(r'(\w+)="([^"]*)"', request.authorization or ""))
        first, second = (hashlib.md5(text.encode()).hexdigest() for text in [f"{user}:old:{password}", f"GET:{request.target}"])
        right = hashlib.md5(f"{first}:n:{second}".encode()).hexdigest()
        is_right = found.get("response") == right and "qop" not in found and "cnonce" not in found and found.get("uri") == request.target
        return response(200, b"in") if is_right else response(401, b"log in", f"WWW-Authenticate: {OLD}")

    return ScriptedServer(handle)


@pytest.fixture
def client(stage):
    """`client(password, **more)` returns a client that answers as bob, and its challenges."""
    def make(password, config=""):
        asked = []
        broker = stage.configured(config)

        def answer(params):
            asked.append(params)
            return password_answer("bob", password) if params["previousFailureCount"] == 0 else {"action": "continue"}

        return stage.client(answer=answer, broker=broker), asked

    return make


@pytest.mark.parametrize("challenge, realm, weak", [
    ("Basic", None, ["noRealm"]), ('Basic charset="UTF-8"', None, ["noRealm"]), ("Basic realm=foo", "foo", ["unquotedRealm"]),
    ("Basic realm=My Realm", "My Realm", ["unquotedRealm"]), ("Basic realm='x y'", "'x y'", ["unquotedRealm"]),
    ('Basic , realm="foo"', "foo", None), ('Digest realm="x" nonce="y", Basic realm="good"', "good", None),
    ('Basic realm="a" b, NTLM, Basic realm=loose', "loose", ["unquotedRealm"]),
])
def test_rule_27_an_unusual_basic_challenge_is_asked_about_and_marked(stage, client, challenge, realm, weak):
    password = stage.secret()
    server = stage.server(asking(challenge, right=basic("bob", password)))
    stage.allow(password, server)
    browser, asked = client(password)
    results = [browser.fetch(server.url)["result"] for _ in range(2)]
    assert [(result["status"], result["exchanges"]) for result in results] == [(200, 2), (200, 1)]
    assert len(asked) == 1
    space = asked[0]["protectionSpace"]
    assert (space["realm"], space["authenticationMethod"]) == (realm, "httpBasic")
    offer = [one for one in asked[0]["offers"] if one["scheme"] == "Basic"][-1]
    assert offer.get("weak") == weak and offer["supported"] is True


def test_rule_27_a_digest_challenge_of_rfc_2069_is_asked_about_and_marked(stage, client):
    password = stage.secret()
    server = stage.server(legacy("bob", password))
    browser, asked = client(password)
    results = [browser.fetch(server.url + path)["result"] for path in ["/a", "/b?c"]]
    assert [(result["status"], result["exchanges"]) for result in results] == [(200, 2), (200, 1)]
    assert [one["offers"][0]["weak"] for one in asked] == [["noQop"]]
    assert asked[0]["protectionSpace"]["authenticationMethod"] == "httpDigest"


def test_rule_27_the_configuration_can_refuse_weak_challenges(stage, client):
    server = stage.server(asking("Basic", OLD, "Basic realm=x"))
    browser, asked = client(stage.secret(), "[schemes]\nweak = false\n")
    assert browser.fetch(server.url)["result"]["status"] == 401
    assert asked == [] and server.authorizations == [None]
