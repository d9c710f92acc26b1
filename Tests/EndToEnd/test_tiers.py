"""`contrib/test`: its summary of the tiers, with programs that imitate the runners."""
import os
import re
import shutil
import subprocess
import sys

import pytest

from rig.broker import ROOT


@pytest.fixture
def run(tmp_path):
    """Returns a function that runs `contrib/test` in another folder; `swift test` executes this shell text."""
    (tmp_path / "contrib").mkdir()
    (tmp_path / "Tests" / "EndToEnd").mkdir(parents=True)
    shutil.copy(ROOT / "contrib/test", tmp_path / "contrib/test")
    for name in ["contrib/install-dependencies", "contrib/words", "swift"]:
        (tmp_path / name).touch(mode=0o755)
    (tmp_path / "Tests" / "RealTests.swift").write_text("@Suite(.realServers) struct RealTests {")
    shutil.copy(ROOT / "Tests/EndToEnd/conftest.py", tmp_path / "Tests/EndToEnd/conftest.py")
    (tmp_path / "Tests/EndToEnd/rig").symlink_to(ROOT / "Tests/EndToEnd/rig")
    # The scripts are run by the shell, because they have no interpreter line.
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": os.environ["HOME"], "PYTHONPATH": ":".join(sys.path)}

    def run(swift_test, end_to_end):
        (tmp_path / "swift").write_text(f'#!/bin/sh\n[ "$1" != test ] || {{ {swift_test}; }}\n')
        (tmp_path / "Tests/EndToEnd/test_one.py").write_text(f"def test_one(): assert {end_to_end}\n")
        done = subprocess.run([tmp_path / "contrib/test"], env=environment, capture_output=True, text=True, timeout=120)
        return done.returncode, [re.sub(r"\d+ s of", "N s of", line) for line in done.stdout.splitlines()]

    return run


TIMES = ["tier 1: N s of 60 s", "tier 2, unit tests with servers: N s of 60 s"]
NOT_RUN = "; the next tiers were not run"


def test_the_summary_lists_all_tiers(run):
    code, lines = run("true", end_to_end=True)
    assert code == 0 and lines[-4:-1] == [*TIMES, "tier 2, end-to-end tests: N s of 600 s"], lines
    assert lines[-1].startswith("1 passed"), lines
    code, lines = run("true", end_to_end=False)
    assert code == 1 and [*TIMES, "tier 2, end-to-end tests: N s of 600 s, failed"] == [line for line in lines if " s of " in line and "took" not in line]


@pytest.mark.parametrize("swift_test, end", [
    ("exit 3", ["tier 1: failed after N s of 60 s" + NOT_RUN]),
    ('[ -z "$WATCHWORD_TEST_SERVERS" ] || exit 3', [TIMES[0], "tier 2, unit tests with servers: failed after N s of 60 s" + NOT_RUN]),
])
def test_the_summary_names_the_tier_that_failed(run, swift_test, end):
    code, lines = run(swift_test, end_to_end=True)
    assert code == 3 and lines[-len(end):] == end and not any("took" in line for line in lines[-len(end):]), lines
