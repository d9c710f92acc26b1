"""The environment of all groups: the programs, the servers, and the measurement of rates."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

from rig.client import Client, password_answer

from .processes import Broker, Process
from .results import Sample
from .sites import USER

HERE = pathlib.Path(__file__).resolve().parents[1]
ROOT = HERE.parents[1]
sys.path.append(str(ROOT / "contrib"))
from installer import building  # noqa: E402

STATIC = ["-c", "release", "--static-swift-stdlib", "--disable-local-rpath"]
LIBRARIES = {"floor_broker": ["-lcurl", "-ljansson"], "libcurl_direct": ["-lcurl"]}
LIMIT = 900

# Connections, and requests outstanding on each of them.
SHAPES = {"sequential": (1, 1), "1x16": (1, 16), "16x1": (16, 1), "16x16": (16, 16)}
NAMES = {
    "sequential": "sequential", "1x16": "16 parallel on one connection", "16x1": "16 connections", "16x16": "256 parallel on 16 connections"}


def output(command, seconds=LIMIT, **more):
    """Returns the output of `command`; raises an error with its messages if it fails."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=seconds, **more)
    if done.returncode:
        raise RuntimeError(f"{pathlib.Path(str(command[0])).name} exited with {done.returncode}: {done.stdout[-500:]}{done.stderr[-2000:]}")
    return done.stdout


def rate_in(text):
    return float(re.search(r": (\d+)/s", text)[1])


class Bench:
    def __init__(self, folder, sites, binaries, pairs, is_quick):
        self.folder, self.sites, self.pairs, self.is_quick = folder, sites, pairs, is_quick
        self.programs, self.brokers = {}, 0
        self.binaries = pathlib.Path(binaries).resolve() if binaries else self.built_release()

    def built_release(self):
        for product in ["watchwordd", "watchword"]:
            subprocess.run(["swift", "build", *building.options("release"), "--product", product], cwd=ROOT, check=True, timeout=3600)
        return ROOT / ".build" / "release"

    def count(self, number, least=50):
        """Returns `number`, or a tenth of it with --quick."""
        return max(number // 10, least) if self.is_quick else number

    def program(self, name):
        """Compiles NAME.c beside the suite once; returns the program."""
        if name not in self.programs:
            self.programs[name] = self.folder / name
            output(["cc", "-O2", "-w", HERE / f"{name}.c", "-o", self.folder / name, *LIBRARIES.get(name, [])])
        return self.programs[name]

    def swift_program(self, name):
        """Builds the Swift package NAME beside the suite; returns its program. The build directory stays for the next run."""
        if name not in self.programs:
            scratch = ROOT / ".build" / "benchmarks" / name
            output(["swift", "build", *STATIC, "--package-path", HERE / name, "--scratch-path", scratch], seconds=3600)
            self.programs[name] = scratch / "release" / name
        return self.programs[name]

    def broker(self, *options, configuration="", prefix=()):
        self.brokers += 1
        return Broker(self.binaries, self.folder / f"broker-{self.brokers}", *options, configuration=configuration, prefix=prefix)

    def peer(self, program, prefix=()):
        """Starts a peer with the same line-framed JSON protocol as the broker."""
        path = self.folder / f"{program.name}.sock"
        process = Process([*prefix, program, path], path)
        try:
            process.wait_for_socket()
        except BaseException:
            process.__exit__()
            raise
        return process

    def log_in(self, broker, url, **more):
        """Stores the login for `url` in the broker's session cache; `more` are further members of the credential."""
        client = Client(broker.path, answer=lambda challenge: password_answer(USER, self.sites.password, **more))
        try:
            reply = client.fetch(url)
            if reply.get("result", {}).get("status") != 200:
                raise RuntimeError(f"cannot log in to {url}: {reply}")
        finally:
            client.close()

    def load(self, process, shape, count, params, method="fetch/run", answer="", first=0):
        """Runs the load generator once; the sample includes the CPU time of `process` per fetch."""
        connections, depth = SHAPES.get(shape, shape)
        before = process.cpu_seconds
        text = output([self.program("load"), process.path, connections, depth, count, params, method, answer, first])
        used = process.cpu_seconds - before
        return Sample(rate_in(text), float(re.search(r"p50 (\d+)", text)[1]), used / count * 1e6)

    def direct(self, url, count, parallel, login="", bits=0):
        """Runs in-process libcurl; `login` and the CURLAUTH_* bits are as in libcurl_direct.c."""
        authority = [self.sites.tls / "ca.pem"] if url.startswith("https") else []
        text = output([self.program("libcurl_direct"), url, count, parallel, login, bits, *authority])
        return Sample(rate_in(text), float(re.search(r"ends ([\d.]+)", text)[1]))

    @staticmethod
    def find(name):
        return shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")
