"""The commands of the documents, manual pages and help texts: each is run as it is written, and its output is what the document
shows."""
import json
import os
import re
import subprocess

import pytest

from rig.broker import ROOT, program
from rig.office import Office

DOCUMENTS = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "contrib/docs/*.md", "contrib/docs/programs/*.md",
             "contrib/**/README.md", "Protocol/*.md", "contrib/man/*.[1-8]"]
SHELLS = ["sh", "console", "bash", "shell"]
MARK = "@@@@ "


class Command:
    """`output` is what the document shows, or None."""

    def __init__(self, document, line, text, output=None):
        self.document, self.line, self.text, self.output = document, line, text, output

    def __repr__(self):
        return f"{self.document}:{self.line}: {self.text}"


def of_block(document, line, lines, is_shell):
    """The commands of a code block. With prompts, `$ ` or `host$ `, the lines without one are output."""
    prompt = re.compile(r"(?:[\w.-]+)?\$ ")
    has_output = any(line.startswith("$ ") for line in lines)
    found = []
    for number, text in enumerate(lines, line):
        if found and found[-1].text.endswith("\\"):
            found[-1].text = found[-1].text[:-1] + text.strip()
        elif has_output and not prompt.match(text):
            found[-1].output = (found[-1].output or "") + text + "\n"
        elif (is_shell or has_output) and not re.match(r"\s*(#|$)", text):
            found.append(Command(document, number, prompt.sub("", text, count=1)))
    for command in found:
        command.text = re.sub(r"\s+# .*$", "", command.text)
    return found


