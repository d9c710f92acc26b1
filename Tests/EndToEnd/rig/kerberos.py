"""A Kerberos realm in a folder, with Apache's mod_auth_gssapi as its service.

Tickets are for HTTP/localhost: a URL with 127.0.0.1 names a service that the realm does not know.
"""
import contextlib
import os
import pathlib
import socket

from .servers import Server, apache_command, find, free_port, hand_to, publish, written
from .waiting import output

NAME = "WATCHWORD.TEST"
WORDS = '%>s %u %U%q port=%{local}p "%{Authorization}i" "%{Proxy-Authorization}i" "%{Cookie}i"'


def configuration(folder, kdc_port):
    """Returns a krb5.conf that uses no name server and one KDC."""
    return (
        f"[libdefaults]\ndefault_realm = {NAME}\nrdns = false\ndns_canonicalize_hostname = false\nqualify_shortname = \"\"\n"
        f"forwardable = true\ndns_lookup_kdc = false\ndns_lookup_realm = false\ndns_uri_lookup = false\n"
        f"default_ccache_name = FILE:{folder}/tickets.default\ndefault_keytab_name = FILE:{folder}/none.keytab\n"
        f"default_client_keytab_name = FILE:{folder}/none.keytab\n"
        f"[realms]\n{NAME} = {{\nkdc = 127.0.0.1:{kdc_port}\n}}\n[domain_realm]\nlocalhost = {NAME}\n")


def free_port_of_both_kinds():
    while True:
        port = free_port()
        with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind(("127.0.0.1", port))
            return port


class Realm:
    """A realm. `users` are name → password. Call `stop` at the end."""

    def __init__(self, folder, users):
        self.folder, self.name = pathlib.Path(folder), NAME
        self.port = free_port_of_both_kinds()
        self.configuration, self.profile = self.folder / "krb5.conf", self.folder / "kdc.conf"
        written(self.folder, {
            "krb5.conf": configuration(self.folder, self.port),
            "kdc.conf": f"[kdcdefaults]\nkdc_listen = 127.0.0.1:{self.port}\nkdc_tcp_listen = 127.0.0.1:{self.port}\n"
            f"[realms]\n{NAME} = {{\ndatabase_name = {self.folder}/principal\nkey_stash_file = {self.folder}/stash\n"
            f"acl_file = {self.folder}/acl\nmax_life = 1h\n}}\n[logging]\nkdc = FILE:{self.folder}/kdc.log\n"})
        self.keytab = self.folder / "http.keytab"
        self.service_environment = {
            **os.environ, "KRB5_CONFIG": str(self.configuration), "KRB5_KDC_PROFILE": str(self.profile),
            "KRB5_KTNAME": f"FILE:{self.keytab}", "KRB5RCACHENAME": "none:", "KRB5CCNAME": "MEMORY:"}
        self._run(self.service_environment, "kdb5_util", "create", "-s", "-r", NAME, text="master\nmaster\n")
        commands = [f'addprinc -pw "{password}" {user}' for user, password in users.items()]
        commands += ["addprinc -randkey HTTP/localhost", f"ktadd -k {self.keytab} HTTP/localhost"]
        said = self._run(self.service_environment, "kadmin.local", text="\n".join(commands) + "\n")
        assert self.keytab.exists(), said
        self.kdc = Server([find("krb5kdc"), "-n", "-r", NAME], self.port, self.folder / "kdc.log", env=self.service_environment)
        self.stop = self.kdc.stop

    def _run(self, environment, name, *words, text):
        return output(find(name), *words, env={**os.environ, **environment}, input=text)

    def environment(self, tickets="none"):
        """Returns the environment in which a program uses the ticket cache `tickets`."""
        return {"KRB5_CONFIG": str(self.configuration), "KRB5CCNAME": f"FILE:{self.folder}/tickets.{tickets}"}

    def log_in(self, user, password, tickets=None):
        environment = self.environment(tickets or user)
        self._run(environment, "kinit", "-l", "1h", user, text=password + "\n")
        return environment


class GssapiApache(Server):
    """Kerberos at /kerberos/, Kerberos or Basic at /either/; / is open. The log contains the user. With `websocket`, the port of a
    server, it is at /kerberos/chat.

    The folder `delegated` receives the tickets of clients that delegate theirs.
    """

    def __init__(self, folder, realm, tls, websocket=None):
        folder = pathlib.Path(folder)
        self.tls_port, port = free_port(), free_port()
        written(folder, {name: (pathlib.Path(tls) / name).read_text() for name in ["server.key", "server.pem"]})
        publish(folder, {"kerberos/page.txt": "kerberos page\n", "either/page.txt": "either page\n", "open.txt": "open page\n"})
        realm.folder.chmod(0o755)
        realm.configuration.chmod(0o644)
        hand_to("www-data", realm.keytab)
        self.delegated = folder / "delegated"
        self.delegated.mkdir()
        self.delegated.chmod(0o777)
        names = ["mpm_event", "authn_core", "authz_core", "authz_user", "auth_gssapi", "ssl"]
        names += ["proxy", "proxy_wstunnel"] * bool(websocket)
        passed = f"ProxyPass /kerberos/chat ws://127.0.0.1:{websocket}/chat\n" if websocket else ""
        protected = (f"AuthType GSSAPI\nAuthName Kerberos\nGssapiAllowedMech krb5\nGssapiLocalName Off\n"
                     f"GssapiCredStore keytab:{realm.keytab}\nGssapiDelegCcacheDir {self.delegated}\nRequire valid-user\n")
        super().__init__(apache_command(
            folder, [port, self.tls_port], names, f"LogFormat '{WORDS}' short\nCustomLog {folder}/access.log short",
            f"SSLSessionCache none\n<Location /kerberos/>\n{protected}</Location>\n<Location /either/>\n{protected}GssapiBasicAuth On\nGssapiBasicAuthMech krb5\n</Location>\n{passed}"
            f"<VirtualHost 127.0.0.1:{self.tls_port}>\nSSLEngine on\nSSLCertificateFile {folder}/server.pem\n"
            f"SSLCertificateKeyFile {folder}/server.key\nCustomLog {folder}/access.log short\n</VirtualHost>"),
            port, folder / "access.log", env=realm.service_environment)
        self.url, self.tls_url = f"http://localhost:{port}", f"https://localhost:{self.tls_port}"

    def forget_delegated(self):
        for path in self.delegated.iterdir():
            path.unlink()
