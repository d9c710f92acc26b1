"""The tables "Intended differences" of the documents: each cell of the column "Watchword" is what the broker does."""
import re

import pytest

from rig.broker import ROOT
from rig.intended_differences import PROBES

SECTIONS = [(ROOT / "contrib/docs" / name).read_text().partition("## Intended differences\n")[2].partition("\n## ")[0]
            for name in ["unchanged-programs.md", "authentication.md"]]
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\|.*\|$", "\n".join(SECTIONS), re.MULTILINE)]
CELLS = {case: cell for case, _, cell, _ in ROWS if case not in ["case", "---"]}


def test_the_tables_have_a_row_for_each_probe():
    assert list(CELLS) == list(PROBES)


@pytest.mark.parametrize("case", PROBES)
def test_a_cell(case, stage):
    assert PROBES[case](stage) == CELLS[case]
