"""A folder with what package managers, git and browsers fetch, and the commands of these programs."""
import hashlib
import json
import os
import pathlib
import tarfile

from .servers import Server, free_port, nginx_command, readable, written
from .waiting import output


class Depot:
    """The files below `folder`; `url` is where a server shows them."""

    def __init__(self, folder, url):
        self.folder, self.url = pathlib.Path(folder), url
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "page.txt").write_text("the page\n")
        self.python_package("fronted")
        self._git_repository()
        written(self.folder, {
            "deb/Packages": "Package: fronted\nVersion: 1.0\nArchitecture: all\nMaintainer: x <x@x.example>\nDescription: x\n"
            f"Filename: ./fronted.deb\nSize: 1\nSHA256: {hashlib.sha256(b'x').hexdigest()}\n"})
        self.npm_package("fronted")
        self.publish()

    def publish(self):
        readable(self.folder)

    def python_package(self, name):
        source, shown = self.folder / f"source-{name}", self.folder / "simple" / name
        setup = f"from setuptools import setup\nsetup(name='{name}', version='1.0', py_modules=['fronted'])\n"
        written(source, {"fronted.py": "", "setup.py": setup})
        output("/usr/bin/python3", "setup.py", "-q", "bdist_wheel", "-d", str(shown), cwd=source)
        wheel = next(shown.iterdir()).name
        (shown / "index.html").write_text(f'<a href="{wheel}">{wheel}</a>')

    def _git_repository(self):
        environment = {**os.environ, "HOME": str(self.folder), "GIT_CONFIG_NOSYSTEM": "1"}
        work, shown = self.folder / "work", self.folder / "project.git"
        for command in [
                ["git", "init", "-q", work],
                ["git", "-C", work, "-c", "user.name=x", "-c", "user.email=x@x.example", "commit", "-q", "--allow-empty", "-m", "first"],
                ["git", "clone", "-q", "--bare", work, shown], ["git", "-C", shown, "update-server-info"]]:
            output(*map(str, command), env=environment)

    def npm_package(self, name):
        (self.folder / "package.json").write_text(json.dumps({"name": name, "version": "1.0.0"}))
        archive = self.folder / f"{name}-1.0.0.tgz"
        with tarfile.open(archive, "w:gz") as tar:
            tar.add(self.folder / "package.json", "package/package.json")
        version = {"name": name, "version": "1.0.0",
                   "dist": {"tarball": f"{self.url}/{archive.name}", "shasum": hashlib.sha1(archive.read_bytes()).hexdigest()}}
        (self.folder / name).write_text(
            json.dumps({"name": name, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}))

    def programs(self, folder):
        """Returns for each program a shell command that fetches something into `folder`, and the file that it leaves there."""
        folder, url = pathlib.Path(folder), self.url
        apt = folder / "apt"
        for name in ["state/lists/partial", "cache/archives/partial"]:
            (apt / name).mkdir(parents=True)
        (apt / "sources.list").write_text(f"deb [trusted=yes] {url}/deb ./\n")
        host = url.split("/")[2].split(":")[0]
        java = folder / "Get.java"
        java.write_text(
            "import java.net.*; import java.nio.file.*; class Get { public static void main(String[] a) throws Exception {"
            " try (var in = new URL(a[0]).openStream()) { Files.copy(in, Path.of(a[1])); } } }")
        return {
            "curl": (f"curl -sS -f -o {folder}/curl {url}/page.txt", "curl"),
            "wget": (f"wget -q -O {folder}/wget {url}/page.txt", "wget"),
            "git": (f"git clone -q {url}/project.git {folder}/git", "git/.git/HEAD"),
            "pip": (f"/usr/bin/python3 -m pip download -q --no-cache-dir --retries 0 --disable-pip-version-check --index-url {url}/simple"
                    f" --trusted-host {host} -d {folder}/pip fronted", "pip"),
            "apt": (f"apt-get -q -o Dir::Etc::sourcelist={apt}/sources.list -o Dir::Etc::sourceparts=- -o Dir::State={apt}/state"
                    f" -o Dir::Cache={apt}/cache -o Acquire::Retries=0 -o APT::Sandbox::User=root update"
                    f" && ls {apt}/state/lists/*_Packages*", "apt"),
            "npm": (f"cd {folder} && npm pack --registry {url}/ --fetch-retries 0 --no-audit --no-fund --no-update-notifier"
                    f" --cache {folder}/npm-cache fronted", "fronted-1.0.0.tgz"),
            "java": (f"java -Dhttp.nonProxyHosts= {java} {url}/page.txt {folder}/java", "java"),
        }


def nginx_depot(folder, host):
    """nginx with a public depot; `host` is the name by which proxies reach it."""
    folder = pathlib.Path(folder)
    port = free_port()
    depot = Depot(folder / "www", f"http://{host}:{port}")
    server = Server(nginx_command(
        folder, "$status $request_uri",
        "default_type application/octet-stream; types { text/html html; application/json json; }\n"
        f"server {{ listen 127.0.0.1:{port}; root {folder}/www; index index.html; }}"), port, folder / "error.log")
    server.depot = depot
    return server
