"""Third-party proxies: squid, with a port for each authentication scheme, and dante for SOCKS5 without a login.

dante authenticates only users of the system (or with PAM, which needs a file in /etc), so SOCKS5 with a password is
`forwarding.Socks5Server`.
"""
import hashlib
import os
import pathlib

from .servers import Server, find, free_port, hand_to, password_line, served, wait_for_port, written

HELPERS = "/usr/lib/squid"
REALM = "Proxy"
WAYS = {"open": None, "basic": "basic", "digest": "digest", "negotiate": "negotiate"}


class Squid(Server):
    """squid. `ports`: "open", "basic", "digest", "negotiate" with a Kerberos realm, and with `tls` each as "tls-…".

    A line of the log: status, method, target, user, port, and the login header of the request, if any. `names` are further
    names of this machine.
    """

    def __init__(self, folder, user, password, tls=None, realm=None, names=()):
        folder = pathlib.Path(folder)
        proof = hashlib.md5(f"{user}:{REALM}:{password}".encode()).hexdigest()
        ways = {name: schemes for name, schemes in WAYS.items() if name != "negotiate" or realm}
        written(folder, {"basic": password_line(user, password), "digest": f"{user}:{REALM}:{proof}\n",
                         "hosts": "".join(f"127.0.0.1 {name}\n" for name in ["localhost", *names])})
        environment = dict(os.environ)
        lines = [f"auth_param basic program {HELPERS}/basic_ncsa_auth {folder}/basic", f"auth_param basic realm {REALM}",
                 f"auth_param digest program {HELPERS}/digest_file_auth -c {folder}/digest", f"auth_param digest realm {REALM}"]
        secret = [folder / "basic", folder / "digest"]
        if realm:
            (folder / "keytab").write_bytes(realm.keytab.read_bytes())
            secret.append(folder / "keytab")
            realm.folder.chmod(0o755)
            environment = {**realm.service_environment, "KRB5_KTNAME": f"FILE:{folder}/keytab"}
            lines.append(f"auth_param negotiate program {HELPERS}/negotiate_kerberos_auth -k {folder}/keytab -s HTTP/localhost@{realm.name}")
        lines += [f"auth_param {scheme} children 2 startup=1 idle=1" for scheme in ["basic", "digest", *["negotiate"] * bool(realm)]]
        if tls:
            written(folder, {name: (pathlib.Path(tls) / name).read_text() for name in ["server.key", "server.pem"]})
            secret.append(folder / "server.key")
        self.ports = {}
        lines.append("acl known proxy_auth REQUIRED")
        for name, schemes in ways.items():
            for kind in ["", *["tls-"] * bool(tls)]:
                self.ports[kind + name] = port = free_port()
                keys = f" tls-cert={folder}/server.pem tls-key={folder}/server.key" if kind else ""
                lines += [f"{'https' if kind else 'http'}_port 127.0.0.1:{port}{keys}", f"acl at_{kind}{name} localport {port}"]
                lines += [f"auth_schemes {schemes} at_{kind}{name}"] * bool(schemes)
                lines.append(f"http_access allow at_{kind}{name}" + " known" * bool(schemes))
        (folder / "squid.conf").write_text("\n".join([
            *lines, "http_access deny all", "cache deny all", "cache_mem 8 MB", f"pid_filename {folder}/pid",
            'logformat short %>Hs %rm %ru %un port=%>lp "%{Proxy-Authorization}>h" "%{Authorization}>h" "%{Cookie}>h"',
            f"access_log stdio:{folder}/access.log short", f"cache_log {folder}/cache.log", "cache_store_log none",
            f"coredump_dir {folder}", "netdb_filename none", "pinger_enable off", "shutdown_lifetime 0 seconds",
            f"hosts_file {folder}/hosts", "dns_nameservers 127.0.0.1",
            "dns_timeout 1 seconds", "dns_retransmit_interval 1 seconds", "visible_hostname localhost", "max_filedescriptors 1024",
        ]) + "\n")
        hand_to("proxy", *secret)
        if os.geteuid() == 0:
            os.chmod(folder, 0o777)  # squid writes its logs as "proxy"
        super().__init__(
            [find("squid"), "-N", "-f", f"{folder}/squid.conf"], self.ports["open"], folder / "access.log", env=environment, cwd=folder)
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
