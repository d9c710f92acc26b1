"""The requirements of OpenRPC 1.4 for a document: its schema, written from the specification, and the rules that are only in
its text.

This reader is independent of the reader that the other tests use. `problems(document)` returns all violations.
"""
import collections
import re

import jsonschema

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
