"""Validates messages against Protocol/openrpc.json."""
import functools
import json

import jsonschema

from .broker import ROOT

PROTOCOL = ROOT / "Protocol"


@functools.cache
def document():
    return json.loads((PROTOCOL / "openrpc.json").read_text())


@functools.cache
def methods(direction):
    return {method["name"]: method for method in document()["methods"] if method["x-direction"] in (direction, "both")}


def resolve(schema):
    """Returns the schema that a reference names; other schemas as they are."""
    return document()["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]] if "$ref" in schema else schema


def check(value, schema):
    jsonschema.Draft202012Validator({**schema, "components": document()["components"]}).validate(value)


def check_params(direction, name, params):
    method = methods(direction)[name]
    known = {param["name"]: param for param in method["params"]}
    for param in known.values():
        assert not param.get("required") or param["name"] in params, f"{name} lacks {param['name']}"
    for key, value in params.items():
        assert key in known or direction == "brokerToClient", f"{name} has the unknown member {key}"
        if key in known:
            check(value, known[key]["schema"])
    # Which members belong to which method is in the schema of the whole message. Members that it does not describe are errors.
    whole = {"auth/challenge": "challenge", "auth/pending": "challenge", "event": "event", "fetch/completed": "fetchCompleted"}
    if name in whole:
        check(params, {"$ref": f"#/components/schemas/{whole[name]}"})


def check_error(error):
    check(error, {"$ref": "#/components/schemas/error"})


def check_messages(messages):
    """Checks all messages of the broker in a conversation, and the client's answers that the broker accepted."""
    asked = {}
    for direction, message in messages:
        for one in message if isinstance(message, list) else [message]:
            if direction == "client":
                if isinstance(one, dict) and "method" in one and isinstance(one.get("id"), (int, str)):
                    asked[one["id"]] = one["method"]
            elif "method" in one:
                check_params("brokerToClient", one["method"], one["params"])
            elif "error" in one:
                check_error(one["error"])
            elif asked.get(one["id"]) in methods("clientToBroker"):
                check(one["result"], methods("clientToBroker")[asked[one["id"]]]["result"]["schema"])
