"""The manual pages: generated from the programs, complete, without warnings, and found by name."""
import json
import os
import re
import subprocess

import pytest

from rig.broker import ROOT, program

FOLDER = ROOT / "contrib" / "man"
PAGES = sorted(FOLDER.glob("*.[1-8]"))
GENERATED = [page for page in PAGES if page.suffix == ".1"]
PROGRAMS = ["git-credential-watchword", "watchword", "watchword-agent", "watchword-askpass", "watchwordd"]
SECTIONS = ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "ENVIRONMENT", "FILES", "EXIT STATUS", "EXAMPLES", "SEE ALSO"]
UTF8 = {**os.environ, "LC_ALL": "C.UTF-8"}


def generate(folder, binaries=None):
    binaries = binaries or os.path.dirname(program("watchword"))
    return subprocess.run([FOLDER / "generate", "--binaries", binaries, "--output", folder], capture_output=True, text=True)


def section(page, name):
    return page.read_text().partition(f"\n.Sh {name}\n")[2].partition("\n.Sh ")[0]


def test_the_committed_pages_are_the_generated_ones(tmp_path):
    done = generate(tmp_path)
    assert done.returncode == 0, done.stderr
    made = {page.name: page.read_text() for page in tmp_path.iterdir()}
    assert made == {page.name: page.read_text() for page in GENERATED}, "run contrib/man/generate"


def changed_programs(folder, change):
    """Programs that print the options of the real ones; `change` is applied to the options of `watchword status`."""
    for name in ["watchword", "watchwordd"]:
        options = json.loads(subprocess.run([program(name), "--experimental-dump-help"], capture_output=True, check=True).stdout)
        for command in options["command"].get("subcommands", []):
            if command["commandName"] == "status":
                change(command["arguments"])
        (folder / f"{name}.json").write_text(json.dumps(options))
        (folder / name).write_text(f"#!/bin/sh\ncat '{folder}/{name}.json'\n")
        (folder / name).chmod(0o755)
    return folder


def test_a_new_option_must_be_in_a_page(tmp_path):
    done = generate(tmp_path, changed_programs(tmp_path, lambda options: options.append(
        {**options[0], "names": [{"kind": "long", "name": "novel"}], "abstract": "Show novel items."})))
    assert done.returncode == 1 and "no page lists --novel of 'status'" in done.stderr, done


def test_an_option_with_a_meaning_of_its_own_must_be_in_a_page(tmp_path):
    done = generate(tmp_path, changed_programs(tmp_path, lambda options: options[0].update(abstract="Another meaning.")))
    assert done.returncode == 1 and "no page lists --json of 'status'" in done.stderr, done


def test_every_program_has_a_page_under_its_own_name():
    names = {page.name for page in PAGES}
    assert {f"{name}.1" for name in PROGRAMS} <= names and "watchword-config.5" in names


@pytest.mark.parametrize("page", GENERATED, ids=lambda page: page.name)
def test_a_page_has_all_sections_in_the_usual_order(page):
    headings = [heading.strip('"') for heading in re.findall(r"^\.Sh (.*)$", page.read_text(), re.MULTILINE)]
    assert [heading for heading in headings if heading in SECTIONS] == SECTIONS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_has_no_warnings(page):
    # References are checked below, because the pages need not be installed.
    done = subprocess.run(["mandoc", "-T", "lint", page], capture_output=True, text=True)
    found = [line for line in (done.stdout + done.stderr).splitlines() if "referenced manual not found" not in line and "mandoc.db" not in line]
    assert found == []
    done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", page], capture_output=True, text=True, env=UTF8)
    assert done.returncode == 0 and done.stderr == "", done.stderr


def test_every_page_is_found_by_name(tmp_path):
    for page in PAGES:
        folder = tmp_path / f"man{page.suffix[1:]}"
        folder.mkdir(exist_ok=True)
        (folder / page.name).symlink_to(page)
        assert subprocess.run(["lexgrog", page], stdout=subprocess.DEVNULL).returncode == 0, page
    subprocess.run(["mandb", "-q", "-c", tmp_path], check=True)
    for page in PAGES:
        shown = subprocess.run(["whatis", "-M", tmp_path, "-s", page.suffix[1:], page.stem], capture_output=True, text=True, env=UTF8)
        assert shown.stdout.startswith(f"{page.stem} ({page.suffix[1:]})"), (page, shown)
    shown = subprocess.run(["man", "-M", tmp_path, "-k", "watchword"], capture_output=True, text=True, env=UTF8).stdout
    assert len(shown.splitlines()) == len(PAGES), shown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_pages_that_a_page_refers_to_exist(page):
    found = re.findall(r"^\.(?:Xr|Pq Xr) (\S+) (\d)|^\.BR (\S+) \((\d)\)", page.read_text(), re.MULTILINE)
    for name, number in {((one or other).replace("\\", ""), number or last) for one, number, other, last in found}:
        if (FOLDER / f"{name}.{number}").exists():
            continue
        assert not name.startswith("watchword"), f"{name}({number})"
        owner = subprocess.run(["dpkg", "-S", f"*/man{number}/{name}.{number}.gz"], capture_output=True, text=True)
        assert owner.returncode == 0, f"{name}({number}): no installed package has it"
    assert found


def codes(name):
    return {int(code) for code in re.findall(r"^\.It (\d+)$", section(FOLDER / name, "EXIT STATUS"), re.MULTILINE)}


def constants(path, pattern):
    """The numbers that match the pattern in a source file."""
    return {int(number) for found in re.findall(pattern, (ROOT / path).read_text(), re.MULTILINE) for number in found.split(",") if number}


def test_the_exit_codes_are_those_of_the_source():
    fetch = constants("Sources/watchword/Commands/ExitStatus.swift", r"(?:Int32 = |^ +case .*: )(\d+)(?: +//.*)?$")
    assert codes("watchword-fetch.1") == fetch | {0}
    daemon = constants("Sources/watchwordd/Daemon.swift", r"ExitCode\((\d+)\)")
    assert codes("watchwordd.1") == daemon | {0, 1, 64}
    assert codes("watchword-agent.1") == constants("contrib/agent/watchword_agent/main.py", r"^ENDED, FAILED, ANOTHER_RUNS, USAGE = (.*)$")
    assert codes("watchword.1") == {0, 1, 2, 3, 64}
    assert codes("watchword-askpass.1") == codes("git-credential-watchword.1") == {0, 1, 64}
