"""The comparison of Watchword with px and cntlm: each cell of the table in the document is what the program really does."""
import os
import re

import pytest

from rig.broker import ROOT
from rig.local_proxies import PROGRAMS
from rig.proxy_probes import PROBES, Bench

pytestmark = pytest.mark.tier3("compares other programs")

DOCUMENT = ROOT / "contrib/docs/front-comparison.md"


def table():
    """Returns the cells by (row, program), and the names of the columns."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\|.*\|$", DOCUMENT.read_text(), re.MULTILINE)]
    heading, _, *rows = rows
    return {row[0]: dict(zip(PROGRAMS, row[1:], strict=True)) for row in rows}, heading[1:]


CELLS, HEADING = table()


def test_the_table_has_a_row_for_each_probe():
    assert list(CELLS) == list(PROBES)


def test_the_versions_are_those_installed():
    assert HEADING == [" ".join([name, kind.version()]).strip() for name, kind in PROGRAMS.items()]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("row", PROBES)
def test_a_cell(row, program, stage, request):
    if row == "other users of the machine" and os.geteuid() != 0:
        pytest.skip("only root can become another user")
    def fixture(name):
        return request if name == "request" else request.getfixturevalue(name)

    found, written = PROBES[row](Bench(stage, fixture, program)), CELLS[row][program]
    if row == "memory when idle":
        found, written = float(found.split()[0]), float(written.split()[0])
        assert written / 1.5 < found < written * 1.5, found
    else:
        assert found == written
