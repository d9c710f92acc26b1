"""Each guard in contrib/mutants has one marker in the code, and each marker an entry."""

import subprocess
import sys
from pathlib import Path


def test_every_guard_has_its_marker():
    mutate = Path(__file__).parents[2] / "contrib" / "mutate"
    result = subprocess.run([sys.executable, mutate, "--check"], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
