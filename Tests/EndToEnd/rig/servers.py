"""Real servers from Debian's packages, each with a folder of its own and a loopback port, ended by its process id."""
import functools
import hashlib
import itertools
import os
import pathlib
import random
import shutil
import socket
import time
import uuid

from . import leaks
from .authority import Authority
from .bodies import eventually
from .waiting import output, started

INSTALL = "contrib/install-dependencies --test"
APACHE_MODULES = "/usr/lib/apache2/modules"


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
        self.output_path = pathlib.Path(f"{log}.out")
        self.process = started(command, self.output_path, **more)
        wait_for_port(port, self.process, self.output_path)

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


def wait_for_port(port, process=None, output=None, seconds=30):
    """Waits until a program listens; `process` must not end before, and `output` is what it prints."""
    end = time.monotonic() + seconds
    while True:
        assert process is None or process.poll() is None, output.read_text()
        try:
            return socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert time.monotonic() < end, f"nothing listens on {port}"
            time.sleep(0.02)


def written(folder, files):
    for name, text in files.items():
        path = pathlib.Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return pathlib.Path(folder)


def private(path, text, mode=0o600):
    """Writes a file that only this user may read; returns its path."""
    path.write_text(text)
    path.chmod(mode)
    return path


def executable(path, text):
    return private(path, text, 0o755)


def served(make):
    """Makes a function that starts a server in a folder, from one that gets the folder and a free port, and returns the command, the name
    of the log, the files to write first, and the changes of the environment."""
    @functools.wraps(make)
    def start(folder, *arguments, **more):
        folder, port = pathlib.Path(folder), free_port()
        command, log, files, environment = make(folder, port, *arguments, **more)
        written(folder, files)
        return Server([find(command[0]), *map(str, command[1:])], port, folder / log, cwd=folder, env={**os.environ, **environment})
    return start


def hand_to(account, *paths):
    """Changes the owner of the private files to `account`, as whom a server that root starts serves."""
    for path in paths:
        pathlib.Path(path).chmod(0o600)
        if os.geteuid() == 0:
            shutil.chown(path, account)


def password_line(user, password):
    return f"{user}:{output('openssl', 'passwd', '-apr1', '-stdin', input=password).strip()}\n"


def certificates(folder):
    """Creates a certificate authority, and a certificate for localhost and 127.0.0.1."""
    authority = Authority("Authority of the servers")
    authority.write(folder, "ca")
    authority.issue(bits=2048).write(folder, "server")
    return pathlib.Path(folder)


def publish(folder, pages):
    """Writes these pages below `folder`/www, and makes everything there readable for servers that run as other users."""
    (pathlib.Path(folder) / "www").mkdir(exist_ok=True)
    written(pathlib.Path(folder) / "www", pages)
    readable(folder)


def readable(folder):
    for path in [pathlib.Path(folder), *pathlib.Path(folder).rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)


