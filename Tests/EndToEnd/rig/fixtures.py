"""Fixtures for the servers of the other modules here: each is started once, when a test first asks for it."""
import contextlib
import os
import pathlib
import secrets
import tempfile

import pytest

from . import kerberos as krb
from . import ntlm as rig_ntlm


@contextlib.contextmanager
def reachable_folder(name):
    """Started by root, Apache and squid serve as another user, who must be able to reach the folder."""
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
    return {"alice": new_password(), "bob": new_password()}


@pytest.fixture(scope="session")
def realm(kerberos_users):
    """A running KDC; `realm.log_in(user, password)` gives the environment of who has a ticket."""
    with reachable_folder("realm") as folder, running(krb.Realm(folder, kerberos_users)) as realm:
        yield realm


@pytest.fixture(scope="session")
def kerberos_apache(realm, tls):
    with reachable_folder("gssapi") as folder, running(krb.GssapiApache(folder, realm, tls)) as server:
        yield server


@pytest.fixture
def silent_kdc(tmp_path):
    with contextlib.closing(krb.SilentKdc(tmp_path)) as kdc:
        yield kdc


@pytest.fixture
def ntlm_users():
    return {"alice": new_password(), "bob": new_password()}


@pytest.fixture
def ntlm(tmp_path, ntlm_users):
    """Demands NTLM for everything. `ntlm.handler.served` tells whom each request was served as."""
    with contextlib.closing(rig_ntlm.ntlm_server(tmp_path, ntlm_users)) as server:
        yield server


@pytest.fixture
def ntlm_in_disguise(tmp_path, ntlm_users):
    """Says Negotiate and means NTLM."""
    with contextlib.closing(rig_ntlm.ntlm_server(tmp_path, ntlm_users, scheme="Negotiate")) as server:
        yield server


@pytest.fixture
def ntlm_proxy(tmp_path, ntlm_users):
    with contextlib.closing(rig_ntlm.ntlm_proxy(tmp_path, ntlm_users)) as server:
        yield server
