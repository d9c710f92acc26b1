"""The repository: its rules, guards, documents, completions, manual pages, test runner, and Swift package; and mixed load."""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import pytest

from rig.broker import ROOT, program
from rig.servers import executable, private
from rig.terminal import Terminal
from rig.waiting import output

sys.path.insert(0, str(ROOT / "contrib"))

from installer import layout  # noqa: E402


@pytest.mark.parametrize("name", ["rules", "mutate"])
def test_every_rule_has_tests_and_every_guard_its_marker(name):
    result = subprocess.run([sys.executable, ROOT / "contrib" / name, "--check"], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


LISTED = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True).stdout.split()
# A source archive has no repository.
DOCUMENTS = [ROOT / name for name in LISTED] or [path for path in ROOT.rglob("*.md") if ".build" not in str(path)]


def anchors(text):
    """Returns the anchors that GitHub derives from the headings."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(document):
    text = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?:|mailto:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (document.parent / name).resolve() if name else document
        assert path.exists(), f"{document.relative_to(ROOT)} links {target}, which does not exist"
        if anchor and path.suffix == ".md":
            assert anchor in anchors(path.read_text()), f"{document.relative_to(ROOT)} links {target}, but there is no such heading"


EXAMPLES = [(document, block) for document in DOCUMENTS for block in re.findall(r"```toml\n(.*?)```", document.read_text(), re.DOTALL)]


@pytest.mark.parametrize("document, block", EXAMPLES, ids=[f"{path.name}-{index}" for index, (path, _) in enumerate(EXAMPLES)])
def test_every_configuration_is_valid(document, block, tmp_path):
    file = private(tmp_path / "config.toml", block)
    for name in re.findall(r'^client-secret-file = "~/(.*)"$', block, re.MULTILINE):
        secret = tmp_path / name
        secret.parent.mkdir(parents=True, exist_ok=True)
        private(secret, "secret\n")
    done = subprocess.run([program("watchwordd"), "--check-config", f"--config={file}"], env={**os.environ, "HOME": str(tmp_path)},
                          capture_output=True, text=True)
    assert done.returncode == 0, f"{document.relative_to(ROOT)}:\n{block}\n{done.stdout}{done.stderr}"


def test_there_are_examples():
    assert len(DOCUMENTS) > 10 and len(EXAMPLES) > 1


@pytest.fixture
def run(tmp_path):
    """Returns a function that runs `contrib/test` in another folder; `swift test` executes this shell text."""
    (tmp_path / "contrib").mkdir()
    (tmp_path / "Tests" / "EndToEnd").mkdir(parents=True)
    shutil.copy(ROOT / "contrib/test", tmp_path / "contrib/test")
    for name in ["contrib/install-dependencies", "contrib/words", "swift"]:
        (tmp_path / name).touch(mode=0o755)
    (tmp_path / "Tests" / "RealTests.swift").write_text("@Suite(.realServers) struct RealTests {")
    shutil.copy(ROOT / "Tests/EndToEnd/conftest.py", tmp_path / "Tests/EndToEnd/conftest.py")
    (tmp_path / "Tests/EndToEnd/rig").symlink_to(ROOT / "Tests/EndToEnd/rig")
    # The scripts are run by the shell, because they have no interpreter line.
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": os.environ["HOME"], "PYTHONPATH": ":".join(sys.path)}

    def run(swift_test, end_to_end):
        (tmp_path / "swift").write_text(f'#!/bin/sh\n[ "$1" != test ] || {{ {swift_test}; }}\n')
        (tmp_path / "Tests/EndToEnd/test_one.py").write_text(f"def test_one(): assert {end_to_end}\n")
        done = subprocess.run([tmp_path / "contrib/test"], env=environment, capture_output=True, text=True, timeout=120)
        return done.returncode, [re.sub(r"\d+ s of", "N s of", line) for line in done.stdout.splitlines()]

    return run


TIMES = ["tier 1: N s of 60 s", "tier 2, unit tests with servers: N s of 60 s"]
NOT_RUN = "; the next tiers were not run"


def test_the_summary_lists_all_tiers(run):
    code, lines = run("true", end_to_end=True)
    assert code == 0 and lines[-4:-1] == [*TIMES, "tier 2, end-to-end tests: N s of 600 s"], lines
    assert lines[-1].startswith("1 passed"), lines
    code, lines = run("true", end_to_end=False)
    assert code == 1 and [*TIMES, "tier 2, end-to-end tests: N s of 600 s, failed"] == [line for line in lines if " s of " in line and "took" not in line]


@pytest.mark.parametrize("swift_test, end", [
    ("exit 3", ["tier 1: failed after N s of 60 s" + NOT_RUN]),
    ('[ -z "$WATCHWORD_TEST_SERVERS" ] || exit 3', [TIMES[0], "tier 2, unit tests with servers: failed after N s of 60 s" + NOT_RUN]),
])
def test_the_summary_names_the_tier_that_failed(run, swift_test, end):
    code, lines = run(swift_test, end_to_end=True)
    assert code == 3 and lines[-len(end):] == end and not any("took" in line for line in lines[-len(end):]), lines


MANIFEST = """// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "program",
    dependencies: [.package(url: "file://{url}", from: "1.0.0")],
    targets: [.executableTarget(name: "program", dependencies: [.product(name: "WatchwordClient", package: "watchword")])])
