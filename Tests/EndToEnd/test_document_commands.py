"""The commands of the documents, manual pages and help texts: each is run as it is written, and its output is what the document
shows."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import time

import pytest

from rig import audit
from rig.authority import Authority
from rig.broker import ROOT, Broker, part, program
from rig.client import password_answer, trust_answer
from rig.forwarding import ForwardProxy, Socks5Server
from rig.scripted import DigestCheck, basic, basic_server, response
from rig.servers import written
from rig.subjects import sandboxed
from rig.terminal import Terminal
from rig.tls import TlsServer
from rig.waiting import output


HOSTS = ["intranet.example", "backup.example", "git.example.com", "example.org", "gate.example"]
PROMPT = re.compile(rb"(User|Password|[Pp]assphrase|Repeat it)[^\n]*: ?$")
# A program with a name and a wrong login of its own.
REPORT = """
import sys
from watchword import Watchword
Watchword(name="report").fetch(sys.argv[1], credential={"type": "password", "user": "alice", "password": "wrong"})
"""


class Sites:
    """The answers of every host. `statuses` are the last status of each (host, path)."""

    def __init__(self, repository, password):
        self.repository, self.statuses = repository, {}
        self.basic = basic("bob", password)
        self.digest = DigestCheck("bob", password, body=b"A report for the staff.\n")

    def __call__(self, request):
        host, path = request.header("Host").partition(":")[0], request.target
        answer = self.answer(host, path, request)
        self.statuses[host, path] = int(answer.split(b" ", 2)[1])
        return answer

    def answer(self, host, path, request):
        if host == "intranet.example":
            return self.digest(request)
        if host not in ["backup.example", "git.example.com"]:
            return response(200, b"An example.\n" if host == "example.org" else b"")
        if request.authorization != self.basic:
            return response(401, b"please log in", 'WWW-Authenticate: Basic realm="Staff"')
        if host == "backup.example":
            return response(201 if request.method == "PUT" else 200)
        file = self.repository / path.partition("?")[0].removeprefix("/project/").lstrip("/")
        return response(200, file.read_bytes()) if file.is_file() else response(404)


def make_repository(folder):
    """A repository for git's oldest way to fetch, which needs only a server of files."""
    author = {f"GIT_{who}_{what}": "x@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    output("bash", "-ec", "git init -q --bare -b main . && git update-ref refs/heads/main $(git commit-tree -m first $(git mktree </dev/null))"
           " && git update-server-info", cwd=folder, env={**os.environ, **author})


