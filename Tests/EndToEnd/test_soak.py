"""Mixed load for half a minute; `contrib/soak/run` alone does it for an hour."""
import subprocess

from rig.broker import ROOT

SECONDS = 25


def test_mixed_load():
    done = subprocess.run([ROOT / "contrib" / "soak" / "run", str(SECONDS)], capture_output=True, text=True, timeout=300)
    print(done.stdout, done.stderr)
    assert done.returncode == 0, "run it again with contrib/soak/run --seed and the number above"
    assert "WRONG" not in done.stdout and "log-ins heard" in done.stdout
