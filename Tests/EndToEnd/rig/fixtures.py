"""Fixtures for the servers of the other modules; each is started once, on first use."""
import contextlib
import functools
import os
import pathlib
import secrets
import tempfile

import pytest

from . import forwarding, leaks, servers, tls
from . import kerberos as krb
from . import ntlm as rig_ntlm
from . import tls as rig_tls
from .desktop import Desktop, RunningAgent
from .faults import Faults, build
from .terminal import Shell


@contextlib.contextmanager
def reachable_folder(name):
    """A folder that other users can reach: if started by root, Apache and squid serve as another user."""
    with tempfile.TemporaryDirectory(prefix=f"watchword-{name}-") as folder:
        os.chmod(folder, 0o755)
        yield pathlib.Path(folder)


@contextlib.contextmanager
def running(server):
    try:
        yield server
    finally:
        server.stop()


def new_password():
    return "pw" + secrets.token_hex(12)


@pytest.fixture(scope="session")
def kerberos_users():
    users = {"alice": new_password(), "bob": new_password()}
    # Also requires Basic at /either/.
    leaks.SHARED.extend((password, ["apache2"]) for password in users.values())
    return users


@pytest.fixture(scope="session")
def realm(kerberos_users):
    """A running KDC; `realm.log_in(user, password)` returns the environment of a user with a ticket."""
    with reachable_folder("realm") as folder, running(krb.Realm(folder, kerberos_users)) as realm:
        yield realm


@pytest.fixture(scope="session")
def kerberos_apache(realm, tls):
    with reachable_folder("gssapi") as folder, running(krb.GssapiApache(folder, realm, tls)) as server:
        yield server


@pytest.fixture
def ntlm_users():
    return {"alice": new_password(), "bob": new_password()}


@pytest.fixture
def ntlm(tmp_path, ntlm_users):
    """A server that requires NTLM for every request. `ntlm.handler.served` contains the user of each request."""
    with contextlib.closing(rig_ntlm.ntlm_server(tmp_path, ntlm_users)) as server:
        yield server


@pytest.fixture
def ntlm_proxy(tmp_path, ntlm_users):
    with contextlib.closing(rig_ntlm.ntlm_proxy(tmp_path, ntlm_users)) as server:
        yield server


@pytest.fixture(scope="session")
def squid(account, tls, realm):
    """squid with the URLs `squid.url("basic")`, `squid.url("tls-basic")` and so on. The user is `account`, for Negotiate a user
    of the realm."""
    with reachable_folder("squid") as folder, running(
            servers.Squid(folder, *account, tls=tls, realm=realm, names=["intranet.test"])) as server:
        yield server


@pytest.fixture(scope="session")
def dante(tmp_path_factory):
    with running(servers.dante(tmp_path_factory.mktemp("dante"))) as server:
        yield server


@pytest.fixture
def socks(account):
    """A SOCKS5 proxy with a password."""
    with contextlib.closing(forwarding.Socks5Server(dict([account]))) as server:
        yield server


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    """A folder of valid and invalid certificates: see rig.tls.Certificates."""
    return rig_tls.Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def tls_server(certificates):
    """`tls_server("expired")` starts a server with that certificate; further arguments are those of TlsServer."""
    with contextlib.ExitStack() as stack:
        yield lambda *words, **more: stack.enter_context(contextlib.closing(rig_tls.TlsServer(certificates, *words, **more)))


@pytest.fixture(scope="session")
def client_nginx(tmp_path_factory, certificates):
    """`client_nginx("optional", "TLSv1.2")` returns a server that requests a client certificate; the same arguments return the
    same server."""
    with contextlib.ExitStack() as stack:
        @functools.cache
        def start(verify="on", protocols="TLSv1.2 TLSv1.3"):
            folder = tmp_path_factory.mktemp("nginx-client")
            return stack.enter_context(running(rig_tls.client_certificate_nginx(folder, certificates, verify, protocols)))

        yield start


@pytest.fixture(scope="session")
def token(tmp_path_factory, certificates):
    """A PKCS#11 token with the certificate "client" and its key."""
    return tls.Token(tmp_path_factory.mktemp("token"), certificates.pairs["client"])


@pytest.fixture
def shell(stage):
    """The helper with a broker of the default configuration."""
    return Shell(stage.broker())


@pytest.fixture(scope="session")
def fault_library(tmp_path_factory):
    return build(tmp_path_factory.mktemp("faults"))


@pytest.fixture
def faults(stage, fault_library):
    return Faults(fault_library, stage.folder / "clocks")


@pytest.fixture(scope="module")
def desktop(tmp_path_factory):
    desktop = Desktop(tmp_path_factory.mktemp("desktop"))
    yield desktop
    desktop.end()


@pytest.fixture
def start_agent(stage):
    """`start_agent(broker, desktop, *options)` starts an agent; the arguments are those of RunningAgent. No agent may have logged an
    error."""
    agents = []

    def start(*words, **more):
        agents.append(RunningAgent(stage.folder, *words, **more))
        return agents[-1]

    yield start
    for agent in agents:
        if agent.desktop:
            agent.desktop.picture(f"end-of-{os.environ['PYTEST_CURRENT_TEST'].split('::')[1].split(' ')[0]}")
        agent.end()
        assert "Traceback" not in agent.log and "CRITICAL" not in agent.log, agent.log
