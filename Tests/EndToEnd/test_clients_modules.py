"""The clients as packages of their languages: what they declare, their types, and how they choose among the stored logins that a challenge
lists."""
import dataclasses
import json
import re
import shutil
import subprocess
import typing
import zipfile

import pytest

from rig.broker import ROOT
from rig.clients import CLIENTS, login, run, scripted, site  # noqa: F401
from rig.keyring import description
from rig.languages import LANGUAGES, built, shown
from rig.scripted import basic, basic_server
from rig.terminal import Terminal
from test_clients_features import PROGRAMS

import watchword  # noqa: E402
from watchword import (  # noqa: E402
    Certificate, Header, Password, Token, Trust, Watchword, _signatures, aio, messages, options)

GO_MODULE = "watchword.invalid/watchword/contrib/clients/go"
VERSION = re.search(r'current = "(.+)"', (ROOT / "Sources/WatchwordProtocol/Version.swift").read_text()).group(1)


@pytest.fixture
def proxy(tmp_path):
    """A module proxy (https://go.dev/ref/mod#goproxy-protocol) with the Go client in its current version."""
    versions = tmp_path / "proxy" / GO_MODULE / "@v"
    versions.mkdir(parents=True)
    (versions / "list").write_text(f"v{VERSION}\n")
    (versions / f"v{VERSION}.info").write_text(json.dumps({"Version": f"v{VERSION}", "Time": "2026-11-21T00:00:00Z"}))
    shutil.copy(CLIENTS / "go/go.mod", versions / f"v{VERSION}.mod")
    with zipfile.ZipFile(versions / f"v{VERSION}.zip", "w") as archive:
        for file in sorted((CLIENTS / "go").rglob("*")):
            if file.is_file():
                archive.write(file, f"{GO_MODULE}@v{VERSION}/{file.relative_to(CLIENTS / 'go')}")
    return f"file://{tmp_path}/proxy"


def test_a_go_program_of_another_module_fetches_the_client(proxy, tmp_path_factory):
    language = built("go", tmp_path_factory)
    program = language.folder / "elsewhere"
    program.mkdir()
    shutil.copy(PROGRAMS / "redirects.go", program / "main.go")
    (program / "go.mod").write_text("module example.org/program\n\ngo 1.19\n")
    # Modules in the cache are read-only otherwise, and could not be removed.
    settings = {"GOPROXY": proxy, "GONOSUMDB": GO_MODULE, "GOFLAGS": "-modcacherw"}
    language.tool("go", "get", f"{GO_MODULE}@latest", folder=program, **settings)
    language.tool("go", "build", "-o", "built", ".", folder=program, **settings)
    assert f"{GO_MODULE} v{VERSION}" in (program / "go.mod").read_text() and (program / "built").exists()


def test_the_go_modules_own_tests_pass(tmp_path_factory):
    told = built("go", tmp_path_factory).tool("go", "test", ".", "./httptransport")
    assert told.count("ok ") == 2, told


def test_the_go_client_has_every_kind_of_error():
    kinds = re.findall(r'^\tKind\w+ +Kind = "(\w+)"$', (CLIENTS / "go/kinds.go").read_text(), re.MULTILINE)
    assert kinds == [error["kind"] for error in json.loads((ROOT / "Protocol/errors.json").read_text())]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_client_sends_the_version_of_the_product(language, tmp_path, login, tmp_path_factory):
    """The scripted broker refuses `initialize`."""
    asked, error = [], {"code": 1014, "message": "refused", "data": {"kind": "denied", "retry": "never"}}

    def refuse(message):
        asked.append(message)
        return [{"id": message["id"], "error": error}]

    with scripted(tmp_path, refuse) as path:
        done = built(language, tmp_path_factory).run("http://127.0.0.1:1/", path, login("bob", "pw"))
    assert done.returncode != 0 and b"refused" in done.stderr
    assert (asked[0]["method"], asked[0]["params"]["client"]) == ("initialize", {"name": language.partition("-")[0], "version": VERSION})


WITH_HANDLERS = ["python", "asyncio", "shell", "node", "perl", "go", "rust"]