"""
PROGRAM = """import WatchwordClient

do { _ = try Watchword(socket: "/nonexistent/broker.sock") } catch { print(error) }
"""


@pytest.mark.tier3("builds the client library")
def test_another_package_depends_on_the_client_by_its_version(tmp_path):
    """SwiftPM refuses such a dependency if the library or a target below it has unsafe flags."""
    source, program = tmp_path / "watchword", tmp_path / "program"
    for name in output("git", "ls-files", "-z", cwd=ROOT).split("\0")[:-1]:
        if os.path.lexists(ROOT / name):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, source / name, follow_symlinks=False)
    output("git", "init", "--quiet", cwd=source)
    output("git", "add", "--all", cwd=source)
    output("git", "-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "--quiet", "-m", "Release", cwd=source)
    output("git", "tag", "1.0.0", cwd=source)
    (program / "Sources/program").mkdir(parents=True)
    (program / "Package.swift").write_text(MANIFEST.replace("{url}", str(source)))
    (program / "Sources/program/main.swift").write_text(PROGRAM)
    assert "no broker listens at /nonexistent/broker.sock" in output("swift", "run", "--quiet", cwd=program, timeout=1800)


BASH = r"""
source "$1"
line=$2
words=($line)
[[ $line == *" " ]] && words+=("")
COMP_WORDS=("${words[@]}") COMP_CWORD=$((${#words[@]} - 1)) COMP_LINE=$line COMP_POINT=${#line} COMPREPLY=()
# The function that Tab calls.
name=$(complete -p watchword | sed 's/.*-F //; s/ .*//')
"$name" watchword "${words[-1]}" "${words[-2]}"
printf '%s\n' "${COMPREPLY[@]}"
"""
ZSH = pathlib.Path(__file__).parent / "rig" / "completions.zsh"
NAMES = {"bash": "watchword.bash", "zsh": "_watchword", "fish": "watchword.fish"}


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("completions")
    for shell, name in NAMES.items():
        made = subprocess.run([program("watchword"), "--generate-completion-script", shell], capture_output=True, check=True)
        # The path of an installation.
        (folder / name).write_bytes(layout._terminating(made.stdout) if shell == "fish" else made.stdout)
    return folder


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "report.csv").touch()
    (tmp_path / "reports").mkdir()
    return tmp_path


def environment_of(folder, **more):
    path = f"{os.path.dirname(program('watchword'))}:{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(folder), "TERM": "dumb", "LC_ALL": "C.UTF-8", **more}


def completed(shell, scripts, line, folder, **more):
    """Returns what the shell would insert, without descriptions that it only displays."""
    script = str(scripts / NAMES[shell])
    command = {
        "bash": ["bash", "--norc", "--noprofile", "-c", BASH, "bash", script, line],
        "zsh": ["zsh", "-f", str(ZSH), str(scripts), line],
        "fish": ["fish", "--no-config", "-c", f"source {shlex.quote(script)}; complete -C {shlex.quote(line)}"],
    }[shell]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, cwd=folder, env=environment_of(folder, **more))
    assert done.returncode == 0 and done.stderr == "", done
    return [text.split("\t")[0].rstrip("/") for text in done.stdout.splitlines() if text.strip()]


SHELLS = pytest.mark.parametrize("shell", NAMES)


@SHELLS
@pytest.mark.parametrize("line, wanted", [
    ("watchword cred", {"credentials"}), ("watchword fetch --ou", {"--output", "--output-dir"}),
    ("watchword fetch --post", {"--post301", "--post302", "--post303"}),
    ("watchword fetch -s --url-q", {"--url-query"}), ("watchword fetch http://h.example/ --fail-e", {"--fail-early"}),
    ("watchword fetch -L -o out --disallow", {"--disallow-username-in-url"}),
    ("watchword fetch --keep ", {"none", "session", "keyring"}), ("watchword fetch --proto-default ", {"http", "https"}),
    ("watchword fetch -o rep", {"report.csv", "reports"}), ("watchword fetch --stderr rep", {"report.csv", "reports"}),
    ("watchword fetch -T rep", {"report.csv", "reports"}), ("watchword fetch --output-dir rep", {"reports"}),
    ("watchword credentials st", {"store"}), ("watchword fetch --nosuch", set()),
])
def test_completions(shell, scripts, folder, line, wanted):
    assert set(completed(shell, scripts, line, folder)) == wanted


@pytest.mark.parametrize("line, wanted", [
    ("watchword fetch --prog", {"--progress-bar"}), ("watchword fetch -# --inc", {"--include"}), ("watchword fetch -Q --inc", {"--include"}),
    ("watchword fetch --unknown=3 --inc", {"--include"}), ("watchword fetch -H a:b https://h/ --inc", {"--include"}),
    ("watchword credentials --unknown st", set()), ("watchword --unknown ", set())])
def test_fish_completes_after_any_option(scripts, folder, line, wanted):
    assert wanted <= set(completed("fish", scripts, line, folder))


@SHELLS
def test_every_option_of_fetch_is_completed(shell, scripts, folder):
    told = subprocess.run([program("watchword"), "--experimental-dump-help"], capture_output=True, check=True).stdout
    fetch = next(command for command in json.loads(told)["command"]["subcommands"] if command["commandName"] == "fetch")
    options = {f"--{name['name']}" for argument in fetch["arguments"] for name in argument.get("names", []) if name["kind"] == "long"}
    assert len(options) > 70
    assert options <= set(completed(shell, scripts, "watchword fetch --", folder))


# For fish, whose `commandline` works only in a terminal, see the next test.
@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_ids_come_from_the_running_broker(shell, scripts, folder, stage):
    broker, client, server = stage.broker(), stage.client(), stage.server(lambda request: None)
    ids = {client.store(server, user, stage.secret()) for user in ["alice", "bob"]}
    assert len(ids) == 2
    for command in ["forget", "default"]:
        for typed in ["", "ses", r"session\:"]:
            assert set(completed(shell, scripts, f"watchword credentials {command} {typed}", folder, WATCHWORD_SOCKET=broker.socket)) == ids
    assert completed(shell, scripts, "watchword credentials forget ", folder, WATCHWORD_SOCKET=str(folder / "none")) == []


def test_the_id_of_the_running_broker_in_fish(scripts, folder, stage):
    broker, client = stage.broker(), stage.client()
    number = client.store(stage.server(lambda request: None), "bob", stage.secret())
    prompt = "function fish_prompt; echo \"ready> \"; end"
    fish = Terminal(
        shutil.which("fish"), "--no-config", "--interactive", "--init-command", f"{prompt}; source {scripts / NAMES['fish']}",
        environment=environment_of(folder, WATCHWORD_SOCKET=broker.socket))
    fish.expect("ready> ")
    # Tab completes the only id, and the command is run with it.
    fish.type("watchword credentials forget \t")
    fish.expect(number)
    fish.type("\r")
    fish.expect("1 credential forgotten")
    assert client.call("credential/list")["result"]["credentials"] == []
    fish.type("exit\r")
    assert fish.end() == 0


FOLDER = ROOT / "contrib" / "man"
PAGES = sorted(FOLDER.glob("*.[1-8]"))
GENERATED = [page for page in PAGES if page.suffix == ".1"]
PROGRAMS = ["git-credential-watchword", "watchword", "watchword-agent", "watchword-askpass", "watchwordd"]
SECTIONS = ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "ENVIRONMENT", "FILES", "EXIT STATUS", "EXAMPLES", "SEE ALSO"]
UTF8 = {**os.environ, "LC_ALL": "C.UTF-8"}


def generate(folder, binaries=None):
    binaries = binaries or os.path.dirname(program("watchword"))
    return subprocess.run([FOLDER / "generate", "--binaries", binaries, "--output", folder], capture_output=True, text=True)


def test_the_committed_pages_are_the_generated_ones(tmp_path):
    done = generate(tmp_path)
    assert done.returncode == 0, done.stderr
    made = {page.name: page.read_text() for page in tmp_path.iterdir()}
    assert made == {page.name: page.read_text() for page in GENERATED}, "run contrib/man/generate"


def changed_programs(folder, change):
    """Programs that print the options of the real ones; `change` is applied to the options of `watchword status`."""
    for name in ["watchword", "watchwordd"]:
        options = json.loads(subprocess.run([program(name), "--experimental-dump-help"], capture_output=True, check=True).stdout)
        for command in options["command"].get("subcommands", []):
            if command["commandName"] == "status":
                change(command["arguments"])
        (folder / f"{name}.json").write_text(json.dumps(options))
        executable((folder / name), f"#!/bin/sh\ncat '{folder}/{name}.json'\n")
    return folder


@pytest.mark.parametrize("change, named", [
    (lambda options: options.append({**options[0], "names": [{"kind": "long", "name": "novel"}], "abstract": "Show novel items."}), "novel"),
    (lambda options: options[0].update(abstract="Another meaning."), "json")])
def test_a_new_option_or_meaning_must_be_in_a_page(tmp_path, change, named):
    done = generate(tmp_path, changed_programs(tmp_path, change))
    assert done.returncode == 1 and f"no page lists --{named} of 'status'" in done.stderr, done


def test_every_program_has_a_page_under_its_own_name():
    names = {page.name for page in PAGES}
    assert {f"{name}.1" for name in PROGRAMS} <= names and "watchword-config.5" in names


@pytest.mark.parametrize("page", GENERATED, ids=lambda page: page.name)
def test_a_page_has_all_sections_in_the_usual_order(page):
    headings = [heading.strip('"') for heading in re.findall(r"^\.Sh (.*)$", page.read_text(), re.MULTILINE)]
    assert [heading for heading in headings if heading in SECTIONS] == SECTIONS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_has_no_warnings(page):
    # References are checked below, because the pages need not be installed.
    done = subprocess.run(["mandoc", "-T", "lint", page], capture_output=True, text=True)
    found = [line for line in (done.stdout + done.stderr).splitlines() if "referenced manual not found" not in line and "mandoc.db" not in line]
    assert found == []
    done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", page], capture_output=True, text=True, env=UTF8)
    assert done.returncode == 0 and done.stderr == "", done.stderr


def test_every_page_is_found_by_name(tmp_path):
    for page in PAGES:
        folder = tmp_path / f"man{page.suffix[1:]}"
        folder.mkdir(exist_ok=True)
        (folder / page.name).symlink_to(page)
        assert subprocess.run(["lexgrog", page], stdout=subprocess.DEVNULL).returncode == 0, page
    subprocess.run(["mandb", "-q", "-c", tmp_path], check=True)
    for page in PAGES:
        shown = subprocess.run(["whatis", "-M", tmp_path, "-s", page.suffix[1:], page.stem], capture_output=True, text=True, env=UTF8)
        assert shown.stdout.startswith(f"{page.stem} ({page.suffix[1:]})"), (page, shown)
    shown = subprocess.run(["man", "-M", tmp_path, "-k", "watchword"], capture_output=True, text=True, env=UTF8).stdout
    assert len(shown.splitlines()) == len(PAGES), shown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_pages_that_a_page_refers_to_exist(page):
    found = re.findall(r"^\.(?:Xr|Pq Xr) (\S+) (\d)|^\.BR (\S+) \((\d)\)", page.read_text(), re.MULTILINE)
    for name, number in {((one or other).replace("\\", ""), number or last) for one, number, other, last in found}:
        if (FOLDER / f"{name}.{number}").exists():
            continue
        assert not name.startswith("watchword"), f"{name}({number})"
        owner = subprocess.run(["dpkg", "-S", f"*/man{number}/{name}.{number}.gz"], capture_output=True, text=True)
        assert owner.returncode == 0, f"{name}({number}): no installed package has it"
    assert found


def codes(name):
    section = (FOLDER / name).read_text().partition("\n.Sh EXIT STATUS\n")[2].partition("\n.Sh ")[0]
    return {int(code) for code in re.findall(r"^\.It (\d+)$", section, re.MULTILINE)}


def constants(path, pattern):
    return {int(number) for found in re.findall(pattern, (ROOT / path).read_text(), re.MULTILINE) for number in found.split(",") if number}


def test_the_exit_codes_are_those_of_the_source():
    fetch = constants("Sources/watchword/Commands/ExitStatus.swift", r"(?:Int32 = |^ +case .*: )(\d+)(?: +//.*)?$")
    assert codes("watchword-fetch.1") == fetch | {0}
    daemon = constants("Sources/watchwordd/Daemon.swift", r"ExitCode\((\d+)\)")
    assert codes("watchwordd.1") == daemon | {0, 1, 64}
    assert codes("watchword-agent.1") == constants("contrib/agent/watchword_agent/main.py", r"^ENDED, FAILED, ANOTHER_RUNS, USAGE = (.*)$")
    assert codes("watchword.1") == {0, 1, 2, 3, 64}
    assert codes("watchword-askpass.1") == codes("git-credential-watchword.1") == {0, 1, 64}
