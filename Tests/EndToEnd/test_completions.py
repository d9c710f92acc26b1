"""The completions of bash, zsh and fish, tested in these shells."""
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

import pytest

from rig.broker import ROOT, program
from rig.terminal import Terminal

sys.path.insert(0, str(ROOT / "contrib"))
from installer import layout  # noqa: E402

BASH = r"""
source "$1"
line=$2
words=($line)
[[ $line == *" " ]] && words+=("")
COMP_WORDS=("${words[@]}") COMP_CWORD=$((${#words[@]} - 1)) COMP_LINE=$line COMP_POINT=${#line} COMPREPLY=()
# The function that Tab calls.
name=$(complete -p watchword | sed 's/.*-F //; s/ .*//')
"$name" watchword "${words[-1]}" "${words[-2]}"
printf '%s\n' "${COMPREPLY[@]}"
"""
ZSH = pathlib.Path(__file__).parent / "rig" / "completions.zsh"
NAMES = {"bash": "watchword.bash", "zsh": "_watchword", "fish": "watchword.fish"}


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("completions")
    for shell, name in NAMES.items():
        made = subprocess.run([program("watchword"), "--generate-completion-script", shell], capture_output=True, check=True)
        # The path of an installation.
        (folder / name).write_bytes(layout._terminating(made.stdout) if shell == "fish" else made.stdout)
    return folder


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "report.csv").touch()
    (tmp_path / "reports").mkdir()
    return tmp_path


def completed(shell, scripts, line, folder, **more):
    """Returns what the shell would insert, without descriptions that it only displays."""
    script = str(scripts / NAMES[shell])
    command = {
        "bash": ["bash", "--norc", "--noprofile", "-c", BASH, "bash", script, line],
        "zsh": ["zsh", "-f", str(ZSH), str(scripts), line],
        "fish": ["fish", "--no-config", "-c", f"source {shlex.quote(script)}; complete -C {shlex.quote(line)}"],
    }[shell]
    path = f"{os.path.dirname(program('watchword'))}:{os.environ['PATH']}"
    environment = {"PATH": path, "HOME": str(folder), "TERM": "dumb", "LC_ALL": "C.UTF-8", **more}
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, cwd=folder, env=environment)
    assert done.returncode == 0 and done.stderr == "", done
    return [text.split("\t")[0].rstrip("/") for text in done.stdout.splitlines() if text.strip()]


SHELLS = pytest.mark.parametrize("shell", NAMES)


@SHELLS
@pytest.mark.parametrize("line, wanted", [
    ("watchword cred", {"credentials"}), ("watchword fetch --ou", {"--output", "--output-dir"}),
    ("watchword fetch --post", {"--post301", "--post302", "--post303"}),
    ("watchword fetch -s --url-q", {"--url-query"}), ("watchword fetch http://h.example/ --fail-e", {"--fail-early"}),
    ("watchword fetch -L -o out --disallow", {"--disallow-username-in-url"}),
    ("watchword fetch --keep ", {"none", "session", "keyring"}), ("watchword fetch --proto-default ", {"http", "https"}),
    ("watchword fetch -o rep", {"report.csv", "reports"}), ("watchword fetch --stderr rep", {"report.csv", "reports"}),
    ("watchword fetch -T rep", {"report.csv", "reports"}), ("watchword fetch --output-dir rep", {"reports"}),
    ("watchword credentials st", {"store"}), ("watchword fetch --nosuch", set()),
])
def test_completions(shell, scripts, folder, line, wanted):
    assert set(completed(shell, scripts, line, folder)) == wanted


@pytest.mark.parametrize("line, wanted", [
    ("watchword fetch --prog", {"--progress-bar"}), ("watchword fetch -# --inc", {"--include"}), ("watchword fetch -Q --inc", {"--include"}),
    ("watchword fetch --unknown=3 --inc", {"--include"}), ("watchword fetch -H a:b https://h/ --inc", {"--include"}),
    ("watchword credentials --unknown st", set()), ("watchword --unknown ", set())])
def test_fish_completes_after_any_option(scripts, folder, line, wanted):
    assert wanted <= set(completed("fish", scripts, line, folder))


@SHELLS
def test_every_option_of_fetch_is_completed(shell, scripts, folder):
    told = subprocess.run([program("watchword"), "--experimental-dump-help"], capture_output=True, check=True).stdout
    fetch = next(command for command in json.loads(told)["command"]["subcommands"] if command["commandName"] == "fetch")
    options = {f"--{name['name']}" for argument in fetch["arguments"] for name in argument.get("names", []) if name["kind"] == "long"}
    assert len(options) > 70
    assert options <= set(completed(shell, scripts, "watchword fetch --", folder))


# For fish, whose `commandline` works only in a terminal, see the next test.
@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_ids_come_from_the_running_broker(shell, scripts, folder, stage):
    broker = stage.broker()
    client = stage.client()
    for user in ["alice", "bob"]:
        place = {"protocol": "http", "host": "127.0.0.1", "port": 8080}
        credential = {"type": "password", "user": user, "password": stage.secret(), "persistence": "forSession"}
        assert "result" in client.call("credential/store", {"protectionSpace": place, "credential": credential})
    ids = {one["id"] for one in client.call("credential/list")["result"]["credentials"]}
    assert len(ids) == 2
    for command in ["forget", "default"]:
        assert set(completed(shell, scripts, f"watchword credentials {command} ", folder, WATCHWORD_SOCKET=broker.socket)) == ids
        for typed in ["ses", r"session\:"]:
            assert set(completed(shell, scripts, f"watchword credentials {command} {typed}", folder, WATCHWORD_SOCKET=broker.socket)) == ids
    assert completed(shell, scripts, "watchword credentials forget ", folder, WATCHWORD_SOCKET=str(folder / "none")) == []


def test_the_id_of_the_running_broker_in_fish(scripts, folder, stage):
    broker, client = stage.broker(), stage.client()
    place = {"protocol": "http", "host": "127.0.0.1", "port": 8080}
    credential = {"type": "password", "user": "bob", "password": stage.secret(), "persistence": "forSession"}
    number = client.call("credential/store", {"protectionSpace": place, "credential": credential})["result"]["id"]
    path = f"{os.path.dirname(program('watchword'))}:{os.environ['PATH']}"
    environment = {"PATH": path, "HOME": str(folder), "TERM": "dumb", "LC_ALL": "C.UTF-8", "WATCHWORD_SOCKET": broker.socket}
    prompt = "function fish_prompt; echo \"ready> \"; end"
    fish = Terminal(
        shutil.which("fish"), "--no-config", "--interactive", "--init-command", f"{prompt}; source {scripts / NAMES['fish']}",
        environment=environment)
    fish.expect("ready> ")
    # Tab completes the only id, and the command is run with it.
    fish.type("watchword credentials forget \t")
    fish.expect(number)
    fish.type("\r")
    fish.expect("1 credential forgotten")
    assert client.call("credential/list")["result"]["credentials"] == []
    fish.type("exit\r")
    assert fish.end() == 0