def nginx_command(folder, log, servers):
    """Configures nginx with these `servers`; `log` is the format of a line of access.log."""
    spool = "".join(f"{name}_temp_path {folder}/{name}; " for name in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"])
    user = "user root; " if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(
        f"daemon off; {user}pid {folder}/pid; error_log {folder}/error.log; events {{}}\n"
        f"http {{ {spool} log_format short '{log}'; access_log {folder}/access.log short; ssl_session_cache off;\n{servers}\n}}\n")
    return [find("nginx"), "-c", f"{folder}/nginx.conf", "-e", f"{folder}/error.log"]


def apache_command(folder, ports, modules, log, directives):
    """Configures Apache, which must be able to read `folder` as another user; `log` is a line with the format of its log."""
    missing = [name for name in modules if not pathlib.Path(f"{APACHE_MODULES}/mod_{name}.so").exists()]
    assert not missing, f"Apache lacks {missing}; run {INSTALL}"
    loads = "".join(f"LoadModule {name}_module {APACHE_MODULES}/mod_{name}.so\n" for name in modules)
    listens = "".join(f"Listen 127.0.0.1:{port}\n" for port in ports)
    account = "User www-data\nGroup www-data\n" if os.geteuid() == 0 else ""
    (folder / "apache.conf").write_text(
        f"ServerRoot {folder}\nPidFile {folder}/pid\nServerName localhost\n{listens}{loads}{account}StartServers 1\n"
        f"ErrorLog {folder}/error.log\n{log}\nDocumentRoot {folder}/www\nMutex file:{folder}\n{directives}\n")
    return [find("apache2"), "-f", f"{folder}/apache.conf", "-D", "FOREGROUND"]


def nginx(folder, user, password, tls=None):
    """/ is open, /staff/ requires Basic; with `tls` over HTTPS and HTTP/2."""
    folder, port = pathlib.Path(folder), free_port()
    (folder / "users").write_text(password_line(user, password))
    publish(folder, {"open.txt": "open page\n", "staff/page.txt": "staff page\n"})
    (folder / "www" / "large.bin").write_bytes(os.urandom(3 << 20))
    listen = f"listen 127.0.0.1:{port}" + (f" ssl http2; ssl_certificate {tls}/server.pem; ssl_certificate_key {tls}/server.key" if tls else "")
    return Server(nginx_command(
        folder, "$status $remote_user $server_protocol $request_uri",
        f"log_format heard '$http_authorization $http_proxy_authorization $http_cookie'; access_log {folder}/heard.log heard;\n"
        f"server {{ {listen}; root {folder}/www; location /staff/ {{ auth_basic \"Staff\"; auth_basic_user_file {folder}/users; }} }}"),
        port, folder / "access.log")


def digest_users(folder, realm, user, password):
    """Writes the file with which Apache checks Digest; returns the directives."""
    proof = hashlib.md5(f"{user}:{realm}:{password}".encode()).hexdigest()
    (folder / "users").write_text(f"{user}:{realm}:{proof}\n")
    return f"AuthType Digest\nAuthName {realm}\nAuthDigestProvider file\nAuthUserFile {folder}/users\nRequire valid-user\n"


def apache_digest(folder, user, password):
    """/private/ requires Digest with MD5."""
    folder, port = pathlib.Path(folder), free_port()
    protected = digest_users(folder, "Private", user, password)
    publish(folder, {"private/page.txt": "private page\n"})
    return Server(apache_command(
        folder, [port], ["mpm_event", "authn_core", "authn_file", "authz_core", "authz_user", "auth_digest", "dir"],
        f"CustomLog {folder}/heard.log \"%{{Authorization}}i %{{Proxy-Authorization}}i %{{Cookie}}i\"",
        f"<Files index.html>\nForceType text/html\n</Files>\n<Location /private/>\n{protected}</Location>"), port, folder / "error.log")


@served
def httpbin(folder, port):
    return gunicorn(port, "httpbin:app", "--threads", "4"), "httpbin.log", {}, {}


def gunicorn(port, application, *options):
    return ["gunicorn", "--bind", f"127.0.0.1:{port}", *options, "--worker-tmp-dir", "/dev/shm", application]


HELPERS = "/usr/lib/squid"
REALM = "Proxy"
WAYS = ["open", "basic", "digest", "negotiate"]


class Squid(Server):
    """squid. `ports`: "open", "basic", "digest", "negotiate" with a Kerberos realm, and each as "tls-…".

    A line of the log: status, method, target, user, port, and the login header of the request, if any. `names` are further
    names of this machine.
    """

    def __init__(self, folder, user, password, tls, realm, names=()):
        folder = pathlib.Path(folder)
        proof = hashlib.md5(f"{user}:{REALM}:{password}".encode()).hexdigest()
        written(folder, {"basic": password_line(user, password), "digest": f"{user}:{REALM}:{proof}\n",
                         "hosts": "".join(f"127.0.0.1 {name}\n" for name in ["localhost", *names]),
                         **{name: (pathlib.Path(tls) / name).read_text() for name in ["server.key", "server.pem"]}})
        (folder / "keytab").write_bytes(realm.keytab.read_bytes())
        realm.folder.chmod(0o755)
        lines = [f"auth_param basic program {HELPERS}/basic_ncsa_auth {folder}/basic", f"auth_param basic realm {REALM}",
                 f"auth_param digest program {HELPERS}/digest_file_auth -c {folder}/digest", f"auth_param digest realm {REALM}",
                 f"auth_param negotiate program {HELPERS}/negotiate_kerberos_auth -k {folder}/keytab -s HTTP/localhost@{realm.name}",
                 *[f"auth_param {scheme} children 2 startup=1 idle=1" for scheme in WAYS[1:]], "acl known proxy_auth REQUIRED"]
        self.ports = {}
        for name, kind in itertools.product(WAYS, ["", "tls-"]):
            self.ports[kind + name] = port = free_port()
            keys = f" tls-cert={folder}/server.pem tls-key={folder}/server.key" if kind else ""
            lines += [f"{'https' if kind else 'http'}_port 127.0.0.1:{port}{keys}", f"acl at_{kind}{name} localport {port}"]
            lines += [f"auth_schemes {name} at_{kind}{name}"] * (name != "open")
            lines.append(f"http_access allow at_{kind}{name}" + " known" * (name != "open"))
        (folder / "squid.conf").write_text("\n".join([
            *lines, "http_access deny all", "cache deny all", "cache_mem 8 MB", f"pid_filename {folder}/pid",
            'logformat short %>Hs %rm %ru %un port=%>lp "%{Proxy-Authorization}>h" "%{Authorization}>h" "%{Cookie}>h"',
            f"access_log stdio:{folder}/access.log short", f"cache_log {folder}/cache.log", "cache_store_log none",
            f"coredump_dir {folder}", "netdb_filename none", "pinger_enable off", "shutdown_lifetime 0 seconds",
            f"hosts_file {folder}/hosts", "dns_nameservers 127.0.0.1",
            "dns_timeout 1 seconds", "dns_retransmit_interval 1 seconds", "visible_hostname localhost", "max_filedescriptors 1024",
        ]) + "\n")
        hand_to("proxy", *(folder / name for name in ["basic", "digest", "keytab", "server.key"]))
        if os.geteuid() == 0:
            os.chmod(folder, 0o777)  # squid writes its logs as "proxy"
        super().__init__([find("squid"), "-N", "-f", f"{folder}/squid.conf"], self.ports["open"], folder / "access.log", cwd=folder,
                         env={**realm.service_environment, "KRB5_KTNAME": f"FILE:{folder}/keytab"})
        for port in self.ports.values():
            wait_for_port(port)

    def url(self, name):
        return f"{'https' if name.startswith('tls-') else 'http'}://localhost:{self.ports[name]}"


@served
def dante(folder, port):
    """SOCKS5 on loopback without a login. It looks names up in this machine's hosts file."""
    text = (f"logoutput: {folder}/danted.log\ninternal: 127.0.0.1 port = {port}\nexternal: 127.0.0.1\n"
            "clientmethod: none\nsocksmethod: none\n"
            "client pass {\nfrom: 127.0.0.0/8 to: 0.0.0.0/0\n}\nsocks pass {\nfrom: 127.0.0.0/8 to: 127.0.0.0/8\nlog: connect error\n}\n")
    return ["danted", "-N", "1", "-f", f"{folder}/danted.conf", "-p", f"{folder}/pid"], "danted.log", {"danted.conf": text}, {"TMPDIR": str(folder)}
