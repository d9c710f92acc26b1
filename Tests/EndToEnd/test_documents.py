"""The documents: their links and anchors exist, and their example configurations are valid."""
import os
import re
import subprocess

import pytest

from rig.broker import ROOT, program

LISTED = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True).stdout.split()
# A source archive has no repository.
DOCUMENTS = [ROOT / name for name in LISTED] or [path for path in ROOT.rglob("*.md") if ".build" not in str(path)]


def anchors(text):
    """Returns the anchors that GitHub derives from the headings."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(document):
    text = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?:|mailto:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (document.parent / name).resolve() if name else document
        assert path.exists(), f"{document.relative_to(ROOT)} links {target}, which does not exist"
        if anchor and path.suffix == ".md":
            assert anchor in anchors(path.read_text()), f"{document.relative_to(ROOT)} links {target}, but there is no such heading"


EXAMPLES = [(document, block) for document in DOCUMENTS for block in re.findall(r"```toml\n(.*?)```", document.read_text(), re.DOTALL)]


@pytest.mark.parametrize("document, block", EXAMPLES, ids=[f"{path.name}-{index}" for index, (path, _) in enumerate(EXAMPLES)])
def test_every_configuration_is_valid(document, block, tmp_path):
    file = tmp_path / "config.toml"
    file.write_text(block)
    file.chmod(0o600)
    for name in re.findall(r'^client-secret-file = "~/(.*)"$', block, re.MULTILINE):
        secret = tmp_path / name
        secret.parent.mkdir(parents=True, exist_ok=True)
        secret.write_text("secret\n")
        secret.chmod(0o600)
    done = subprocess.run([program("watchwordd"), "--check-config", f"--config={file}"], env={**os.environ, "HOME": str(tmp_path)},
                          capture_output=True, text=True)
    assert done.returncode == 0, f"{document.relative_to(ROOT)}:\n{block}\n{done.stdout}{done.stderr}"


def test_there_are_examples():
    assert len(DOCUMENTS) > 10 and len(EXAMPLES) > 1
