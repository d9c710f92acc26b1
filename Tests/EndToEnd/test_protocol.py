"""The documents in Protocol/ are consistent with each other, and with the broker."""
import json
import re

import jsonschema
import pytest

from rig import schemas
from rig.conversations import Replay
from rig.schemas import PROTOCOL
from rig.scripted import basic_server

CONVERSATIONS = sorted((PROTOCOL / "conversations").glob("*.jsonl"))
EXAMPLES = sorted(path for path in (PROTOCOL / "examples").glob("*/*.json") if path.parent.name != "errors")
ERRORS = json.loads((PROTOCOL / "errors.json").read_text())


@pytest.mark.parametrize("framing", ["lines", "headers"])
@pytest.mark.parametrize("path", CONVERSATIONS, ids=lambda path: path.stem)
def test_conversation(stage, path, framing):
    replay = Replay(path)
    for server in replay.servers:
        stage.server(server)
    client = stage.client(framing=framing, delivery=None)
    heard = 0

    def receive():
        nonlocal heard
        with client.arrived:
            came = lambda: [message for side, message in client.messages if side == "broker"]
            assert client.arrived.wait_for(lambda: len(came()) > heard, 15), f"nothing more came after {came()[-1:]}"
            heard += 1
            return came()[heard - 1]

    replay.run(client, receive)
    client.next_id = 1_000_000
    assert client.call("ping")["result"] == {}
    assert len([1 for side, _ in client.messages if side == "broker"]) == heard + 1, "the broker sent more than was expected"


def test_every_schema_is_valid():
    document = schemas.document()
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    names = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)))
    assert names <= set(document["components"]["schemas"])


def test_the_documents_methods_of_the_broker_are_those_of_the_source():
    """For the methods of clients see Tests/BrokerTests/MethodTableTests.swift."""
    source = (PROTOCOL.parent / "Sources/WatchwordProtocol/Methods/Method.swift").read_text()
    cases = " ".join(re.findall(r"case (.*\n)", source.partition("enum BrokerMethodName")[2].partition("}")[0]))
    names = {quoted or bare for bare, quoted in re.findall(r'(\w+)(?: = "([^"]+)")?(?=,|\n)', cases)}
    assert names == set(schemas.methods("brokerToClient"))


def test_every_error_is_listed_once_with_the_sources_number():
    source = (PROTOCOL.parent / "Sources/WatchwordProtocol/RPC/RPCError.swift").read_text()
    entries = re.findall(r"case \.(\w+): \((-?\d+), \.(\w+)", source)
    assert sorted(entries) == sorted((error["kind"], str(error["code"]), error["retry"]) for error in ERRORS)
    specification = (PROTOCOL / "SPECIFICATION.md").read_text()
    for error in ERRORS:
        assert f"| {error['code']} | `{error['kind']}` |" in specification


def test_the_specification_names_every_method():
    specification = (PROTOCOL / "SPECIFICATION.md").read_text()
    for direction in ["clientToBroker", "brokerToClient"]:
        for name in schemas.methods(direction):
            assert f"`{name}" in specification, name


def test_every_error_has_an_example():
    for error in ERRORS:
        example = json.loads((PROTOCOL / "examples" / "errors" / f"{error['kind']}.json").read_text())["error"]
        schemas.check_error(example)
        assert (example["code"], example["data"]["retry"]) == (error["code"], error["retry"])


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_example(path):
    example = json.loads(path.read_text())
    direction, name = example["direction"], example["method"]
    refused = example.get("error", {}).get("data", {}).get("kind")
    if refused not in ("invalidParams", "notSupported"):
        schemas.check_params(direction, name, example["params"])
    if "result" in example:
        schemas.check(example["result"], schemas.methods(direction)[name]["result"]["schema"])
    elif "error" in example:
        schemas.check_error(example["error"])


def wrong(example, change):
    params = json.loads((PROTOCOL / "examples" / "auth.challenge" / f"{example}.json").read_text())["params"]
    change(params)
    return params


