"""contrib/mutants names guards by their text: one that was rewritten is not checked any more until the table says so too."""

import subprocess
import sys
from pathlib import Path


def test_every_text_is_where_the_table_says():
    mutate = Path(__file__).parents[2] / "contrib" / "mutate"
    result = subprocess.run([sys.executable, mutate, "--check"], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
