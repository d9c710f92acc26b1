"""The `fetch` of the Node client, compared with what the standard says: https://fetch.spec.whatwg.org/"""
import json

import pytest

from rig.bodies import eventually
from rig.clients import LARGE, login, site  # noqa: F401
from rig.languages import built
from test_clients_features import PARTS, digest


@pytest.fixture
def told(site, login, tmp_path_factory):
    language = built("node", tmp_path_factory)
    done = language.run(site.url, site.broker_path, login("bob", site.password), language.program("fetching"))
    assert done.returncode == 0, done.stderr.decode()
    assert site.password.encode() not in done.stderr + done.stdout
    return json.loads(done.stdout)


def test_fetch_behaves_as_the_standard_says(told, site):
    # Responses.
    assert told["page"] == [True, 200, True, "OK", "text/plain", True, False, False, "staff page\n", True]
    assert told["cookies"] == [["a=1; Path=/", "b=2; Path=/"], "two\n"] and told["packed"] == "packed page\n"
    assert told["large"] == digest(LARGE) and told["head"] == [200, None] and told["refused"] == [403, False]
    assert told["many"] == 200
    # Redirects.
    assert told["redirected"] == [True, True, True, 200, True] and told["manual"] == [302, True, False]
    assert told["error"][:3] == ["TypeError", "fetch failed", "Error"]
    # Requests.
    whole = b'{"a":1}'
    assert [told["json"][name] for name in ("method", "length", "sha256", "type", "sized")] == [
        "POST", len(whole), digest(whole), "application/json", str(len(whole))]
    assert told["form"] == "application/x-www-form-urlencoded;charset=UTF-8"
    assert (told["bytes"]["length"], told["bytes"]["sized"]) == (3 << 20, str(3 << 20)) and told["streamed"] == digest(PARTS)
    assert (told["asRequest"]["method"], told["asRequest"]["sha256"]) == ("POST", digest(b"abc"))
    # The additions of the broker.
    assert told["auth"] == ["bob", "client"] and told["again"] == "session" and told["uploadAuth"] == "bob"
    assert told["authorization"] == [200, "explicit"] and told["agent"] == 200


def test_a_failure_is_a_type_error_with_its_cause_or_the_reason_of_the_signal(told, site):
    assert told["unreachable"] == ["TypeError", "fetch failed", "cannotConnect", False]
    assert told["noBroker"] == ["TypeError", "fetch failed", "ConnectionError", False]
    assert told["short"] == ["TypeError", "terminated", "connectionLost", False]
    for invalid in ("relative", "secretURL", "invalidURL", "scheme", "malformed"):
        assert told[invalid][0] == "TypeError" and told[invalid][3] is False, told[invalid]
    assert told["timeout"][0] == "TimeoutError" and told["aborted"][0] == "AbortError"
    assert told["first"] == "first" and told["abortedBody"][:2] == ["RangeError", "enough"]
    # An aborted and a cancelled body end their fetches.
    eventually(lambda: {"/slow?1", "/slow?2", "/silent"} <= set(site.ended_early), "a fetch has not ended")
