"""skopeo, unchanged, pushes and pulls an image through the broker, which logs in."""
import pytest

from rig import field_servers
from rig.client import password_answer
from rig.fixtures import reachable_folder, running
from rig.local_fronts import run


@pytest.fixture(scope="module")
def images():
    with reachable_folder("registry") as folder, running(field_servers.open_registry(folder)) as server:
        yield server


@pytest.fixture
def image(tmp_path):
    return field_servers.Image(tmp_path / "image")


def push_and_pull(broker, image, host, folder):
    """Does it with two programs at the same time; into one repository, the registry could not (500). skopeo reaches addresses of this machine without a proxy, so the host is a name."""
    commands = [image.push_and_pull(f"{host}/{tag}:demo", folder / f"back-{tag}") for tag in ["one", "two"]]
    done = run(broker, "sh", "-c", f"({commands[0]}) & {commands[1]}; done=$?; wait $! && exit $done", seconds=120, environment={"HOME": str(folder)})
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    for tag in ["one", "two"]:
        assert field_servers.content(folder / f"back-{tag}") == image.content


def test_through_a_proxy_with_ntlm(stage, images, image, ntlm_proxy, ntlm_users, tmp_path):
    broker = stage.configured(f'[proxy]\nurl = "http://127.0.0.1:{ntlm_proxy.port}"\n[schemes]\nntlm = ["127.0.0.1"]\n')
    asked = stage.agent(password_answer("alice", ntlm_users["alice"], domain="TESTDOM"), broker).asked
    push_and_pull(broker, image, f"intranet.test:{images.port}", tmp_path)
    assert len(asked) == 1 and asked[0]["protectionSpace"]["isProxy"], asked
    assert asked[0]["requester"]["subject"] == "exe:/usr/bin/skopeo"
    assert {user for _, _, user in ntlm_proxy.handler.served} == {"TESTDOM\\alice"}


def test_through_a_proxy_with_kerberos(stage, images, image, squid, realm, kerberos_users, tmp_path):
    broker = stage.configured(
        f'[proxy]\nurl = "{squid.url("negotiate")}"\n[schemes]\nnegotiate = ["localhost"]\n',
        environment=realm.log_in("alice", kerberos_users["alice"]))
    asked = stage.agent({"action": "cancel"}, broker).asked
    push_and_pull(broker, image, f"intranet.test:{images.port}", tmp_path)
    assert asked == [], "the tickets suffice"


def test_at_a_registry_with_digest(stage, images, image, account, tmp_path):
    with reachable_folder("registry-gate") as folder, running(field_servers.apache_digest_gate(folder, images, *account)) as gate:
        broker = stage.broker()
        asked = stage.agent(password_answer(*account), broker).asked
        push_and_pull(broker, image, f"registry.localhost:{gate.port}", tmp_path)
        assert len(asked) == 1 and asked[0]["protectionSpace"]["authenticationMethod"] == "httpDigest", asked
        stored = [line.split()[1:3] for line in gate.wait_for_log(" PUT ").splitlines() if line.startswith("201 ")]
        assert [account[0], "PUT"] in stored
