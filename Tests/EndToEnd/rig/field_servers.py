"""More servers and proxies that are in use, for behaviour that nginx, Apache and squid do not show: each is strict or lenient
in its own way."""
import base64
import gzip
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time
import uuid

import jwt

from .authority import self_signed
from .servers import Server, apache_command, digest_users, find, free_port, gunicorn, publish, served, written

PYTHON_FOLDER = pathlib.Path(__file__).resolve().parents[3] / ".build-python"


def from_pypi(package):
    """Returns the environment with the packages from PyPI, which `contrib/install-dependencies --test` installs."""
    assert (PYTHON_FOLDER / package).exists(), f"{package} is missing; run contrib/install-dependencies --test"
    return {"PYTHONPATH": str(PYTHON_FOLDER)}


def version_of(*command, pattern=r"\d+(\.\d+)+\S*", **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, **more)
    found = re.search(pattern, done.stdout + done.stderr)
    return found.group(0).rstrip(",;") if found else "?"


@served
def lighttpd(folder, port, user, password, algorithm="MD5"):
    """Digest at /private/, with the `uri` compared to the request line. A line of the log: status, user, request line."""
    name = {"MD5": "md5", "SHA-256": "sha256"}[algorithm]
    return ["lighttpd", "-D", "-f", "lighttpd.conf"], "access.log", {
        "www/private/page.txt": "private page\n",
        "users": f"{user}:Private:{hashlib.new(name, f'{user}:Private:{password}'.encode()).hexdigest()}\n",
        "lighttpd.conf":
        'server.modules = ("mod_auth", "mod_authn_file", "mod_accesslog")\n'
        f'server.document-root = "{folder}/www"\nserver.port = {port}\nserver.bind = "127.0.0.1"\n'
        f'server.errorlog = "{folder}/error.txt"\naccesslog.filename = "{folder}/access.log"\n'
        'accesslog.format = "%s %u %r"\nmimetype.assign = (".txt" => "text/plain")\n'
        f'auth.backend = "htdigest"\nauth.backend.htdigest.userfile = "{folder}/users"\n'
        f'auth.require = ("/private/" => ("method" => "digest", "algorithm" => "{algorithm}", "realm" => "Private", "require" => "valid-user"))\n'
    }, {}


@served
def wsgidav(folder, port, user, password):
    """WebDAV with Digest, which hashes the `uri` of the request."""
    return gunicorn(port, "application:app"), "dav.log", {
        "files/page.txt": "dav page\n",
        "application.py":
        "from wsgidav.wsgidav_app import WsgiDAVApp\n"
        f"users = {{'*': {{{user!r}: {{'password': {password!r}}}}}}}\n"
        f"app = WsgiDAVApp({{'provider_mapping': {{'/': {str(folder / 'files')!r}}}, 'simple_dc': {{'user_mapping': users}}, 'verbose': 0,\n"
        "    'http_authenticator': {'accept_basic': False, 'accept_digest': True, 'default_to_digest': True},\n"
        "    'lock_storage': None, 'logging': {'enable': False}})\n"}, from_pypi("wsgidav")


def apache_with_digest(folder, realm, user, password, section, directives, log="%>s %u %r"):
    """Apache's proxy module with `directives`, where `section` requires Digest. `log` is the format of a line of its log."""
    folder, port = pathlib.Path(folder), free_port()
    protected = digest_users(folder, realm, user, password)
    publish(folder, {})
    return Server(apache_command(
        folder, [port], ["mpm_event", "authn_core", "authn_file", "authz_core", "authz_user", "auth_digest", "proxy", "proxy_http"],
        f'CustomLog {folder}/access.log "{log}"', f"{directives}\n<{section}>\n{protected}</{section.split()[0]}>"), port, folder / "access.log")


def apache_proxy(folder, user, password):
    """A proxy that requires Digest. A line of the log: status, user, request line."""
    return apache_with_digest(folder, "Gate", user, password, "Proxy *", "ProxyRequests On")


@served
def tinyproxy(folder, port, user=None, password=None):
    """A proxy; it requires Basic if `user` is set."""
    text = f'Port {port}\nListen 127.0.0.1\nTimeout 20\nMaxClients 20\nLogFile "{folder}/proxy.log"\nLogLevel Info\nAllow 127.0.0.1\n'
    text += f"BasicAuth {user} {password}\n" if user else ""
    return ["tinyproxy", "-d", "-c", "tinyproxy.conf"], "proxy.log", {"tinyproxy.conf": text}, {}


