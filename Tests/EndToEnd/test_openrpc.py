"""The documents in Protocol/: valid by the rules of OpenRPC 1.4, consistent with each other and with the broker; an independent generator
makes a client from them."""
import collections
import copy
import json
import os
import pathlib
import re
import subprocess

import jsonschema
import pytest

from rig import schemas
from rig.bodies import Attached
from rig.broker import ROOT
from rig.client import framed
from rig.forwarding import ForwardProxy, basic_check
from rig.schemas import PROTOCOL
from rig.scripted import DigestCheck, ScriptedServer, basic, basic_server, bearer_server, response, rounds_server


def serve(kind, realm="Staff", user="bob", password="", algorithm="MD5", token="", scheme="", rounds=()):
    if kind == "basic":
        return basic_server(user, password, realm)
    if kind == "digest":
        return ScriptedServer(DigestCheck(user, password, realm, algorithm))
    if kind == "both":
        basic = basic_server(user, password, realm).handler
        digest = f'WWW-Authenticate: Digest realm="{realm}", nonce="n", qop="auth"'
        return ScriptedServer(
            lambda request: basic(request).replace(b"\r\nWWW-", f"\r\n{digest}\r\nWWW-".encode()))
    if kind == "redirect":
        return ScriptedServer(lambda request: response(302, b"", "Location: /there") if request.target == "/" else response(200, b"there"))
    if kind == "bearer":
        return bearer_server(token, realm)
    if kind == "rounds":
        return rounds_server(rounds, scheme)
    return ScriptedServer(lambda request: response(200, b"open"))


class Replay:
    """Replays a file of Protocol/conversations against a broker.

    A line is {"dir":"client","message":…} or "raw" for what the client sends, {"dir":"broker","message":…} for the message expected
    next, {"any-order":[…]} for messages expected in any order, and {"attach":{…},"reply":{…},"receives":…} for a second connection
    with its `fetch/attach`, the expected reply, and all bytes expected after it. The first line can be {"server":{…}} for the
    server that the conversation needs, with "proxy":{…} beside it for a proxy that requires a login. In strings, <url>, <host> and
    <port> stand for that server, <proxyUrl> and <proxyPort> for the proxy; "<any>" matches anything, "<bind:x>" does too and binds
    the value to x, and "<x>" is the bound value. An object matches if its members do; "<more>":true allows additional members.
    """

    def __init__(self, path):
        self.lines = [json.loads(line) for line in path.read_text().splitlines()]
        self.bound, self.servers = {}, []
        if "server" in self.lines[0]:
            needed = self.lines.pop(0)
            server = serve(**needed["server"])
            self.servers.append(server)
            self.bound = {"url": server.url, "host": "127.0.0.1", "port": server.port}
            if "proxy" in needed:
                proxy = ForwardProxy(basic_check(**needed["proxy"]))
                self.servers.append(proxy)
                self.bound |= {"proxyUrl": proxy.url, "proxyPort": proxy.port}

    def filled(self, value):
        if isinstance(value, str):
            if value[1:-1] in self.bound and value == f"<{value[1:-1]}>":
                return self.bound[value[1:-1]]
            return re.sub(r"<(\w+)>", lambda found: str(self.bound.get(found[1], found[0])), value)
        if isinstance(value, list):
            return [self.filled(one) for one in value]
        return {key: self.filled(one) for key, one in value.items()} if isinstance(value, dict) else value

    def match(self, wanted, got, where="message"):
        if isinstance(wanted, str) and (wanted == "<any>" or wanted.startswith("<bind:")):
            if wanted != "<any>":
                self.bound[wanted[6:-1]] = got
            return
        if isinstance(wanted, dict):
            assert isinstance(got, dict), f"{where}: {got!r}"
            names = set(wanted) - {"<more>"}
            assert names <= set(got) and ("<more>" in wanted or names == set(got)), f"{where}: {sorted(got)} for {sorted(names)}"
            for name in names:
                self.match(wanted[name], got[name], f"{where}.{name}")
        elif isinstance(wanted, list):
            assert isinstance(got, list) and len(got) == len(wanted), f"{where}: {got!r}"
            for index, pair in enumerate(zip(wanted, got)):
                self.match(*pair, f"{where}[{index}]")
        else:
            assert self.filled(wanted) == got, f"{where}: {got!r} for {self.filled(wanted)!r}"

    def run(self, client, receive):
        """Replays the conversation. `receive()` returns the next message of the broker."""
        for line in self.lines:
            if "raw" in line:
                client.send_bytes(framed(line["raw"].encode(), client.framing))
            elif line.get("dir") == "client":
                client.send(self.filled(line["message"]))
            elif "attach" in line:
                attached = Attached(client.socket.getpeername(), **self.filled(line["attach"]), framing=client.framing)
                self.match(line["reply"], attached.reply)
                if "receives" in line:
                    assert attached.read().decode() == line["receives"]
                attached.close()
            elif "any-order" in line:
                left = list(line["any-order"])
                for _ in range(len(left)):
                    got = receive()
                    one = next(one for one in left if one.get("id") == got.get("id"))
                    left.remove(one)
                    if "jsonrpc" in one:
                        self.match(one, got)
            else:
                self.match(line["message"], receive())


