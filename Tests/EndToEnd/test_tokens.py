"""Bearer, and schemes that only the client supports."""
from rig.scripted import bearer_server, rounds_server


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