@pytest.fixture
def choose(stage, gnome, tmp_path_factory):
    """`choose(language, users, wanted)` returns the output of its program, and the login that the server received. Each user
    has a password of its own, and the server requires that of `wanted`."""
    def choose(name, users, wanted):
        language = built({"asyncio": "python"}.get(name, name), tmp_path_factory)
        command = language.program("known")
        passwords = {user: stage.secret() for user in users}
        server = stage.server(basic_server(wanted, passwords[wanted]))
        stage.allow(passwords[wanted], server)
        for user, password in passwords.items():
            gnome.put(password, **description(server, user))
        broker = stage.broker(environment=gnome.for_broker)
        done = language.run(f"{server.url} {wanted}{' async' if name == 'asyncio' else ''}", broker.socket, command=command)
        assert done.returncode == 0, done.stderr.decode()
        said = (done.stdout + done.stderr).decode()
        assert not any(password in said for password in passwords.values())
        told = dict(line.split(" ", 1) for line in said.splitlines() if line.startswith(("known ", "resolved ", "body ")))
        return told, server, basic(wanted, passwords[wanted])
    return choose


@pytest.mark.parametrize("language", WITH_HANDLERS)
def test_a_stored_login_is_chosen_and_its_outcome_reported(choose, language):
    told, server, right = choose(language, ["bob", "alice"], "alice")
    assert sorted(told["known"].split(",")) == ["alice", "bob"]
    assert told["resolved"] == "accepted alice" and "body" in told
    assert server.authorizations == [None, right]


@pytest.mark.parametrize("language", WITH_HANDLERS)
@pytest.mark.parametrize("users, wanted", [(["k", "\u212a"], "\u212a"), (["cafe\u0301", "caf\u00e9"], "caf\u00e9")], ids=["kelvin", "nfc"])
def test_names_that_look_the_same_are_different_users(choose, language, users, wanted):
    told, server, right = choose(language, users, wanted)
    assert sorted(told["known"].split(",")) == sorted(users) and told["resolved"] == f"accepted {wanted}"
    assert server.authorizations == [None, right]


# The shell's own prompt

KNOWN = [{"id": "keyring:/1", "user": "alice", "source": "keyring"}, {"id": "session:2", "user": "bob", "domain": "CORP", "source": "session"},
         {"id": "session:3", "user": "\u212a", "source": "session"}]
CHALLENGE = {"accepts": ["password"], "url": "https://h/", "knownUsers": KNOWN,
             "protectionSpace": {"protocol": "https", "host": "h", "port": 443, "realm": "Staff"}}


@pytest.mark.parametrize("typed, identifier", [
    ("alice", "keyring:/1"), ("CORP\\bob", "session:2"), ("\u212a", "session:3"), ("bob", None), ("Alice", None), ("K", None),
    (" alice", None)])
def test_the_shell_takes_the_name_of_a_saved_login(tmp_path, typed, identifier):
    (tmp_path / "challenge").write_text(json.dumps(CHALLENGE))
    terminal = Terminal(
        "/bin/bash", "-c", f". {CLIENTS}/shell/watchword.sh; watchword_answer <{tmp_path}/challenge >{tmp_path}/answer",
        environment={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LC_ALL": "C.UTF-8", "TERM": "dumb"})
    terminal.expect("Saved logins: \"alice\", \"CORP\\bob\", \"\u212a\". Type one of these names to use it.")
    terminal.answer({"User: ": typed})
    if not identifier:
        terminal.answer({"Password: ": "x"})
    assert terminal.end() == 0
    credential = json.loads((tmp_path / "answer").read_text())["credential"]
    assert credential == (
        {"type": "stored", "id": identifier} if identifier else {"type": "password", "user": typed, "password": "x"})


def test_the_shell_ends_at_an_error_without_an_id(tmp_path):
    """The broker sends an error without an id in reply to a request that it cannot parse."""
    tmp_path.chmod(0o700)
    error = {"code": -32700, "message": "Parse error", "data": {"kind": "unreadable"}}
    with scripted(tmp_path, lambda asked: [{"id": None, "error": error}]) as path:
        done = subprocess.run(
            ["/bin/bash", "-c", f". {CLIENTS}/shell/watchword.sh; watchword_fetch http://h/"], capture_output=True, timeout=30,
            env={"PATH": "/usr/bin:/bin", "WATCHWORD_SOCKET": path}, check=False)
    assert done.returncode == 1 and b"Parse error (unreadable)" in done.stderr and not done.stdout


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
    unused = {"url"}
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
    for program in (CORRECT, (CLIENTS / "python" / "typed.py").read_text()):
        assert mypy(tmp_path, program) == []


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
    script = "console.log((await import('./watchword.mjs')).version)"
    done = subprocess.run(["node", "--input-type=module", "-e", script], cwd=CLIENTS / "node", capture_output=True, text=True, check=True)
    with Watchword(path=site.broker_path) as broker:
        assert {watchword.__version__, done.stdout.strip(), broker.call("server/status")["version"]} == {VERSION}
    for folder in ("python", "node"):
        places = [path for path in (CLIENTS / folder).rglob("*") if path.is_file() and path.suffix != ".pyc" and VERSION in path.read_text()]
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