_TEXT = {"type": "string"}
_NAME = {"type": "string", "minLength": 1}
_LINK = {"type": "string", "format": "uri"}
_COMPONENTS = ("schemas", "links", "errors", "examples", "examplePairings", "contentDescriptors", "tags")


def _object(required=(), /, **members):
    """Returns the schema of an object with only these members and extensions (`x-`)."""
    return {"type": "object", "required": list(required), "properties": members, "patternProperties": {"^x-": {}},
            "additionalProperties": False}


def _or_reference(name):
    return {"oneOf": [{"$ref": f"#/$defs/{name}"}, {"$ref": "#/$defs/reference"}]}


def _list_of(name):
    return {"type": "array", "items": _or_reference(name)}


_DESCRIBED = {"name": _NAME, "summary": _TEXT, "description": _TEXT}
_SERVERS = {"type": "array", "items": {"$ref": "#/$defs/server"}}
_DEFINITIONS = {
    # Each is also checked separately as a JSON Schema.
    "schema": {"type": ["object", "boolean"]},
    "reference": {"type": "object", "required": ["$ref"], "properties": {"$ref": _TEXT}, "additionalProperties": False},
    "info": _object(
        ["title", "version"], title=_TEXT, version=_TEXT, description=_TEXT, termsOfService=_LINK,
        contact=_object(name=_TEXT, email=_TEXT, url=_TEXT), license=_object(name=_TEXT, url=_TEXT)),
    "documentation": _object(["url"], url=_LINK, description=_TEXT),
    "server": _object(["url"], url=_LINK, name=_TEXT, summary=_TEXT, description=_TEXT, variables={"type": "object"}),
    "descriptor": _object(
        ["name", "schema"], **_DESCRIBED, schema={"$ref": "#/$defs/schema"}, required={"type": "boolean"},
        deprecated={"type": "boolean"}),
    "error": {"type": "object", "required": ["code", "message"], "additionalProperties": False,
              "properties": {"code": {"type": "integer"}, "message": _TEXT, "data": {}}},
    "tag": _object(["name"], name=_NAME, description=_TEXT, externalDocs={"$ref": "#/$defs/documentation"}),
    "link": _object(**_DESCRIBED, method=_TEXT, params={}, server={"$ref": "#/$defs/server"}),
    "example": {"type": "object", "required": ["name", "value"]},
    "pairing": {"type": "object", "required": ["name", "params"]},
    "method": _object(
        ["name", "params"], **_DESCRIBED, params=_list_of("descriptor"), result=_or_reference("descriptor"),
        paramStructure={"enum": ["by-name", "by-position", "either"]}, errors=_list_of("error"), tags=_list_of("tag"),
        links=_list_of("link"), examples=_list_of("pairing"), servers=_SERVERS, deprecated={"type": "boolean"},
        externalDocs={"$ref": "#/$defs/documentation"}),
}
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": _DEFINITIONS,
    **_object(
        ["openrpc", "info", "methods"], openrpc={"type": "string", "pattern": r"^1\.4\.\d+$"}, info={"$ref": "#/$defs/info"},
        methods=_list_of("method"), servers=_SERVERS, externalDocs={"$ref": "#/$defs/documentation"},
        components={"type": "object", "properties": {name: {"type": "object"} for name in _COMPONENTS}, "additionalProperties": False},
        **{"$schema": _TEXT})}


def problems(document):
    """Yields the problems as texts; none for a valid document."""
    found = [f"{'/'.join(map(str, error.absolute_path))}: {error.message}"
             for error in jsonschema.Draft202012Validator(SCHEMA).iter_errors(document)]
    # The following checks rely on the schema.
    return found or [*_repeated("method", [method["name"] for method in document["methods"]]), *_methods(document), *_references(document),
                     *_schemas(document)]


def _repeated(what, names):
    return [f"{what} {name} stands there {count} times" for name, count in collections.Counter(names).items() if count > 1]


def _methods(document):
    for method in document["methods"]:
        name, params = method["name"], method["params"]
        yield from _repeated(f"{name}: parameter", [param["name"] for param in params])
        yield from _repeated(f"{name}: error", [error["code"] for error in method.get("errors", [])])
        wanted = [param.get("required", False) for param in params]
        if wanted != sorted(wanted, reverse=True):
            yield f"{name}: an optional parameter stands before a required one"


def _references(document):
    def inside(value):
        if isinstance(value, dict):
            if isinstance(value.get("$ref"), str):
                yield value["$ref"]
            value = list(value.values())
        if isinstance(value, list):
            for one in value:
                yield from inside(one)

    for reference in set(inside(document)):
        where = document
        for part in reference.removeprefix("#/").split("/"):
            where = where.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(where, dict) else None
        if where is None or not reference.startswith("#/"):
            yield f"{reference} leads nowhere"