@served
def proxy_py(folder, port, user, password):
    """A proxy that requires Basic, without a realm."""
    return [sys.executable, "-m", "proxy", "--hostname", "127.0.0.1", "--port", port, "--basic-auth", f"{user}:{password}",
            "--num-workers", "1", "--num-acceptors", "1"], "proxy.log", {}, {**from_pypi("proxy"), "HOME": str(folder)}


def registry_command(folder, port, authentication=""):
    written(folder, {"config.yml": f"version: 0.1\nlog: {{level: info}}\nstorage: {{filesystem: {{rootdirectory: {folder}/data}}}}\n"
                     f"http: {{addr: '127.0.0.1:{port}'}}\n{authentication}"})
    return [find("docker-registry"), "serve", f"{folder}/config.yml"]


class Registry(Server):
    """A container registry that requires tokens of the token service at `realm`; `token` issues them."""

    SERVICE, ISSUER = "registry.test", "issuer.test"

    def __init__(self, folder, realm=f"https://{ISSUER}/token"):
        folder, port = pathlib.Path(folder), free_port()
        self.issuer = self_signed(self.ISSUER, bits=2048)
        self.issuer.write(folder, "issuer")
        super().__init__(registry_command(
            folder, port, f"auth: {{token: {{realm: '{realm}', service: '{self.SERVICE}', issuer: '{self.ISSUER}',"
            f" rootcertbundle: {folder}/issuer.pem}}}}\n"), port, folder / "registry.log", cwd=folder)

    def token(self, *scopes, user="bob", lifetime=600, audience=SERVICE):
        """Issues a token for scopes such as `repository:NAME:ACTION,…` (as in the registry's challenge). The registry accepts it
        for a minute longer than its lifetime in seconds."""
        now = int(time.time())
        access = [{"type": kind, "name": name, "actions": [one for one in actions.split(",") if one]}
                  for kind, name, actions in (re.fullmatch("([^:]+):(.+):([^:]*)", scope).groups() for scope in scopes)]
        claims = {"iss": self.ISSUER, "sub": user, "aud": audience, "exp": now + lifetime, "nbf": now - 600, "iat": now,
                  "jti": uuid.uuid4().hex, "access": access}
        return jwt.encode(claims, self.issuer.key, "RS256", {"x5c": [base64.b64encode(self.issuer.der).decode()]})


@served
def haproxy(folder, port, user, password):
    """Requires Basic, and responds itself."""
    return ["haproxy", "-db", "-f", "haproxy.cfg"], "haproxy.log", {
        "haproxy.cfg": "defaults\n mode http\n timeout client 20s\n timeout server 20s\n timeout connect 5s\n"
        f"userlist people\n user {user} insecure-password {password}\n"
        f"frontend front\n bind 127.0.0.1:{port}\n http-request auth realm Front unless {{ http_auth(people) }}\n"
        ' http-request return status 200 content-type text/plain string "page"\n'}, {}


@served
def caddy(folder, port, user, password):
    """Requires Basic."""
    hashed = subprocess.run([find("caddy"), "hash-password", "--plaintext", password], check=True, capture_output=True, text=True).stdout.strip()
    text = f"{{\n admin off\n auto_https off\n}}\nhttp://127.0.0.1:{port} {{\n basicauth * {{\n  {user} {hashed}\n }}\n respond \"page\"\n}}\n"
    return ["caddy", "run", "--config", "Caddyfile"], "caddy.log", {"Caddyfile": text}, dict.fromkeys(
        ["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"], str(folder))


@served
def radicale(folder, port, user, password):
    """A calendar server with Basic."""
    return ["radicale", "--config", "config"], "radicale.log", {
        "users": f"{user}:{password}\n",
        "config": f"[server]\nhosts = 127.0.0.1:{port}\n[auth]\ntype = htpasswd\nhtpasswd_filename = {folder}/users\n"
        f"htpasswd_encryption = plain\ndelay = 0\n[storage]\nfilesystem_folder = {folder}/collections\n"}, {"HOME": str(folder)}


@served
def mitmproxy(folder, port, user, password):
    """A proxy that requires Basic and intercepts the requests that it forwards."""
    return ["mitmdump", "--quiet", "--listen-host", "127.0.0.1", "--listen-port", port, "--proxyauth", f"{user}:{password}",
            "--set", f"confdir={folder}"], "mitmproxy.log", {}, {"HOME": str(folder)}