def of_markdown(document, text):
    """Block by block."""
    for block in re.finditer(r"^```(\w*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        # The clients of every language are built from their README, and run by test_clients.py.
        if document != "contrib/clients/README.md" and block[1] in ["", *SHELLS]:
            yield of_block(document, text[:block.start()].count("\n") + 2, block[2].splitlines(), block[1] in SHELLS)


def of_manual(document, text):
    """The literal blocks of the section EXAMPLES; configurations are left out."""
    start = text.find("\n.Sh EXAMPLES\n")
    for block in re.finditer(r"^\.Bd -literal.*\n((?:.*\n)*?)\.Ed$", text[start:] if start >= 0 else "", re.MULTILINE):
        lines = unescaped(block[1]).splitlines()
        if not lines[0].startswith("["):
            yield of_block(document, text[:start + block.start()].count("\n") + 2, lines, True)


def unescaped(roff):
    return re.sub(r"^\\&", "", roff, flags=re.MULTILINE).replace("\\-", "-").replace("\\e", "\\")


def of_help(command, path=()):
    """The examples of the help text of a command and its subcommands."""
    path = (*path, command["commandName"])
    for block in re.finditer(r"^Examples?:\n((?:  .*\n?)+)", command.get("discussion", ""), re.MULTILINE):
        yield of_block(f"{' '.join(path)} --help", 1, [line.strip() for line in block[1].splitlines()], True)
    for inner in command.get("subcommands", []):
        yield from of_help(inner, path)


def blocks():
    """The commands of each block, by document and line."""
    found = {}
    for path in sorted({path for pattern in DOCUMENTS for path in ROOT.glob(pattern)}):
        name = str(path.relative_to(ROOT))
        for block in (of_markdown if path.suffix == ".md" else of_manual)(name, path.read_text()):
            if block:
                found[f"{name}:{block[0].line}"] = block
    options = subprocess.run([program("watchword"), "--experimental-dump-help"], capture_output=True, check=True).stdout
    return {**found, **{block[0].document: block for block in of_help(json.loads(options)["command"])}}


BLOCKS = blocks()
TEXTS = [command.text for block in BLOCKS.values() for command in block]


def missing(options, text):
    return [option for option in options if option not in text]


# The commands that a test cannot run: for each, the reason and the check instead.

def has_option(path, *options):
    def check(_):
        command = [program(path) if path.startswith("watchword") else ROOT / path]
        done = subprocess.run([*command, "--help"], capture_output=True, text=True)
        assert done.returncode == 0 and not missing(options, done.stdout), done
    return check


def is_script(path, *options):
    """A shell script without a syntax error, in whose text the options are."""
    def check(_):
        assert os.access(ROOT / path, os.X_OK)
        subprocess.run(["bash", "-n", ROOT / path], check=True)
        assert not missing(options, (ROOT / path).read_text())
    return check


def is_unit(name):
    def check(_):
        assert "[Install]" in (ROOT / "contrib" / "systemd" / name).read_text()
    return check


def has_text(path, *texts):
    def check(_):
        assert not missing(texts, (ROOT / path).read_text()), path
    return check


def runs_demonstration(folder):
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "WATCHWORD_BIN_DIR": os.path.dirname(program("watchword"))}
    done = subprocess.run(
        ["/usr/bin/python3", ROOT / "contrib/demo.py", "--answer"], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.count("A report for staff") == 2, done
    is_script("contrib/demo", "--build --demo", "contrib/demo.py")(folder)


EXCUSED = {
    "contrib/demo": ("installs packages and builds", runs_demonstration),
    "contrib/test": ("runs this test", is_script("contrib/test")),
    "contrib/install --user": ("builds a release; test_install.py installs", has_option("contrib/install", "--user")),
    "sudo apt-get install ./watchword_*.deb":
        ("changes this system; test_package.py installs it elsewhere", has_text("Tests/EndToEnd/test_package.py", "apt-get")),
    "contrib/make-deb --source --output /tmp/watchword": ("test_package.py does", has_option("contrib/make-deb", "--source", "--output")),
    "cd /tmp/watchword && dpkg-source --extract watchword_*.dsc watchword && cd watchword":
        ("test_package.py does", has_text("Tests/EndToEnd/test_package.py", '"dpkg-source", "--extract"')),
    "dpkg-buildpackage --unsigned-source --unsigned-changes":
        ("builds a release; test_package.py does", has_text("Tests/EndToEnd/test_package.py", '"--unsigned-source", "--unsigned-changes"')),
    "contrib/make-deb --output /tmp/image": ("builds a release; test_package.py does", has_option("contrib/make-deb", "--output")),
    "podman build -t watchword-client -f contrib/container/Containerfile /tmp/image":
        ("downloads an image; test_package.py reads the file", has_text("Tests/EndToEnd/test_package.py", "Containerfile")),
    "podman run --rm --network none -v $XDG_RUNTIME_DIR/watchword/restricted.sock:/run/watchword/restricted.sock watchword-client "
    "https://intranet.example/report":
        ("needs podman; test_package.py uses bubblewrap", has_text("contrib/container/Containerfile", "/run/watchword/restricted.sock")),
    "systemctl --user daemon-reload": ("needs a user manager; test_units.py has one", has_text("Tests/EndToEnd/test_units.py", "daemon-reload")),
    "systemctl --user enable --now watchword.socket": ("needs a user manager; test_units.py has one", is_unit("watchword.socket")),
    "systemctl --user enable --now watchword-forward@build.example.service":
        ("needs a user manager; test_restricted.py has one", is_unit("watchword-forward@.service")),
    "ssh -R /run/user/1000/watchword-desk.sock:$XDG_RUNTIME_DIR/watchword/restricted.sock build.example":
        ("needs another machine; test_restricted.py has an sshd", has_text("Tests/EndToEnd/test_restricted.py", '"-R"', "restricted.sock")),
    "SSH_ASKPASS=watchword-askpass SSH_ASKPASS_REQUIRE=force ssh host":
        ("needs another machine; test_bridges.py answers ssh's questions", has_text("Tests/EndToEnd/test_bridges.py", "askpass")),
    "SUDO_ASKPASS=/usr/bin/watchword-askpass sudo -A command":
        ("becomes another user; test_bridges.py answers such questions", has_text("contrib/installer/layout.py", "watchword-askpass")),
    "systemctl --user enable --now watchword-agent.service":
        ("needs a user manager; test_agent_windows.py starts it", has_text("contrib/agent/watchword-agent.service", "[Install]")),
    "watchword-agent --list": ("needs a display; test_agent_windows.py has one", has_option("contrib/agent/watchword-agent", "--list")),
    "contrib/agent/watchword-agent --list": ("needs a display; test_agent_windows.py has one", has_option("contrib/agent/watchword-agent", "--list")),
    **{command: ("needs a server without TLS; test_front_programs.py has one", has_text("Tests/EndToEnd/rig/depots.py", checked))
       for command, checked in {
           "watchword run -- curl -O http://intranet.example/report.pdf": "curl -sS",
           "watchword run -- git clone http://git.example/project.git": "git clone",
           "watchword run -- git clone https://git.example/project": "git clone",
           "watchword run -- pip download requests": "pip download"}.items()},
    **{command: ("needs a server without TLS; test_front_run.py has one", has_text("Tests/EndToEnd/test_front_run.py", f'"{page}": '))
       for command, page in {
           "watchword run -- apt-get download hello": "apt",
           "watchword run -- apt-get -o APT::Sandbox::User=root update": "apt",
           "watchword run -- java -jar program.jar": "java",
           "watchword run -- npm install left-pad": "npm",
           "watchword run -- sh -c 'chromium --proxy-server=${http_proxy##*@}'": "browsers",
           "watchword run -- skopeo copy docker://registry.example/demo:latest dir:demo": "docker",
           "watchword run -- wget http://intranet.example/report.pdf": "wget"}.items()},
    "chromium --proxy-server=127.0.0.1:3128":
        ("needs a fixed port; test_front_programs.py has another", has_text("Tests/EndToEnd/test_front_programs.py", "--proxy-server=127.0.0.1:")),
    "watchword token https://api.example":
        ("needs a token; test_browser_logins.py has one", has_text("Tests/EndToEnd/test_browser_logins.py", '"token", "--socket"')),
    "watchword token --renew https://api.example":
        ("needs a token; test_bridges.py has one", has_text("Tests/EndToEnd/test_bridges.py", '"--renew"')),
    "contrib/install-dependencies --build --benchmarks":
        ("installs packages", is_script("contrib/install-dependencies", "--build", "--benchmarks")),
    "contrib/benchmarks/all": ("takes 15 minutes", has_option("contrib/benchmarks/all", "GROUP")),
    "contrib/benchmarks/all floor start --pairs 11": ("takes minutes", has_option("contrib/benchmarks/all", "floor", "start", "--pairs")),
    "contrib/benchmarks/all --quick": ("builds a release", has_option("contrib/benchmarks/all", "--quick")),
    "contrib/benchmarks/all --json FILE --plots contrib/docs/pictures":
        ("takes 15 minutes", has_option("contrib/benchmarks/all", "--json", "--plots")),
    "load SOCKET CONNECTIONS DEPTH N PARAMS METHOD [ANSWER [FIRST]]":
        ("is a synopsis", has_text("contrib/benchmarks/load.c", "load SOCKET CONNECTIONS DEPTH N PARAMS METHOD [ANSWER [FIRST]]")),
}

#: What may be run: the first word of a command, or the function or variable that it sets.
RUN = ["watchword", "watchwordd", "watchword-agent", "echo", "jq", "export", "git", "keyring", "pass", "tmux", "contrib/agent/watchword-agent", "GIT_ASKPASS=",
       "SSH_ASKPASS=", "SUDO_ASKPASS=",
       '"${EDITOR:-vi}"', "ask()", "hello=", "token="]

#: The files of the test behind those that documents name.
REPLACED = {
    "/run/user/1000/watchword-desk.sock": "$XDG_RUNTIME_DIR/watchword/restricted.sock; unset XDG_RUNTIME_DIR",
    "=watchword-askpass git fetch": "=watchword-askpass git -C project fetch",
    "exe:/usr/bin/mytool": "exe:$(command -v mytool)",
    "socks5h://gate.example https://intranet.example": "socks5h://127.0.0.1:{office.socks.port} https://intranet.example:{office.server.port}",
}

#: The state that a document's commands need, besides an empty session and an empty keyring.
STATES = [
    (r"session:\d", Office.session_entries), (r"/login/\d", Office.keyring_items), (r"trust:\d", Office.exceptions),
    (r"--site https://intranet.example --realm Staff", Office.login_of_the_session), (r"grants revoke", Office.grants),
    (r"exe:/usr/bin/mytool", Office.stopped_programs), (r"watchword log\b", Office.audited_fetches)]

#: Run before a command, in its shell.
BEFORE = {
    "watchword unlock --passphrase": "watchword lock --passphrase",
    "GIT_ASKPASS=watchword-askpass git fetch": "test -d project || git clone https://git.example.com/project"}

#: A word of the output of each command that ends with Ctrl-C.
ENDLESS = {
    "watchword serve https://intranet.example": "Press Ctrl-C",
    "watchword serve --restricted --method GET --path /api/ --budget 1000 --listen $XDG_RUNTIME_DIR/api.sock https://api.example":
        "Press Ctrl-C",
    "watchword serve --restricted --listen $XDG_RUNTIME_DIR/sites/ https://api.example https://files.example": "Press Ctrl-C",
    "watchword log --follow": "was refused by", "watchword agent": "Ctrl-C", "tmux new-window watchword agent --keep keyring": "Ctrl-C",
    "contrib/agent/watchword-agent": "registered with the broker", "watchword-agent --fallback terminal": "registered with the broker",
    'watchwordd --socket "$XDG_RUNTIME_DIR/trial.sock" --log-level debug': "listening"}

#: Output that no document shows, of commands that succeed without it, too.
SHOWN = {r"^(echo|jq) .*socat": '"status":200', r"jq 'select": "credentialRefused", r"^\"\$\{EDITOR": "[proxy]"}


def configuration(block):
    """The document's own, with the program of this build."""
    document = ROOT / block[0].document
    text = document.read_text() if document.exists() else ""
    found = re.findall(r"^```toml\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    found += [unescaped(toml) for toml in re.findall(r"^\.Bd -literal.*\n(\[.*?)^\.Ed$", text, re.DOTALL | re.MULTILINE)]
    if "grants revoke" in str(block):
        found.append('[sharing]\nsession = "ask"\n')
    return "".join(found).replace("/usr/bin/watchword ", os.path.realpath(program("watchword")) + " ")


def script(office, listed):
    """The commands, after each of which the first one that fails ends the shell."""
    lines = ["set -e -o pipefail"]
    for number, command in enumerate(listed):
        text = command.text
        for old, new in REPLACED.items():
            text = text.replace(old, new.format(office=office) if "{" in new else new)
        lines.append(BEFORE.get(command.text, ""))
        lines.append(f"printf '\\n{MARK}%s\\n' {number}")
        lines.append(f"trap : INT\n{text} || test $? -eq 130\ntrap - INT" if command.text in ENDLESS else text)
    return "\n".join(lines)


def comparable(text):
    """Without times, process ids, ports and Python's version."""
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+(Z|[-+]\d\d:\d\d)", "TIME", re.sub(r"\bpython3\.\d+", "python3", text))
    text = re.sub(r"\[\d+\]", "[PID]", re.sub(r"(127\.0\.0\.1):\d+", r"\1:PORT", text))
    return [line.rstrip() for line in text.strip().splitlines()]


def test_socat_waits_for_the_answer():
    """By default, it waits half a second for the answer after the end of its input."""
    waits = [re.search(r"\bsocat -t (\d+) ", text) for text in TEXTS if re.search(r"\bsocat\b", text)]
    assert waits and all(wait and int(wait[1]) >= 30 for wait in waits)


def is_known(command):
    return command.text in EXCUSED or re.match(r"\w+=|\S+", command.text)[0] in RUN


@pytest.mark.parametrize("name", BLOCKS)
def test_every_command_runs(name, stage, tmp_path):
    unknown = [command for command in BLOCKS[name] if not is_known(command)]
    assert not unknown, "decide whether a test can run this: see RUN and EXCUSED"
    listed = [command for command in BLOCKS[name] if command.text not in EXCUSED]
    if not listed:
        return
    office = Office(stage, tmp_path, configuration(BLOCKS[name]))
    for pattern, prepare in STATES:
        if any(re.search(pattern, command.text) for command in listed):
            prepare(office)
    office.sites.statuses.clear()
    interrupt = [f"{MARK}{number}\r.*{ENDLESS[command.text]}" for number, command in enumerate(listed) if command.text in ENDLESS]
    code, text = office.run(script(office, listed), interrupt)
    parts = [part.partition("\n") for part in text.split(MARK)[1:]]
    last = listed[int(parts[-1][0])]
    assert code == 0 and last is listed[-1], f"{last!r} failed with {code}:\n{text}"
    assert not re.search("is not a git command|cannot run|command not found", text), text
    for command, (_, _, output) in zip(listed, parts):
        if command.output:
            assert comparable(output) == comparable(command.output), command
        for pattern, expected in SHOWN.items():
            assert not re.search(pattern, command.text) or expected in output, (command, output)
    assert not [one for one in office.sites.statuses.items() if one[0][0] != "git.example.com" and one[1] >= 300]


@pytest.mark.parametrize("text", EXCUSED)
def test_commands_that_are_not_run_are_checked(text, tmp_path):
    assert text in TEXTS, "no document names it: remove it"
    EXCUSED[text][1](tmp_path)


def test_no_table_entry_is_unused():
    used = [*REPLACED, *BEFORE, *ENDLESS]
    assert [one for one in used if not any(one in text for text in TEXTS)] == []
    assert [pattern for pattern in [*SHOWN, *dict(STATES)] if not any(re.search(pattern, text) for text in TEXTS)] == []
    assert [word for word in RUN if not any(text.startswith(word) for text in TEXTS)] == []


# Getting started

GUIDE = ROOT / "contrib/docs/getting-started.md"


def both_sides(number):
    """The script before and after the change that the guide shows, from its block of that number."""
    lines = re.findall(r"^```diff\n(.*?)^```", GUIDE.read_text(), re.DOTALL | re.MULTILINE)[number].splitlines()
    return ["\n".join(line[1:] for line in lines if not line.startswith(other)) for other in "+-"]


@pytest.mark.parametrize("number, run, shown", [(0, "bash {file} && cat report.txt", "curl"), (1, "/usr/bin/python3 {file}", "requests")])
def test_a_script_works_before_and_after_its_change(number, run, shown, stage, tmp_path):
    office = Office(stage, tmp_path)
    office.environment |= {name: f"{tmp_path}/certificates/ca.pem" for name in ["CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"]}
    office.login_of_the_session()
    before, after = both_sides(number)
    assert "secret" in before and "secret" not in after and shown in before
    for name, text in [("before", before.replace("secret", office.password)), ("after", after)]:
        file = office.work / name
        file.write_text(text)
        code, output = office.run(run.format(file=name))
        file.unlink()
        assert (code, output.strip().splitlines()[-1]) == (0, "A report for the staff."), output


@pytest.mark.parametrize("title", ["From the package to the first page", "Your first script"])
def test_each_part_is_read_in_two_minutes(title):
    """At 200 words a minute, including the commands."""
    text = GUIDE.read_text().split(f"## {title}\n")[1].split("\n## ")[0]
    assert len(text.split()) <= 400


def of_sentences():
    """Commands in sentences and tables, which name programs, subcommands and options."""
    for path in sorted({path for pattern in DOCUMENTS for path in ROOT.glob(pattern) if path.suffix == ".md"}):
        prose = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
        for text in re.findall(r"`((?:watchword [a-z]|contrib/[a-z]|systemctl )[^`\n]*)`", prose):
            yield str(path.relative_to(ROOT)), text.replace("LANGUAGE", "python")


@pytest.mark.parametrize("text", sorted({text for _, text in of_sentences()}))
def test_commands_named_in_sentences_exist(text):
    words = text.split()
    options = [word for word in words if re.match(r"-+[A-Za-z]", word) and word != "--user"]
    if words[0] == "watchword":
        subcommands = re.match(r"watchword(?: [a-z][a-z-]*\b(?!:))*", text)[0].split()
        shown = subprocess.run([program("watchword"), *subcommands[1:], "--help"], capture_output=True, text=True).stdout
        assert f"USAGE: {' '.join(subcommands)}" in shown and not missing(options, shown), shown
    elif words[0] == "systemctl":
        units = {path.name for folder in ["systemd", "agent"] for path in (ROOT / "contrib" / folder).iterdir()}
        named = re.findall(r"(?:restart|reload|start|status) (\S+)", text)
        named = [re.sub(r"@.*", "@", unit) + ".service" * (not unit.endswith((".socket", ".service"))) for unit in named]
        assert set(named) <= units, named
    else:
        path = ROOT / words[0]
        assert path.exists() and not missing(options, path.read_text() if options else "")
