"""Real servers from Debian's packages, each with a folder of its own and a loopback port, ended by its process id."""
import itertools
import os
import pathlib
import random
import shutil
import socket
import subprocess
import time
import uuid

from . import leaks
from .bodies import eventually

INSTALL = "contrib/install-dependencies --test"


def find(name):
    path = shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    assert path, f"{name} is missing; run {INSTALL}"
    return path


def _ports():
    """Yields ports that no other worker of pytest-xdist uses, and that the kernel gives to no outgoing connection
    (ip_local_port_range begins at 32768). None comes twice soon: a client of an earlier server might still use it."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 5
    first, count = 10_000 + worker * 4_000, 4_000
    start = random.randrange(count)
    for number in itertools.count(start):
        yield first + number % count


PORTS = _ports()


def free_port():
    """Returns a port on which nothing listens."""
    for port in PORTS:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


def marked(path):
    """Returns `path` with a query that no other test uses, by which `Server.lines` finds the requests of one test."""
    return f"{path}?{uuid.uuid4().hex[:12]}"


class Server:
    def __init__(self, command, port, log, **more):
        self.port, self.log_path, self.program = port, pathlib.Path(log), pathlib.Path(command[0]).name
        self.output = open(str(log) + ".out", "ab")
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.output, stderr=self.output, **more)
        end = time.monotonic() + 20
        while True:
            assert self.process.poll() is None, pathlib.Path(str(log) + ".out").read_text()
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                assert time.monotonic() < end, f"nothing listens on {port}"
                time.sleep(0.02)

    @property
    def log(self):
        return self.log_path.read_text() if self.log_path.exists() else ""

    @property
    def wire(self):
        """The records of the server, including every header with a login, to be searched for secrets."""
        return b"".join(path.read_bytes() for path in sorted(self.log_path.parent.glob("*.log")))

    def wait_for_log(self, text, times=1, seconds=30):
        """Returns the log after `text` occurs in it `times` times: servers write a line when a request or a tunnel has ended."""
        return eventually(lambda: (log := self.log).count(text) >= times and log, lambda: f"{text!r} is not in {self.log!r}", seconds)

    def lines(self, mark, times=1):
        """Returns the lines of the log that contain `mark`, as soon as there are `times`. Several tests use a server, and the line
        of an earlier test may come late: `marked` makes a path that only one test requests."""
        return [line for line in self.wait_for_log(mark, times).splitlines() if mark in line]

    def stop(self):
        self.process.terminate()
        self.process.wait(30)
        leaks.HEARD.append((self.program, self.port, self.wire))


def wait_for_port(port, seconds=30):
    end = time.monotonic() + seconds
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert time.monotonic() < end, f"nothing listens on {port}"
            time.sleep(0.02)


def hand_to(account, *paths):
    """Changes the owner of the private files to `account`, as whom a server that root starts serves."""
    for path in paths:
        pathlib.Path(path).chmod(0o600)
        if os.geteuid() == 0:
            shutil.chown(path, account)


def password_line(user, password):
    made = subprocess.run(["openssl", "passwd", "-apr1", "-stdin"], input=password, text=True, capture_output=True, check=True)
    return f"{user}:{made.stdout.strip()}\n"


def certificates(folder):
    """Creates a certificate authority, and a certificate for localhost and 127.0.0.1."""
    folder = pathlib.Path(folder)
    run = lambda *words: subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)
    run("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=Test authority", "-keyout", "ca.key", "-out", "ca.pem")
    run("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-keyout", "server.key", "-out", "server.csr")
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    run("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names", "-out", "server.pem")
    return folder


def nginx(folder, user, password, tls=None):
    """/ is open, /staff/ requires Basic; with `tls` over HTTPS and HTTP/2."""
    folder = pathlib.Path(folder)
    port = free_port()
    (folder / "www" / "staff").mkdir(parents=True)
    (folder / "www" / "open.txt").write_text("open page\n")
    (folder / "www" / "staff" / "page.txt").write_text("staff page\n")
    (folder / "www" / "large.bin").write_bytes(os.urandom(3 << 20))
    (folder / "users").write_text(password_line(user, password))
    listen = f"listen 127.0.0.1:{port}" + (f" ssl http2; ssl_certificate {tls}/server.pem; ssl_certificate_key {tls}/server.key" if tls else "")
    spool = "".join(f"{name}_temp_path {folder}/{name}; " for name in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"])
    user_line = "user root; " if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(
        f"daemon off; {user_line}pid {folder}/pid; error_log {folder}/error.log; events {{}}\n"
        f"http {{ {spool} log_format short '$status $remote_user $server_protocol $request_uri'; access_log {folder}/access.log short;\n"
        f"log_format heard '$http_authorization $http_proxy_authorization $http_cookie'; access_log {folder}/heard.log heard;\n"
        f"server {{ {listen}; root {folder}/www; location /staff/ {{ auth_basic \"Staff\"; auth_basic_user_file {folder}/users; }} }} }}\n")
    return Server([find("nginx"), "-c", f"{folder}/nginx.conf", "-e", f"{folder}/error.log"], port, folder / "access.log")


def apache_digest(folder, user, password):
    """/private/ requires Digest with MD5."""
    import hashlib

    folder = pathlib.Path(folder)
    port = free_port()
    (folder / "www" / "private").mkdir(parents=True)
    (folder / "www" / "private" / "page.txt").write_text("private page\n")
    (folder / "users").write_text(f"{user}:Private:{hashlib.md5(f'{user}:Private:{password}'.encode()).hexdigest()}\n")
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    modules = "/usr/lib/apache2/modules"
    names = ["mpm_event", "authn_core", "authn_file", "authz_core", "authz_user", "auth_digest", "dir"]
    loads = "".join(f"LoadModule {name}_module {modules}/mod_{name}.so\n" for name in names)
    account = "User www-data\nGroup www-data\n" if os.geteuid() == 0 else ""
    (folder / "apache.conf").write_text(
        f"ServerRoot {folder}\nPidFile {folder}/pid\nServerName localhost\nListen 127.0.0.1:{port}\n{loads}{account}"
        f"ErrorLog {folder}/error.log\nCustomLog {folder}/heard.log \"%{{Authorization}}i %{{Proxy-Authorization}}i %{{Cookie}}i\"\nDocumentRoot {folder}/www\nMutex file:{folder}\n"
        "<Files index.html>\nForceType text/html\n</Files>\n"
        f"<Location /private/>\nAuthType Digest\nAuthName Private\nAuthDigestProvider file\nAuthUserFile {folder}/users\nRequire valid-user\n</Location>\n")
    return Server([find("apache2"), "-f", f"{folder}/apache.conf", "-D", "FOREGROUND"], port, folder / "error.log")


def httpbin(folder):
    port = free_port()
    return Server(
        [find("gunicorn"), "--bind", f"127.0.0.1:{port}", "--threads", "4", "--worker-tmp-dir", "/dev/shm", "httpbin:app"],
        port, pathlib.Path(folder) / "httpbin.log", cwd=folder)