def _schemas(document):
    named = document.get("components", {}).get("schemas", {})
    for name in named:
        if not re.fullmatch(r"[A-Za-z0-9._-]+", name):
            yield f"schema {name!r} has a name that a reference cannot hold"
    described = [one["schema"] for method in document["methods"] for one in (*method["params"], *filter(None, [method.get("result")]))]
    for schema in [*named.values(), *described]:
        try:
            jsonschema.Draft202012Validator.check_schema(schema)
        except jsonschema.SchemaError as error:
            yield f"not a JSON Schema: {error.message}"


PROGRAM = pathlib.Path(__file__).with_name("programs") / "generated_client.py"
#: The generator and its packages: contrib/install-dependencies --test.
GENERATOR = ROOT / ".build-generator"


@pytest.fixture(scope="module")
def document():
    return schemas.document()


def test_the_document_has_no_problem(document):
    assert problems(document) == []


def method(document, name):
    return next(one for one in document["methods"] if one["name"] == name)


@pytest.mark.parametrize("change, said", [
    (lambda document: document.pop("info"), "'info' is a required property"),
    (lambda document: document.update(more=1), "'more' does not match any"),
    (lambda document: document["methods"].append(method(document, "ping")), "method ping stands there 2 times"),
    (lambda document: method(document, "ping").pop("params"), "not valid under any"),
    (lambda document: method(document, "fetch/read")["params"].reverse(), "fetch/read: an optional parameter stands before a required one"),
    (lambda document: method(document, "fetch/read")["params"].append(method(document, "fetch/read")["params"][-1]), "fetch/read: parameter"),
    (lambda document: method(document, "fetch/run")["errors"].append({"code": 1001, "message": "again"}), "fetch/run: error 1001"),
    (lambda document: document["components"]["schemas"].pop("offer"), "#/components/schemas/offer leads nowhere"),
    (lambda document: document["components"]["schemas"].update(offer={"type": "thing"}), "not a JSON Schema"),
])
def test_every_rule_detects_a_violation(document, change, said):
    broken = copy.deepcopy(document)
    change(broken)
    found = problems(broken)
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


VALUES = {"id": "session:1", "expiresAt": "2026-11-29T00:00:00Z", "since": "2026-11-29T00:00:00Z", "path": "/", "spkiSha256": "0a" * 32,
          "protocol": "http", "host": "h", "certificate": "/c.pem", "privateKey": "/k.pem", "listen": "127.0.0.1:0"}


def samples(schema, name=None):
    """Values of a schema: for an object the required members alone, and then with each of its other members; one for each alternative."""
    schema = schemas.resolve(schema)
    for alternative in schema.get("oneOf", []) + schema.get("anyOf", []):
        yield from samples(alternative, name)
    if "const" in schema:
        yield schema["const"]
    elif "enum" in schema:
        yield schema["enum"][0]
    elif schema.get("type") == "object" and "properties" in schema:
        fixed = {name: next(samples(schema["properties"][name], name), "x") for name in schema.get("required", [])}
        yield fixed
        for name, member in schema["properties"].items():
            for value in samples(member, name):
                yield {**fixed, name: value}
    elif schema.get("type") == "array":
        yield []
    elif "type" in schema:
        yield {"integer": schema.get("minimum", 1), "boolean": False, "null": None}.get(str(schema["type"]), VALUES.get(name, "x"))


def misspelt(value):
    """Yields copies of an object in which one member, at any depth, has another name, and that name."""
    for name, member in value.items() if isinstance(value, dict) else ():
        for wrong in (name[:-1], name + "s"):
            yield {**{key: one for key, one in value.items() if key != name}, wrong: member}, wrong
        for changed, wrong in misspelt(member):
            yield {**value, name: changed}, wrong


@pytest.mark.parametrize("method", sorted(set(schemas.methods("clientToBroker")) - {"$/cancelRequest"}))
def test_rule_p15_a_misspelt_member_is_refused_at_any_depth(stage, method):
    """All objects that the schemas describe, with each of their members misspelt: the error names it, and nothing is done."""
    params = {one["name"]: one for one in schemas.methods("clientToBroker")[method]["params"]}
    whole = {"type": "object", "properties": {name: one["schema"] for name, one in params.items()},
             "required": [name for name, one in params.items() if one.get("required")]}
    tried = {json.dumps(changed): (changed, wrong) for value in samples(whole) for changed, wrong in misspelt(value)}
    tried["{}"] = ({**next(samples(whole)), "unknown": 1}, "unknown")
    client = stage.client()
    before = client.call("server/status")["result"]
    for changed, wrong in tried.values():
        error = client.call(method, changed)["error"]
        assert error["data"]["kind"] == "invalidParams" and f'unknown member "{wrong}"' in error["data"]["detail"], (changed, error)
    after = client.call("server/status")["result"]
    assert {**after, "uptimeMs": 0, "loop": 0} == {**before, "uptimeMs": 0, "loop": 0}


def test_every_method_has_an_example():
    found = [json.loads(path.read_text()) for path in EXAMPLES]
    for direction in ["clientToBroker", "brokerToClient"]:
        assert set(schemas.methods(direction)) == {one["method"] for one in found if one["direction"] == direction}
