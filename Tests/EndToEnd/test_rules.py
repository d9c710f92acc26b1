"""The rules in Protocol/ have tests, and tests and comments refer only to existing rules."""

import subprocess
import sys
from pathlib import Path


def test_every_rule_has_tests_and_every_reference_a_rule():
    rules = Path(__file__).parents[2] / "contrib" / "rules"
    result = subprocess.run([sys.executable, rules, "--check"], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