@pytest.mark.parametrize("example, change", [
    ("bearer", lambda params: params.update(persistenceAllowed=["permanent"])),
    ("other", lambda params: params.update(accepts=["password"])),
    ("proxy", lambda params: params["protectionSpace"].pop("proxyType")),
    ("proxy", lambda params: params["protectionSpace"].update(isProxy=False)),
    ("server-trust", lambda params: params["protectionSpace"].pop("serverTrust")),
    ("server-trust", lambda params: params["protectionSpace"]["serverTrust"].update(problems=["odd"])),
    ("client-certificate", lambda params: params["protectionSpace"].pop("distinguishedNames")),
    ("downgrade", lambda params: params.update(downgrade=False)),
])
def test_the_schema_refuses_a_challenge_whose_parts_do_not_fit(example, change):
    schemas.check_params("brokerToClient", "auth/challenge", wrong(example, lambda params: None))
    with pytest.raises(jsonschema.ValidationError):
        schemas.check_params("brokerToClient", "auth/challenge", wrong(example, change))


HASH = "0123456789abcdef" * 4
CREDENTIALS = [
    ({"type": "password", "user": "u", "password": "p", "domain": "D", "persistence": "permanent"}, True),
    ({"type": "password", "user": "u"}, False),
    ({"type": "password", "user": "u", "password": "p", "token": "t"}, False),
    ({"type": "password", "user": "u", "password": "p", "persistence": "forever"}, False),
    ({"type": "token", "token": "a.b-c_d~e+f/g=="}, True),
    ({"type": "token", "token": "a b"}, False),
    ({"type": "token", "token": "="}, False),
    ({"type": "token", "token": "t", "user": "u"}, False),
    ({"type": "header", "scheme": "Hoba", "value": 'a="b"', "state": "s", "persistence": "none"}, True),
    ({"type": "header", "scheme": "Ho ba", "value": "v"}, False),
    ({"type": "header", "scheme": "Hoba", "value": "v", "persistence": "forSession"}, True),
    ({"type": "certificate", "certificate": "/a.pem", "privateKey": "pkcs11:object=k", "passphrase": "p"}, True),
    ({"type": "certificate", "certificate": "a.pem"}, False),
    ({"type": "certificate", "certificate": "/a.pem", "persistence": "permanent"}, True),
    ({"type": "trust", "spkiSha256": HASH, "persistence": "permanent"}, True),
    ({"type": "trust", "spkiSha256": HASH.upper()}, True),
    ({"type": "trust", "spkiSha256": HASH[1:]}, False),
    ({"type": "trust", "spkiSha256": HASH, "sha256": HASH}, False),
    ({"type": "proposed"}, True),
    ({"type": "proposed", "persistence": "none"}, False),
    ({"type": "tickets"}, False),
]


def test_the_schema_and_the_broker_accept_the_same_credentials(stage):
    server = stage.server(basic_server("bob", stage.secret()))
    client = stage.client(delivery="notification")
    client.start("fetch/run", {"url": server.url + "/"})
    challenge = client.notifications.get(timeout=30)
    schema = jsonschema.Draft202012Validator(
        {"$ref": "#/components/schemas/answer", "components": schemas.document()["components"]})
    for credential, good in CREDENTIALS:
        answer = {"action": "credential", "credential": credential}
        assert schema.is_valid(answer) == good, credential
        reply = client.call("auth/respond", {"challengeId": challenge["params"]["challengeId"], "answer": answer})["result"]
        assert reply["accepted"] == good and reply.get("reason") == (None if good else "invalid"), (credential, reply)
        if good:
            # The outcome of the previous answer arrives in between.
            challenge = next(one for one in iter(lambda: client.notifications.get(timeout=30), None) if one["method"] == "auth/pending")
    assert len(server.requests) == 2, "the password was sent, and nothing else"


def test_every_method_has_an_example():
    found = [json.loads(path.read_text()) for path in EXAMPLES]
    for direction in ["clientToBroker", "brokerToClient"]:
        assert set(schemas.methods(direction)) == {one["method"] for one in found if one["direction"] == direction}
