"""curl and `watchword fetch` in the same situations: all differences are in watchword-curl(7), and all that it lists exist."""
import concurrent.futures
import dataclasses
import re
import subprocess

import pytest

from rig.broker import ROOT, Broker
from rig.curl_situations import ALL_SITUATIONS, HARMLESS
from rig.scripted import response
from rig.situations import ASPECTS, observe
from rig.terminal import Shell

PAGE = (ROOT / "contrib" / "man" / "watchword-curl.7").read_text()

# Differences in single fields of requests: they are checked for these situations, and ignored in the others.
FIELDS = {
    "user-agent": lambda name, value: name == "user-agent" and (value.startswith("curl/") or value == "watchword"),
    "expect": lambda name, value: (name, value) == ("expect", "100-continue"),
    "codings": lambda name, value: name == "accept-encoding",
    "empty-length": lambda name, value: (name, value) == ("content-length", "0"),
}
EVERYWHERE = {"user-agent"}


def section(name):
    return PAGE.split(f".SH {name}\n")[1].split(".SH ")[0].replace("\\-", "-")


def listed(text):
    """Returns the name of every entry, and whether it can be compared."""
    return {name: not mark for mark, name in re.findall(r"(\.\\\" not compared\n)?\.TP\n\.B (.+)\n", text)}


DIFFERENCES = listed(section("DIFFERENCES"))
OPTIONS = {re.search(r"--[\w.-]+", name)[0]: compared for name, compared in listed(section("DIFFERENT")).items()}
KNOWN = {**DIFFERENCES, **OPTIONS}


@dataclasses.dataclass
class Finding:
    """The differences between the two programs, for each set of fields that may differ."""
    theirs: object
    ours: object

    def differing(self, ignored):
        return set(self.theirs.without(ignored).difference(self.ours.without(ignored)))


@pytest.fixture(scope="module")
def findings(tmp_path_factory):
    broker = Broker(tmp_path_factory.mktemp("alike")).start()
    try:
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            pairs = pool.map(lambda situation: observe(situation, broker), ALL_SITUATIONS)
            return {situation.name: Finding(*pair) for situation, pair in zip(ALL_SITUATIONS, pairs)}
    finally:
        assert broker.stop() == 0


def ignored_fields(names):
    return [FIELDS[name] for name in sorted(names) if name in FIELDS]


def test_there_are_enough_situations_and_each_has_a_name():
    names = [situation.name for situation in ALL_SITUATIONS]
    assert len(names) >= 150 and len(set(names)) == len(names)


@pytest.mark.parametrize("situation", ALL_SITUATIONS, ids=lambda situation: situation.name)
def test_only_what_the_page_lists_differs(findings, situation):
    finding = findings[situation.name]
    names = set(situation.differs)
    assert names <= set(KNOWN), f"watchword-curl(7) does not list {names - set(KNOWN)}"
    may = {aspect for name in names if name not in FIELDS for aspect in situation.differs[name]}
    assert may <= set(ASPECTS)
    found = finding.differing(ignored_fields(names | EVERYWHERE))
    more = found - may
    assert not more, {aspect: (getattr(finding.theirs, aspect), getattr(finding.ours, aspect)) for aspect in more} | {"stderr": finding.ours.stderr}
    assert found == may, f"no difference in {may - found}: watchword-curl(7) or the situation is out of date"
    for name in names & set(FIELDS):
        assert "requests" in finding.differing(ignored_fields((names | EVERYWHERE) - {name})), f"no difference of {name}"


def test_every_difference_of_the_page_occurs(findings):
    seen = {name for situation in ALL_SITUATIONS for name in situation.differs}
    if any("requests" in finding.differing([]) for finding in findings.values()):
        seen |= EVERYWHERE
    assert seen == {name for name, compared in KNOWN.items() if compared}


@pytest.fixture
def shell(stage):
    return Shell(stage.broker())


def options(text):
    return re.findall(r"(?:-(.), )?--([\w.-]*\w)", text.replace("\\-", "-"))


def values():
    """Returns the options that take a value, according to curl."""
    told = subprocess.run(["curl", "--help", "all"], capture_output=True, text=True, check=True).stdout
    return {long: " <" in rest[:2] or rest.startswith(" [") for long, rest in re.findall(r"^ *(?:-., )?--([\w.-]+)(.*)", told, re.M)}


def test_every_option_of_curl_is_listed_once():
    sections = ["IDENTICAL", "DIFFERENT", "IGNORED", "REFUSED"]
    heads = [section(name) if name != "DIFFERENT" else "\n".join(listed(section(name))) for name in sections]
    # The names of entries, not those in their texts.
    lists = [line for text in heads for line in text.splitlines() if line.startswith("-")]
    found = [long for line in lists for _, long in options(line)]
    assert len(found) == len(set(found)) and set(found) == set(values()), set(values()) ^ set(found)


def listed_options(name):
    return [long for line in section(name).splitlines() if line.startswith("-") for _, long in options(line)]


def test_refused_options_send_nothing(stage, shell):
    server = stage.server(lambda request: response(200))
    takes_value = values()
    for option in listed_options("REFUSED"):
        done = shell.run("fetch", f"--{option}", *["1"] * takes_value[option], server.url)
        assert (done.returncode, done.stdout) == (2, b""), (option, done)
        assert b"is refused" in done.stderr and done.stderr.count(b"\n") == 1, (option, done.stderr)
    assert server.requests == []


def test_ignored_options_change_nothing_and_are_noted(stage, shell):
    server = stage.server(lambda request: response(200, b"the page"))
    takes_value = values()
    named = [option for option in listed_options("IGNORED") if option != "disable"]
    words = [word for option in named for word in [f"--{option}", *["1"] * takes_value[option]]]
    shell.run("fetch", server.url)
    done = shell.run("fetch", *words, server.url)
    assert (done.returncode, done.stdout) == (0, b"the page")
    for option in named:
        assert re.search(rf"^watchword: note: (-., )?--{re.escape(option)} is ignored\. ".encode(), done.stderr, re.M), option
    assert done.stderr.count(b"\n") == len(named)
    for silent in ["-s", "-sS"]:
        assert shell.run("fetch", silent, *words, server.url).stderr == b""
    assert len({(request.method, request.target, tuple(request.headers)) for request in server.requests}) == 1


@pytest.mark.parametrize("words", HARMLESS, ids=" ".join)
def test_options_of_scripts_work(stage, shell, words):
    server = stage.server(lambda request: response(200, b"the page"))
    assert shell.run("fetch", *words, server.url + "/a").stdout == b"the page"
