"""The document is valid by the rules of OpenRPC 1.4, and an independent generator makes a client from it."""
import copy
import json
import os
import pathlib
import re
import subprocess

import pytest

from rig import openrpc, schemas
from rig.broker import ROOT
from rig.scripted import basic_server

PROGRAM = pathlib.Path(__file__).with_name("programs") / "generated_client.py"
#: The generator and its packages: contrib/install-dependencies --test.
GENERATOR = ROOT / ".build-generator"


@pytest.fixture(scope="module")
def document():
    return schemas.document()


def test_the_document_has_no_problem(document):
    assert openrpc.problems(document) == []


def method(document, name):
    return next(one for one in document["methods"] if one["name"] == name)


@pytest.mark.parametrize("change, said", [
    (lambda document: document.pop("info"), "'info' is a required property"),
    (lambda document: document.update(openrpc="1.3.2"), "does not match"),
    (lambda document: document.update(more=1), "'more' does not match any"),
    (lambda document: document["methods"].append(method(document, "ping")), "method ping stands there 2 times"),
    (lambda document: method(document, "ping").pop("params"), "not valid under any"),
    (lambda document: method(document, "ping").update(paramStructure="by-guess"), "not valid under any"),
    (lambda document: method(document, "fetch/run")["params"][0].pop("schema"), "not valid under any"),
    (lambda document: method(document, "fetch/run")["params"][0].update(name=""), "not valid under any"),
    (lambda document: method(document, "fetch/read")["params"].reverse(), "fetch/read: an optional parameter stands before a required one"),
    (lambda document: method(document, "fetch/read")["params"].append(method(document, "fetch/read")["params"][-1]), "fetch/read: parameter"),
    (lambda document: method(document, "fetch/run")["errors"].append({"code": 1001, "message": "again"}), "fetch/run: error 1001"),
    (lambda document: document["components"]["schemas"].pop("offer"), "#/components/schemas/offer leads nowhere"),
    (lambda document: document["components"]["schemas"].update(offer={"type": "thing"}), "not a JSON Schema"),
    (lambda document: document["components"].update(things={}), "'things' was unexpected"),
])
def test_every_rule_detects_a_violation(document, change, said):
    broken = copy.deepcopy(document)
    change(broken)
    found = openrpc.problems(broken)
    assert any(said in one for one in found), found


def test_rpc_discover_returns_this_document(stage, document):
    assert stage.client(delivery=None).call("rpc.discover")["result"] == document


def test_every_method_has_its_sender_and_only_notifications_have_no_result(document):
    for one in document["methods"]:
        assert one["x-direction"] in ("clientToBroker", "brokerToClient", "both") and one["paramStructure"] == "by-name"
        assert ("result" not in one) == one.get("x-notification", False), one["name"]


@pytest.mark.parametrize("name", ["auth/challenge", "auth/pending"])
def test_the_parameters_of_a_challenge_are_those_of_its_schema(document, name):
    whole = document["components"]["schemas"]["challenge"]
    params = method(document, name)["params"]
    assert {one["name"]: one["schema"] for one in params} == whole["properties"]
    assert {one["name"] for one in params if one.get("required")} == set(whole["required"])


def types_of(document):
    """Returns all schemas, and one for the parameters and one for the result of each method, for a generator of types."""
    found = dict(document["components"]["schemas"])
    for one in document["methods"]:
        name = "".join(part[:1].upper() + part[1:] for part in re.split(r"\W+", one["name"]))
        found[f"{name}Params"] = {
            "type": "object", "properties": {param["name"]: param["schema"] for param in one["params"]},
            "required": [param["name"] for param in one["params"] if param.get("required")]}
        if "result" in one:
            found[f"{name}Result"] = one["result"]["schema"]
    return {"openapi": "3.1.0", "info": document["info"], "paths": {}, "components": {"schemas": found}}


@pytest.fixture(scope="module")
def generated(document, tmp_path_factory):
    """A folder with `models.py`, made with datamodel-code-generator."""
    assert GENERATOR.is_dir(), "the generator is missing; run contrib/install-dependencies --test"
    folder = tmp_path_factory.mktemp("generated")
    (folder / "types.json").write_text(json.dumps(types_of(document)))
    done = run(folder, "-m", "datamodel_code_generator", "--input", "types.json", "--input-file-type", "openapi", "--output", "models.py",
               "--output-model-type", "pydantic_v2.BaseModel", "--target-python-version", "3.11")
    assert done.returncode == 0, done.stderr
    return folder


def run(folder, *words, **more):
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{GENERATOR}:{folder}", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(["/usr/bin/python3", *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=120, **more)


def test_a_client_made_by_a_generator_fetches_and_answers(stage, generated):
    password = stage.secret()
    server = stage.server(basic_server("bob", password, "Staff"))
    stage.allow(password, server)
    done = run(generated, str(PROGRAM), stage.broker().socket, server.url, "bob", input=password + "\n")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["page"]["status"], told["page"]["auth"]["user"]) == (200, "bob") and told["resolved"] == ["accepted"]
    assert told["version"] and len(server.authorizations) == 2


def test_the_generated_types_read_every_example(generated):
    """They accept the examples of all parameters and results, and reject what the schemas reject."""
    examples = [json.loads(path.read_text()) for path in sorted((schemas.PROTOCOL / "examples").glob("*/*.json")) if path.parent.name != "errors"]
    good = [one for one in examples if one.get("error", {}).get("data", {}).get("kind") not in ("invalidParams", "notSupported")]
    program = """
import json, re, sys, models
for method, what, value in json.load(sys.stdin):
    name = "".join(part[:1].upper() + part[1:] for part in re.split(r"\\W+", method)) + what
    getattr(models, name).model_validate(value)
try:
    models.Answer.model_validate({"action": "credental"})
except ValueError:
    print("read")
"""
    values = [(one["method"], what, one[key]) for one in good for what, key in (("Params", "params"), ("Result", "result")) if key in one]
    done = run(generated, "-c", program, input=json.dumps(values))
    assert (done.returncode, done.stdout) == (0, "read\n"), done.stderr
    assert len(values) > 100
