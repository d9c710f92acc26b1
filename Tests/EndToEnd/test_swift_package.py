"""The Swift package, as a dependency of other packages."""
import os
import shutil
import subprocess

import pytest

from rig.broker import ROOT

MANIFEST = """// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "program",
    dependencies: [.package(url: "file://{url}", from: "1.0.0")],
    targets: [.executableTarget(name: "program", dependencies: [.product(name: "WatchwordClient", package: "watchword")])])
"""
PROGRAM = """import WatchwordClient

do { _ = try Watchword(socket: "/nonexistent/broker.sock") } catch { print(error) }
"""


def run(*command, cwd):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.tier3("builds the client library")
def test_another_package_depends_on_the_client_by_its_version(tmp_path):
    """SwiftPM refuses such a dependency if the library or a target below it has unsafe flags."""
    source, program = tmp_path / "watchword", tmp_path / "program"
    for name in run("git", "ls-files", "-z", cwd=ROOT).split("\0")[:-1]:
        if os.path.lexists(ROOT / name):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, source / name, follow_symlinks=False)
    run("git", "init", "--quiet", cwd=source)
    run("git", "add", "--all", cwd=source)
    run("git", "-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "--quiet", "-m", "Release", cwd=source)
    run("git", "tag", "1.0.0", cwd=source)
    (program / "Sources/program").mkdir(parents=True)
    (program / "Package.swift").write_text(MANIFEST.replace("{url}", str(source)))
    (program / "Sources/program/main.swift").write_text(PROGRAM)
    assert "no broker listens at /nonexistent/broker.sock" in run("swift", "run", "--quiet", cwd=program)
