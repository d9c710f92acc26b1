"""Mixed load for half a minute; `contrib/soak/run` alone runs for an hour."""
import subprocess

import pytest

from rig.broker import ROOT

pytestmark = pytest.mark.tier3("half a minute of mixed load")

SECONDS = 25


def test_mixed_load():
    done = subprocess.run([ROOT / "contrib" / "soak" / "run", str(SECONDS)], capture_output=True, text=True, timeout=300)
    print(done.stdout, done.stderr)
    assert done.returncode == 0, "repeat it with contrib/soak/run --seed and the number above"
    assert "WRONG" not in done.stdout and "logins received" in done.stdout