# The results of `test_servers.py`, with the versions for which they were written; part of MATRIX.md.
FIELD = {
    "lighttpd": ("1.4.69", "Digest MD5 and SHA-256, behind tinyproxy and squid", ["lighttpd", "-v"]),
    "Apache mod_auth_digest": ("2.4", "Digest behind tinyproxy and squid; Digest as a forwarding proxy", ["apache2", "-v"]),
    "squid": ("5.7", "Digest as a proxy; forwarding to servers with Digest", ["squid", "-v"]),
    "tinyproxy": ("1.11.1", "Basic as a proxy; forwarding to servers with Digest", ["tinyproxy", "-v"]),
    "docker-registry": ("2.8.2", "Bearer with `insufficient_scope`", ["docker-registry", "--version"]),
    "haproxy": ("2.6.12", "Basic", ["haproxy", "-v"]),
    "caddy": ("2.6.2", "Basic", ["caddy", "version"]),
    "radicale": ("3.1.8", "Basic", ["radicale", "--version"]),
    "mitmproxy": ("8.1.1", "Basic as a proxy", ["mitmdump", "--version"]),
    "wsgidav": ("4.3.3", "Digest behind tinyproxy and squid", None),
    "proxy.py": ("2.4.10", "Basic without a realm", None),
}


def installed(name):
    if command := FIELD[name][2]:
        return version_of(find(command[0]), *command[1:])
    found = [path.name for path in PYTHON_FOLDER.glob("*.dist-info") if path.name.lower().startswith(name + "-")]
    return found[0].removesuffix(".dist-info").rsplit("-", 1)[1] if found else "missing"


def field_section():
    rows = [f"| {name} | {version} | {shown} |" for name, (version, shown, _) in FIELD.items()]
    return ["", "## Further servers", "", "Tested by `test_servers.py`, which also compares the versions.", "",
            "| server | version | what works |", "| --- | --- | --- |", *rows]


MEDIA = "application/vnd.docker."


def open_registry(folder):
    folder, port = pathlib.Path(folder), free_port()
    return Server(registry_command(folder, port), port, folder / "registry.log", cwd=folder)


def apache_digest_gate(folder, registry, user, password):
    """Apache with Digest in front of a registry."""
    return apache_with_digest(
        folder, "Registry", user, password, "Location /",
        f"ProxyPreserveHost On\nProxyPass / http://127.0.0.1:{registry.port}/", log="%>s %u %m %U")


class Image:
    """An image in a folder, as skopeo's transport `dir:` stores it. Its only layer is random, so that it cannot be compressed."""

    def __init__(self, folder, size=2 << 20):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        content = os.urandom(size)
        configuration = {"architecture": "amd64", "os": "linux", "config": {},
                         "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(content).hexdigest()}"]}}
        manifest = {"schemaVersion": 2, "mediaType": f"{MEDIA}distribution.manifest.v2+json",
                    "config": self._part("container.image.v1+json", json.dumps(configuration).encode()),
                    "layers": [self._part("image.rootfs.diff.tar.gzip", gzip.compress(content))]}
        (self.folder / "manifest.json").write_text(json.dumps(manifest))
        (self.folder / "version").write_text("Directory Transport Version: 1.1\n")

    def _part(self, media, data):
        digest = hashlib.sha256(data).hexdigest()
        (self.folder / digest).write_bytes(data)
        return {"mediaType": MEDIA + media, "digest": f"sha256:{digest}", "size": len(data)}

    @property
    def content(self):
        return content(self.folder)

    def push_and_pull(self, name, back, login=None):
        """Returns a shell command that pushes the image as `name`, and pulls it into the folder `back`. `login` is a user and a
        password, joined by a colon."""
        copy = [find("skopeo"), "--insecure-policy", "copy", "-q"]
        given = lambda side: [f"--{side}-creds={login}"] if login else []
        push = [*copy, "--dest-tls-verify=false", *given("dest"), f"dir:{self.folder}", f"docker://{name}"]
        pull = [*copy, "--src-tls-verify=false", *given("src"), f"docker://{name}", f"dir:{back}"]
        return f"{shlex.join(push)} && {shlex.join(pull)}"


def content(folder):
    return {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}
