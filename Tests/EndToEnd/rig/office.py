"""The hosts that the documents name, served by one server on this machine, and a broker that reaches them through its proxy."""
import json
import os
import pathlib
import re
import shutil
import time

from . import audit
from .authority import Authority
from .broker import ROOT, Broker, part, program
from .client import password_answer
from .forwarding import ForwardProxy, Socks5Server
from .scripted import DigestCheck, basic, basic_server, response
from .subjects import Consenter, sandboxed
from .terminal import Terminal
from .servers import written
from .tls import TlsServer
from .waiting import output

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
                 "answer.json": json.dumps(password_answer("bob", self.password)),
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
        def answer(challenge):
            key = challenge["protectionSpace"]["serverTrust"]["chain"][0]["spkiSha256"]
            return {"action": "credential", "credential": {"type": "trust", "spkiSha256": key, "persistence": "forSession"}}

        client = self.stage.client(broker=self.broker, answer=answer)
        assert "result" in client.call("auth/subscribe", {"mode": "everything"})
        for host in hosts:
            assert "result" in client.fetch(f"https://{host}/")

    def grants(self):
        """g1 and g2 of the sandbox, g3 and g4 of another program."""
        agent = Consenter(self.broker.socket, allow="always")
        self.stage.clients.append(agent)
        self.login_of_the_keyring()
        self.keyring.put(self.password, server="backup.example", protocol="https", user="bob")
        relay = sandboxed(self.broker, "org.gnome.Maps")
        for url in ["https://intranet.example/", "https://backup.example/"]:
            assert relay.fetch(url)["result"]["status"] == 200
        relay.close()
        self.must("watchword fetch https://intranet.example/ https://backup.example/")

    def stopped_programs(self):
        """bin/mytool and another, whose prompts were stopped; both are socat by another name."""
        stop = {"action": "cancel", "stopAsking": True}
        agent = self.stage.client(broker=self.broker, delivery=None, answer=lambda challenge: stop)
        assert "result" in agent.call("agent/register", {"name": "desk"})
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