class Office:
    """Runs shell commands in the folder `work`, at a terminal where bob answers each prompt with his name or his password."""

    def __init__(self, stage, folder, configuration=""):
        self.stage, self.folder, self.work, self.password = stage, folder, self._made(folder / "work"), stage.secret()
        certificates, repository = self._made(folder / "certificates"), self._made(folder / "repository")
        authority = Authority()
        authority.write(certificates, "ca")
        authority.issue(names=HOSTS).write(certificates, "good")
        authority.issue("bob", client=True).write(certificates, "me")
        make_repository(repository)
        self.sites = Sites(repository, self.password)
        self.server = stage.server(TlsServer(certificates, handler=self.sites))
        self.socks = stage.server(Socks5Server())
        stage.allow(self.password, self.server)
        self.proxy = stage.server(ForwardProxy(self._redirect))
        self.keyring = stage.keyring().start_gnome()
        broker = Broker(self._made(folder / "d"), "--ca-file", str(certificates / "ca.pem"), environment=self.keyring.for_broker)
        broker.socket = str(self._made(pathlib.Path(broker.socket).parent / "watchword") / "broker.sock")
        settings = self._made(broker.home / ".config") / "watchword"
        proxy = f'[proxy]\nurl = "{self.proxy.url}"\nexcept = ["127.0.0.1"]\n'
        self._write(self._made(settings) / "config.toml", f"{configuration}\n{proxy}")
        self.broker = broker.start()
        stage.brokers.append(broker)
        self._supply(certificates)
        self.environment = {
            **broker.environment, "PATH": f"{folder}/bin:{os.environ['PATH']}", "TERM": "dumb", "LC_ALL": "C.UTF-8",
            "https_proxy": self.proxy.url, "GIT_SSL_CAINFO": f"{certificates}/ca.pem",
            "PYTHONPATH": str(part("share/watchword/clients", "clients") / "python"),
            "PYTHONDONTWRITEBYTECODE": "1", "EDITOR": "cat"}
        # Only the broker has a keyring: a command that bypasses the broker finds none.
        del self.environment["DBUS_SESSION_BUS_ADDRESS"]

    @staticmethod
    def _made(folder):
        folder.mkdir(mode=0o700)
        return folder

    @staticmethod
    def _write(file, text, mode=0o600):
        written(file.parent, {file.name: text})
        file.chmod(mode)

    def _redirect(self, request):
        """Every tunnel of the proxy leads to the server here, which has a certificate for every host."""
        request.target = f"127.0.0.1:{self.server.port}"

    def _supply(self, certificates):
        """The programs and files that commands name. `pass` and `tmux` implement only what the commands use."""
        bin = self._made(self.folder / "bin")
        for name in ["watchword", "git-credential-watchword", "watchword-askpass"]:
            (bin / name).symlink_to(os.path.realpath(program("watchword")))
        (bin / "watchwordd").symlink_to(os.path.realpath(program("watchwordd")))
        (bin / "watchword-agent").symlink_to(part("lib/watchword/agent", "agent") / "watchword-agent")
        self._write(bin / "pass", "#!/bin/sh\necho from-pass\n", 0o755)
        self._write(bin / "tmux", '#!/bin/sh\nshift; exec "$@"\n', 0o755)
        (self.work / "contrib").symlink_to(ROOT / "contrib")
        files = {"backup.tar": "content\n", "report.pdf": "content\n", "config.toml.new": "[fetch]\ndeny = []\n",
                 "credential.json": json.dumps(password_answer("bob", self.password)["credential"]),
                 **{name: (certificates / name).read_text() for name in ["me.pem", "me.key"]}}
        for name, text in files.items():
            self._write(self.work / name, text)
        self._write(self.broker.home / ".netrc", "machine netrc.example login amy password of-netrc\n")
        self._write(self.broker.home / ".git-credentials", "https://amy:of-git@git-credentials.example\n")

    def run(self, script, interrupt=(), seconds=60):
        """The exit code, and the terminal's text. Ctrl-C is typed once for each pattern of `interrupt` that it matches."""
        terminal = Terminal("/bin/bash", "-c", f"cd {self.work}\n{script}", environment=self.environment)
        end, seen, waiting = time.monotonic() + seconds, 0, list(interrupt)
        while terminal._read(0.2) and time.monotonic() < end:
            if prompt := PROMPT.search(terminal.shown, seen):
                terminal.type("bob\n" if prompt[1] == b"User" else f"{self.password}\n")
                seen = len(terminal.shown)
            elif waiting and re.search(waiting[0].encode(), terminal.shown, re.DOTALL):
                terminal.type("\x03")
                waiting.pop(0)
        return terminal.end(), terminal.shown.decode().replace("\r\n", "\n").replace("^C", "")

    def must(self, script):
        code, text = self.run(f"set -e\n{script}")
        assert code == 0, f"{script}\n{text}"

    # States that commands need

    def session_entries(self, count=7):
        """session:1 and so on; several users of a site."""
        lines = "".join(f"machine session.example login user{number} password of-session\n" for number in range(1, count + 1))
        self._write(self.work / "session", lines)
        self.must("watchword credentials import --format netrc session")

    def keyring_items(self, count=7):
        for number in range(1, count + 1):
            self.keyring.put("of-keyring", server="keyring.example", protocol="https", user=f"user{number}")

    def login_of_the_session(self):
        self.must("watchword fetch https://intranet.example/report")

    def login_of_the_keyring(self):
        self.keyring.put(self.password, server="intranet.example", protocol="https", user="bob")

    def exceptions(self, hosts=("untrusted.example", "expired.example")):
        """trust:1 and trust:2, for hosts that are not in the certificate."""
        client = self.stage.client(broker=self.broker, answer=lambda challenge: trust_answer(challenge, "forSession"))
        assert "result" in client.call("auth/subscribe", {"mode": "everything"})
        for host in hosts:
            assert "result" in client.fetch(f"https://{host}/")

    def grants(self):
        """g1 and g2 of the sandbox, g3 and g4 of another program."""
        agent = self.stage.consenter(self.broker, allow="always")
        self.login_of_the_keyring()
        self.keyring.put(self.password, server="backup.example", protocol="https", user="bob")
        relay = sandboxed(self.broker, "org.gnome.Maps")
        for url in ["https://intranet.example/", "https://backup.example/"]:
            assert relay.fetch(url)["result"]["status"] == 200
        relay.close()
        self.must("watchword fetch https://intranet.example/ https://backup.example/")

    def stopped_programs(self):
        """bin/mytool and another, whose prompts were stopped; both are socat by another name."""
        self.stage.agent({"action": "cancel", "stopAsking": True}, self.broker, delivery=None)
        for name, host in {"mytool": "intranet.example", "another": "backup.example"}.items():
            shutil.copy("/usr/bin/socat", self.folder / "bin" / name)
            request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "fetch/run", "params": {"url": f"https://{host}/"}})
            self.must(f"echo '{request}' | {name} -t 20 - UNIX:{self.broker.socket}")

    def audited_fetches(self):
        """A login from the keyring, and one that a server refuses."""
        self.login_of_the_keyring()
        self.must("watchword fetch https://intranet.example/report")
        staff = self.stage.server(basic_server("alice", "right", "Staff"))
        self._write(self.work / "report.py", REPORT)
        self.must(f"/usr/bin/python3 report.py {staff.url}")
        audit.wait_for(lambda: "credentialRefused" in audit.kinds(self.broker))


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


