"""The types of the Python and the Node client: they match the protocol, accept correct programs, and find mistakes."""
import dataclasses
import json
import re
import shutil
import subprocess
import typing

import pytest

from rig.broker import ROOT
from rig.clients import CLIENTS, login, run, site  # noqa: F401
from rig.languages import built, shown
from test_clients_features import PROGRAMS

import watchword  # noqa: E402
from watchword import aio, messages, options  # noqa: E402
from watchword import Certificate, Header, Password, Token, Trust, Watchword, _signatures  # noqa: E402

DOCUMENT = json.loads((ROOT / "Protocol" / "openrpc.json").read_text())
SCHEMAS = DOCUMENT["components"]["schemas"]


def method(name):
    return next(method for method in DOCUMENT["methods"] if method["name"] == name)


def params(name):
    """Returns the parameters of a method as the schema of an object."""
    listed = method(name)["params"]
    return {"properties": {one["name"]: one["schema"] for one in listed},
            "required": [one["name"] for one in listed if one.get("required")]}


def values(schema):
    """Returns the values of an enumeration, or those of the items of a list, if any."""
    schema = SCHEMAS[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    return set(schema.get("enum", ())) or ("items" in schema and values(schema["items"]))


def literals(hint):
    """Returns the values that a type names."""
    if typing.get_origin(hint) is typing.Literal:
        return set(typing.get_args(hint))
    return set().union(*(literals(inner) for inner in typing.get_args(hint)))


@pytest.mark.parametrize("named, schema", [
    (messages.CertificateFacts, SCHEMAS["certificateFacts"]), (messages.ServerTrust, SCHEMAS["serverTrust"]),
    (messages.ProtectionSpace, SCHEMAS["protectionSpace"]), (messages.Offer, SCHEMAS["offer"]),
    (messages.KnownUser, SCHEMAS["knownUser"]), (messages.ProposedCredential, SCHEMAS["proposedCredential"]),
    (messages.Requester, SCHEMAS["requester"]), (messages.TokenLogin, SCHEMAS["tokenLogin"]), (messages.Challenge, params("auth/challenge")),
    (messages.Resolved, params("auth/resolved")), (messages.InlineBody, SCHEMAS["bytes"]),
    (messages.BodyHandle, SCHEMAS["bodyHandle"]), (messages.Authentication, SCHEMAS["authentication"]),
    (messages.UnansweredScheme, SCHEMAS["unansweredScheme"]), (messages.Fetched, SCHEMAS["fetchResult"]),
    (messages.Started, method("fetch/start")["result"]["schema"]), (options.AuthOptions, SCHEMAS["authParams"]),
    (options.ProxyOptions, SCHEMAS["proxyParams"]["oneOf"][1]), (options.TLSOptions, SCHEMAS["tlsParams"]),
    (options.LowSpeed, SCHEMAS["lowSpeed"]), (options.RedirectOptions, SCHEMAS["redirectParams"])],
    ids=lambda one: getattr(one, "__name__", ""))
def test_a_python_type_has_the_members_of_its_schema(named, schema):
    assert set(typing.get_type_hints(named)) == set(schema["properties"])
    assert named.__required_keys__ == set(schema.get("required", ()))
    for name, hint in typing.get_type_hints(named).items():
        if values(schema["properties"][name]) and literals(hint):
            # A boolean is a type of its own in Python.
            assert literals(hint) == values(schema["properties"][name]) - {True, False}, name


@pytest.mark.parametrize("credential, schema", [
    (Password, "passwordCredential"), (Token, "tokenCredential"), (Certificate, "certificateCredential"),
    (Trust, "trustCredential"), (Header, "headerCredential")])
def test_a_credential_has_the_members_of_its_schema(credential, schema):
    fields = {field.name for field in dataclasses.fields(credential)}
    # A header is never stored.
    unused = {"type", "persistence"} if credential is Header else {"type"}
    assert fields == set(SCHEMAS[schema]["properties"]) - unused


def test_a_fetch_has_the_options_of_the_protocol():
    own = {"self", "url", "data", "size", "inline_bytes", "handler"}
    unused = {"url", "resume", "answer"}
    for template, name in [
            (_signatures.fetch, "fetch/run"), (_signatures.async_fetch, "fetch/run"),
            (_signatures.start, "fetch/start"), (_signatures.async_start, "fetch/start")]:
        taken = set(typing.get_type_hints(template)) | {"self"}
        assert taken - own - {"return"} == set(params(name)["properties"]) - unused


def test_a_misspelt_option_is_found_before_anything_is_sent(site):
    with Watchword(answer=site.log_in, path=site.broker_path) as broker:
        for call in (broker.fetch, broker.open, broker.stream, broker.start):
            with pytest.raises(TypeError, match="has no option 'methd'"):
                call(site.url + "/page", methd="PUT")
        assert site.seen == [] and "methd" not in str(broker.fetch.__signature__) and "method" in str(broker.fetch.__signature__)

    async def misspell():
        async with aio.AsyncWatchword(answer=site.log_in, path=site.broker_path) as broker:
            for call in (broker.fetch, broker.open, broker.stream, broker.start):
                with pytest.raises(TypeError, match="has no option 'methd'"):
                    call(site.url + "/page", methd="PUT")

    run(misspell())
    assert site.seen == []


def test_a_credential_is_an_option(site):
    credential = Password("bob", site.password)
    with Watchword(path=site.broker_path) as broker:
        page = broker.fetch(site.url + "/page", credential=credential, auth={"useStorage": False})
        assert (page["status"], page["auth"]["user"], page["auth"]["source"]) == (200, "bob", "explicit")
        with pytest.raises(TypeError, match="of type set cannot be sent") as caught:
            broker.fetch(site.url + "/page", headers={site.password})
        assert site.password not in str(caught.value)


def mypy(folder, program):
    """Returns the errors of mypy for a program, without their locations. What it finds in other files is read again from its cache."""
    (folder / "program.py").write_text(program)
    done = subprocess.run(
        ["/usr/bin/mypy", "--strict", "--no-error-summary", "--hide-error-context", "--config-file=", "--ignore-missing-imports",
         "--cache-dir", str(folder.parent / "mypy"), "program.py"],
        cwd=folder, env={"PATH": "/usr/bin:/bin", "MYPYPATH": str(CLIENTS / "python")}, capture_output=True, text=True, timeout=600)
    assert not done.stderr
    return re.findall(r"^program\.py:(\d+): error: (.*)$", done.stdout, re.M)


def test_mypy_accepts_the_example(tmp_path):
    assert mypy(tmp_path, (CLIENTS / "python" / "typed.py").read_text()) == []


CORRECT = """
import asyncio, io
from typing import AsyncIterator
from watchword import *
from watchword.aio import AsyncWatchword
from watchword.requests_adapter import WatchwordAdapter
from watchword.httpx_transport import AsyncWatchwordTransport, WatchwordTransport

def ask(challenge: Challenge) -> Answer:
    for known in challenge.get("knownUsers", []):
        return Stored(known["id"])
    return Password("bob", "x", persistence="forSession") if challenge["protectionSpace"]["realm"] else ("bob", "x")

async def ask_later(challenge: Challenge) -> Answer:
    return {"action": "reject"}

def told(end: Resolved) -> None:
    print(end.get("outcome") == "accepted")

broker = Watchword(answer=ask, resolved=told)
page = broker.fetch("https://h/", b"x", method="PUT", headers=[("A", "b")], credential=Token("t"), handler=ask)
status: int = page["status"]
body: bytes = broker.content(page)
user = page["auth"]["user"] if page["auth"] else None
with broker.stream("https://h/", data=io.BytesIO(), tls={"pin": Trust("00")}, proxy="none") as response:
    parts = [len(part) for part in response]
    source = response.auth and response.auth["source"] == "session"
download = broker.start("https://h/", auth={"interaction": "none", "useStorage": False})
count = broker.finish(download)["bodyBytes"]
WatchwordAdapter(answer=ask, auth={"useStorage": False})
WatchwordTransport(answer=ask, tls={"pin": Trust("00")})
AsyncWatchwordTransport(answer=ask_later)

async def later() -> int:
    async def parts() -> AsyncIterator[bytes]:
        yield b""
    async with AsyncWatchword(answer=ask_later) as broker, broker.stream("https://h/", parts()) as response:
        return (await broker.fetch("https://h/", handler=ask_later))["status"] + len(await response.read())
"""
MISTAKES = {
    'broker.fetch("https://h/", methd="PUT")': 'Unexpected keyword argument "methd"',
    'broker.stream("https://h/", timeoutMS=3)': 'Unexpected keyword argument "timeoutMS"',
    'broker.open("https://h/", handlr=ask)': 'Unexpected keyword argument "handlr"',
    'broker.start("https://h/", maxInlineBodyBytes=3)': 'Unexpected keyword argument "maxInlineBodyBytes"',
    'AsyncWatchword().fetch("https://h/", methd="PUT")': 'Unexpected keyword argument "methd"',
    'WatchwordAdapter(tsl={"pin": Trust("00")})': 'Unexpected keyword argument "tsl"',
    'AsyncWatchwordTransport(answr=ask)': 'Unexpected keyword argument "answr"',
    'broker.fetch("https://h/", timeoutMs="3")': 'incompatible type "str"',
    'broker.fetch("https://h/", auth={"useStorge": False})': 'expected "Optional[AuthOptions]"',
    'broker.fetch("https://h/", auth={"interaction": "unknown"})': 'TypedDict item "interaction"',
    'broker.fetch("https://h/", tls={"pin": "00"})': 'TypedDict item "pin" has type "Trust"',
    'broker.fetch("https://h/", credential=("bob", "x"))': 'incompatible type "Tuple[str, str]"',
    'page["staus"]': 'TypedDict "Fetched" has no key "staus"',
    'page["auth"]["user"]': 'Value of type "Optional[Authentication]" is not indexable',
    'page["body"]["value"]': 'TypedDict "BodyHandle" has no key "value"',
    'broker.content(download)': 'incompatible type "Started"',
    'broker.finish(download)["body"]': 'TypedDict "Finished" has no key "body"',
    'response.satus': '"Stream" has no attribute "satus"',
    'Password("bob", "x", persistence="forever")': 'expected "Optional[Literal[',
    'Watchword(answer=lambda challenge: challenge["ulr"])': 'TypedDict "Challenge" has no key "ulr"',
    'Watchword(answer=lambda challenge: ("bob", None))': 'Incompatible return value type',
    'Watchword(answer=lambda challenge: {"action": "cancl"})': 'TypedDict item "action"',
    'Watchword(answer=ask_later)': 'Argument "answer" to "Watchword" has incompatible type',
}


def test_mypy_accepts_correct_programs(tmp_path):
    assert mypy(tmp_path, CORRECT) == []


def test_mypy_finds_mistakes(tmp_path):
    first = CORRECT.count("\n") + 1
    found = {}
    for line, error in mypy(tmp_path, CORRECT + "\n".join(MISTAKES)):
        found.setdefault(int(line) - first, []).append(error)
    missed = [(mistake, found.get(number)) for number, (mistake, error) in enumerate(MISTAKES.items())
              if not any(error in one for one in found.get(number, []))]
    assert missed == [] and len(found) == len(MISTAKES)


# Node


def tsc(folder, program):
    """Returns the errors of the TypeScript compiler for a program, with their lines."""
    for path in (CLIENTS / "node").glob("*.d.mts"):
        shutil.copy(path, folder)
    shutil.copy(PROGRAMS / "node-types.d.ts", folder)
    (folder / "program.mts").write_text(program)
    done = subprocess.run(
        ["/usr/bin/tsc", "--noEmit", "--strict", "--module", "node16", "--target", "es2022", "--lib", "es2022,dom,dom.iterable",
         "program.mts", "node-types.d.ts"], cwd=folder, capture_output=True, text=True, timeout=600)
    assert not done.stderr
    # The lines of one error after the first are indented.
    errors = re.findall(r"^program\.mts\((\d+),\d+\): error \w+: (.*(?:\n .*)*)", done.stdout, re.M)
    assert len(errors) == len(re.findall("^[^ ]", done.stdout, re.M)), done.stdout
    return errors


def exports():
    """Returns the names that each module exports."""
    script = "for (const name of ['watchword', 'fetch']) console.log(JSON.stringify([name, Object.keys(await import(`./${name}.mjs`))]))"
    done = subprocess.run(["node", "--input-type=module", "-e", script], cwd=CLIENTS / "node", capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def examples(name):
    """Returns the examples of a method in the specification."""
    return [json.loads(path.read_text()) for path in sorted((ROOT / "Protocol" / "examples").rglob("*.json"))
            if json.loads(path.read_text()).get("method") == name]


CORRECT_TYPESCRIPT = """
import { BrokerError, ConnectionError, Watchword, stored, type Answer, type Challenge, type Result } from './watchword.mjs'
import { createFetch, fetch as byAgent } from './fetch.mjs'

function answer(challenge: Challenge): Answer {
  for (const known of challenge.knownUsers ?? []) return stored(known)
  return challenge.previousFailureCount ? 'cancel' : { user: 'bob', password: challenge.protectionSpace.realm ?? '' }
}
const broker = await Watchword.connect({ answer, resolved: end => { const accepted: boolean = end.outcome === 'accepted' } })
const page = await broker.fetch('https://h/', { method: 'PUT', data: 'x', tls: { pin: { type: 'trust', spkiSha256: '00' } } })
const text: string = page.body.toString() + (page.auth?.user ?? '')
const fetch = createFetch({ answer: async challenge => null, auth: { useStorage: false } })
const response = await fetch(new URL('https://h/'), { method: 'POST', headers: { A: 'b' }, body: 'x', signal: new AbortController().signal })
const standard: typeof globalThis.fetch = fetch
const user: string | null | undefined = response.watchword.auth?.user
const status: number = response.clone().watchword.status
const json: unknown = await (await byAgent('https://h/')).json()
"""
MISTAKES_TYPESCRIPT = {
    "await broker.fetch('https://h/', { methd: 'PUT' })": "'methd' does not exist in type",
    "await broker.fetch('https://h/', { timeoutMs: '3' })": "Type 'string' is not assignable to type 'number'",
    "await broker.stream('https://h/', { auth: { interaction: 'unknown' } })": "'\"unknown\"' is not assignable",
    "page.staus": "Property 'staus' does not exist",
    "page.auth.user": "Object is possibly 'null'",
    "createFetch({ answr: answer })": "'answr' does not exist in type",
    "createFetch({ answer: () => 'cancl' })": "'\"cancl\"' is not assignable",
    "createFetch({ answer: challenge => challenge.ulr })": "Property 'ulr' does not exist",
    "createFetch({ answer: () => ({ user: 'bob', pasword: 'x' }) })": "is not assignable to type",
    "await fetch('https://h/', { sgnal: undefined })": "'sgnal' does not exist in type",
    "response.watchword.auth.user": "Object is possibly",
    "response.satus": "Property 'satus' does not exist",
    "new Watchword()": "Constructor of class 'Watchword' is private",
}


def test_tsc_accepts_correct_programs_and_every_export(tmp_path):
    imports = "".join(f"export {{ {', '.join(names)} }} from './{module}.mjs'\n" for module, names in exports())
    assert tsc(tmp_path, CORRECT_TYPESCRIPT + imports) == []


def test_tsc_finds_mistakes(tmp_path):
    first = CORRECT_TYPESCRIPT.count("\n") + 1
    found = {int(line) - first: error for line, error in tsc(tmp_path, CORRECT_TYPESCRIPT + "\n".join(MISTAKES_TYPESCRIPT))}
    missed = [(mistake, found.get(number)) for number, (mistake, error) in enumerate(MISTAKES_TYPESCRIPT.items())
              if error not in found.get(number, "")]
    assert missed == [] and len(found) == len(MISTAKES_TYPESCRIPT)


def test_the_declarations_have_the_members_of_the_protocol(tmp_path):
    """TypeScript refuses missing and unknown members of a literal."""
    results = [{name: value for name, value in one["result"].items() if name != "body"}
               for one in examples("fetch/run") if "status" in one.get("result", {})]
    literals = [("Challenge", one["params"]) for one in examples("auth/challenge")]
    literals += [("Resolved", one["params"]) for one in examples("auth/resolved")] + [("Result", one) for one in results]
    assert len({kind for kind, _ in literals}) == 3
    assert tsc(tmp_path, "import type { Challenge, Resolved, Result } from './watchword.mjs'\n" + "".join(
        f"export const value{number}: {kind} = {json.dumps(value)}\n" for number, (kind, value) in enumerate(literals))) == []


# Versions and documentation


def test_the_clients_have_the_version_of_the_product(site):
    version = re.search(r'current = "(.*)"', (ROOT / "Sources/WatchwordProtocol/Version.swift").read_text()).group(1)
    script = "console.log((await import('./watchword.mjs')).version)"
    done = subprocess.run(["node", "--input-type=module", "-e", script], cwd=CLIENTS / "node", capture_output=True, text=True, check=True)
    with Watchword(path=site.broker_path) as broker:
        assert {watchword.__version__, done.stdout.strip(), broker.call("server/status")["version"]} == {version}
    for folder in ("python", "node"):
        places = [path for path in (CLIENTS / folder).rglob("*") if path.is_file() and path.suffix != ".pyc" and version in path.read_text()]
        assert len(places) == 1, places


def test_the_python_package_has_this_version(tmp_path):
    shutil.copytree(CLIENTS / "python", tmp_path / "python", ignore=shutil.ignore_patterns("__pycache__"))
    script = "import setuptools.config.pyprojecttoml as p; print(p.read_configuration('pyproject.toml')['project']['version'])"
    done = subprocess.run(["/usr/bin/python3", "-W", "ignore", "-c", script], cwd=tmp_path / "python", capture_output=True, text=True)
    assert done.stdout.strip() == watchword.__version__, done.stderr


@pytest.mark.parametrize("folder, path, command, output", [
    ("python", "typed.py", ["/usr/bin/python3", "typed.py"], "200 {url} bob\n11 bytes\n"),
    ("node", "fetch-example.mjs", ["node", "fetch-example.mjs"], "200 staff page\n\nbob\n")])
def test_the_examples_of_the_readme_run(folder, path, command, output, site, login, tmp_path_factory):
    assert shown(f"{folder}/{path}") == (CLIENTS / folder / path).read_text()
    url = site.url + "/page"
    done = built(folder, tmp_path_factory).run(url, site.broker_path, login("bob", site.password), command)
    assert (done.returncode, done.stdout.decode()) == (0, output.format(url=url)), done.stderr.decode()
