"""A container registry that anyone may use, an image, and the commands of skopeo that push and pull it."""
import gzip
import hashlib
import json
import os
import pathlib
import shlex

from .field_servers import apache_with_digest, registry_command
from .servers import Server, find, free_port

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