def has_text(path, *texts):
    def check(_):
        assert not missing(texts, (ROOT / path).read_text()), path
    return check


def is_unit(path):
    return has_text(f"contrib/{path}", "[Install]")


def runs_demonstration(folder):
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "WATCHWORD_BIN_DIR": os.path.dirname(program("watchword"))}
    done = subprocess.run(
        ["/usr/bin/python3", ROOT / "contrib/demo.py", "--answer"], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.count("A report for staff") == 2, done
    is_script("contrib/demo", "--build --demo", "contrib/demo.py")(folder)


def in_test(name, *texts):
    return has_text(f"Tests/EndToEnd/{name}.py", *texts)


#: For the beginnings of commands that cannot be run: the reason, and the check instead.
EXCUSED = {
    "contrib/demo": ("installs packages and builds", runs_demonstration),
    "contrib/test": ("runs this test", is_script("contrib/test")),
    "contrib/install-dependencies": ("installs packages", is_script("contrib/install-dependencies", "--build", "--benchmarks")),
    "contrib/install --user": ("builds a release; test_install.py installs", has_option("contrib/install", "--user")),
    "sudo apt-get install": ("changes this system; test_package.py installs it elsewhere", in_test("test_package", "apt-get")),
    "contrib/make-deb": ("builds a release; test_package.py does", has_option("contrib/make-deb", "--source", "--output")),
    "cd /tmp/watchword && dpkg-source --extract": ("test_package.py does", in_test("test_package", '"dpkg-source", "--extract"')),
    "dpkg-buildpackage": ("test_package.py does", in_test("test_package", '"--unsigned-source", "--unsigned-changes"')),
    "podman build": ("downloads an image; test_package.py reads the file", in_test("test_package", "Containerfile")),
    "podman run": ("test_package.py uses bubblewrap", has_text("contrib/container/Containerfile", "/run/watchword/restricted.sock")),
    "systemctl --user daemon-reload": ("needs a user manager; test_units.py has one", in_test("test_units", "daemon-reload")),
    "systemctl --user enable --now watchword.socket": ("needs a user manager; test_units.py has one", is_unit("systemd/watchword.socket")),
    "systemctl --user enable --now watchword-forward@": ("test_restricted.py has a manager", is_unit("systemd/watchword-forward@.service")),
    "systemctl --user enable --now watchword-agent": ("test_agent_windows.py starts it", is_unit("agent/watchword-agent.service")),
    "ssh -R ": ("needs another machine; test_restricted.py has an sshd", in_test("test_restricted", '"-R"', "restricted.sock")),
    "SSH_ASKPASS=watchword-askpass ": ("needs another machine; test_bridges.py answers ssh's questions", in_test("test_bridges", "askpass")),
    "SUDO_ASKPASS=/usr/bin/watchword-askpass sudo": ("becomes another user; test_bridges.py answers it", has_text("contrib/installer/layout.py", "watchword-askpass")),
    "watchword-agent --list": ("needs a display; test_agent_windows.py has one", has_option("contrib/agent/watchword-agent", "--list")),
    "contrib/agent/watchword-agent --list": ("needs a display", has_option("contrib/agent/watchword-agent", "--list")),
    **{f"watchword run -- {command}": ("needs a server without TLS; test_front_programs.py has one", has_text("Tests/EndToEnd/rig/depots.py", text))
       for command, text in {"curl": "curl -sS", "git clone http:": "git clone", "git clone https:": "git clone", "pip": "pip download"}.items()},
    **{f"watchword run -- {command}": ("test_front_run.py has a server without TLS", in_test("test_front_run", f'"{page}": '))
       for command, page in {"apt-get download": "apt", "apt-get -o": "apt", "java": "java", "npm": "npm", "sh -c 'chromium": "browsers",
                             "skopeo": "docker", "wget": "wget"}.items()},
    "chromium --proxy-server=127.0.0.1:": ("test_front_programs.py has another port", in_test("test_front_programs", "--proxy-server=127.0.0.1:")),
    "watchword token https:": ("needs a token; test_browser_logins.py has one", in_test("test_browser_logins", '"token", "--socket"')),
    "watchword token --renew": ("needs a token; test_bridges.py has one", in_test("test_bridges", '"--renew"')),
    "contrib/benchmarks/all": ("takes 15 minutes", has_option("contrib/benchmarks/all", "GROUP", "floor", "start", "--pairs", "--quick", "--json", "--plots")),
    "load SOCKET": ("is a synopsis", has_text("contrib/benchmarks/load.c", "load SOCKET CONNECTIONS DEPTH N PARAMS METHOD [ANSWER [FIRST]]")),
}

#: What may be run: the first word of a command, or the function or variable that it sets.
RUN = ["watchword", "watchwordd", "watchword-agent", "echo", "jq", "export", "git", "keyring", "pass", "tmux",
       "contrib/agent/watchword-agent", "GIT_ASKPASS=", "SSH_ASKPASS=", "SUDO_ASKPASS=", '"${EDITOR:-vi}"', "ask()", "url="]

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


def is_excused(command):
    return command.text.startswith(tuple(EXCUSED))


@pytest.mark.parametrize("name", BLOCKS)
def test_every_command_runs(name, stage, tmp_path):
    listed = [command for command in BLOCKS[name] if not is_excused(command)]
    unknown = [command for command in listed if re.match(r"\w+=|\S+", command.text)[0] not in RUN]
    assert not unknown, "decide whether a test can run this: see RUN and EXCUSED"
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
    assert any(one.startswith(text) for one in TEXTS), "no document names it: remove it"
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
    assert len(GUIDE.read_text().split(f"## {title}\n")[1].split("\n## ")[0].split()) <= 400


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
