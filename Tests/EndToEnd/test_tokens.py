"""Bearer, and schemes that only the client supports."""
import pytest
from rig.scripted import ScriptedServer, basic, response
from rig.tokens import bearer_server, rounds_server


def token(text, **more):
    return {"action": "credential", "credential": {"type": "token", "token": text, **more}}


def header(scheme, value, **more):
    return {"action": "credential", "credential": {"type": "header", "scheme": scheme, "value": value, **more}}


def asking(stage, reply, **more):
    asked = []
    return stage.client(answer=lambda challenge: asked.append(challenge) or reply(challenge), **more), asked


def test_rule_k1_a_token_is_sent_in_the_authorization_field_only(stage):
    secret = stage.secret()
    server = stage.server(bearer_server(secret))
    stage.allow(secret, server)
    client, asked = asking(stage, lambda challenge: token(secret))
    result = client.fetch(server.url)["result"]
    assert result["status"] == 200
    assert result["auth"] == {"authenticationMethod": "bearer", "source": "client", "user": None}
    assert asked[0]["accepts"] == ["token"] and asked[0]["protectionSpace"]["realm"] == "api"
    assert asked[0]["persistenceAllowed"] == ["none", "forSession"]
    # Stored for the session, sent before a challenge, and never listed.
    assert client.fetch(server.url)["result"]["exchanges"] == 1
    listed = client.call("credential/list")["result"]["credentials"]
    assert [(one["user"], one["protectionSpace"]["authenticationMethod"]) for one in listed] == [(None, "bearer")]
    assert not any(secret in request.target or secret.encode() in request.body for request in server.requests)


def test_rule_k4_an_invalid_token_is_not_sent_again(stage):
    old, new = stage.secret(), stage.secret()
    server = stage.server(bearer_server(new))
    for secret in [old, new]:
        stage.allow(secret, server)
    answers = [old, old, new]
    client, asked = asking(stage, lambda challenge: token(answers.pop(0)))
    assert client.fetch(server.url)["result"]["status"] == 200
    assert [one["previousFailureCount"] for one in asked] == [0, 1, 2]
    assert asked[2]["error"]["kind"] == "credentialAlreadyRefused"
    assert [one and one.split()[1] == old for one in server.authorizations] == [None, True, False]


def test_rule_k4_a_403_with_insufficient_scope_is_the_final_response(stage):
    secret = stage.secret()
    server = stage.server(bearer_server(secret))
    stage.allow(secret, server)
    client, asked = asking(stage, lambda challenge: token(secret))
    assert client.fetch(server.url + "/wider")["result"]["status"] == 403 and len(asked) == 1


def test_rule_o1_a_token_that_is_available_comes_before_digest(stage):
    secret = stage.secret()

    def handle(request):
        if request.authorization == f"Bearer {secret}":
            return response(200, b"in")
        return response(401, b"", 'WWW-Authenticate: Basic realm="r"', 'WWW-Authenticate: Bearer realm="r"')

    server = stage.server(handle)
    stage.allow(secret, server)
    client, asked = asking(stage, lambda challenge: {"action": "continue"})
    own = {"type": "token", "token": secret, "persistence": "none"}
    assert client.fetch(server.url, credential=own)["result"]["auth"]["authenticationMethod"] == "bearer" and not asked
    # If the fetch has no token, the challenge is for Basic, because users have passwords.
    assert client.fetch(server.url)["result"]["status"] == 401
    assert asked[0]["protectionSpace"]["authenticationMethod"] == "httpBasic"


def test_a_scheme_in_several_rounds(stage):
    """The server's next round is a challenge for the client, with the state from its answer."""
    first, second = stage.secret(), stage.secret()
    server = stage.server(rounds_server([('challenge="1"', f'response="{first}"'), ('challenge="2"', f'response="{second}"')]))
    for secret in [first, second]:
        stage.allow(secret, server)

    def reply(challenge):
        number = challenge["offers"][0]["params"]["challenge"]
        return header("hoba", f'response="{first if number == "1" else second}"', state=f"round {number}")

    client, asked = asking(stage, reply)
    result = client.fetch(server.url)["result"]
    assert result["status"] == 200 and result["body"]["value"] == "after all rounds\n"
    assert [one["protectionSpace"]["authenticationMethod"] for one in asked] == ["other", "other"]
    assert [one.get("state") for one in asked] == [None, "round 1"]
    assert [one["previousFailureCount"] for one in asked] == [0, 0] and asked[0]["accepts"] == ["header"]
    assert client.fetch(server.url)["result"]["exchanges"] == 3, "nothing of it is stored"


def test_a_wrong_header_counts_as_a_failure(stage):
    server = stage.server(rounds_server([('challenge="1"', "right")]))
    answers = [header("Hoba", "wrong"), header("Hoba", "wrong"), header("Nobody", "right"), header("Hoba", "right")]
    client, asked = asking(stage, lambda challenge: answers.pop(0))
    assert client.fetch(server.url)["result"]["status"] == 200
    assert [one["error"] and one["error"]["kind"] for one in asked] == [
        None, None, "credentialAlreadyRefused", "credentialOfWrongType"]
    assert [one["previousFailureCount"] for one in asked] == [0, 1, 2, 2]
    assert server.authorizations == [None, "Hoba wrong", "Hoba right"]


def test_the_client_can_make_the_header_of_a_known_scheme(stage):
    server, password = stage.protected("bob")
    client, asked = asking(stage, lambda challenge: header("Basic", basic("bob", password).removeprefix("Basic ")))
    assert client.fetch(server.url)["result"]["status"] == 200
    assert client.fetch(server.url)["result"]["status"] == 200 and len(asked) == 2


@pytest.mark.parametrize("scheme", ["NTLM", "Negotiate"])
def test_unlisted_schemes_are_not_answered(stage, scheme):
    server = stage.server(lambda request: response(401, b"no", f"WWW-Authenticate: {scheme}"))
    client, asked = asking(stage, lambda challenge: pytest.fail("unexpected challenge"))
    assert client.fetch(server.url)["result"]["status"] == 401 and not asked and len(server.requests) == 1


@pytest.mark.parametrize("same_folder", [False, True])
def test_rule_29_scopes_in_turn_cost_one_question_each(stage, same_folder):
    """Like a registry, the server answers a token of another scope with 401 and insufficient_scope."""
    tokens = {scope: stage.secret() for scope in ["read", "write"]}

    def handle(request):
        scope = "read" if "read" in request.target else "write"
        if request.authorization == f"Bearer {tokens[scope]}":
            return response(200, b"in")
        known = [f"Bearer {token}" for token in tokens.values()]
        error = ', error="insufficient_scope"' if request.authorization in known else ""
        return response(401, b"no", f'WWW-Authenticate: Bearer realm="api", scope="{scope}"{error}')

    server = stage.server(ScriptedServer(handle))
    for token in tokens.values():
        stage.allow(token, server)
    asked = []

    def answer(params):
        asked.append(params)
        token = tokens[params["offers"][0]["params"]["scope"]]
        return {"action": "credential", "credential": {"type": "token", "token": token, "persistence": "forSession"}}

    client = stage.client(answer=answer)
    for number in range(6):
        scope = ["read", "write"][number % 2]
        path = f"/{scope}" if same_folder else f"/{scope}/x"
        assert client.fetch(server.url + path)["result"]["status"] == 200
    assert len(asked) == 2 and [one["previousFailureCount"] for one in asked] == [0, 0]
