"""Nobody can fill the disk with the broker's own log."""
import json
import os
import socket
import subprocess

from rig.bodies import eventually
from rig.broker import program

WARNING = "another process has sent data on it"


def test_equal_lines_of_the_log_are_limited(stage):
    broker = stage.broker()
    for _ in range(100):
        with socket.socket(socket.AF_UNIX) as plain:
            plain.connect(broker.socket)
            plain.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode() + b"\n")
            plain.recv(1 << 16)
            subprocess.run(["/bin/sh", "-c", "echo >&3"], pass_fds=[], preexec_fn=lambda: os.dup2(plain.fileno(), 3), close_fds=False, check=False)
            assert plain.recv(1 << 16) == b""
    eventually(lambda: broker.log.count(WARNING) >= 20, lambda: broker.log)
    assert broker.log.count(WARNING) <= 30


def test_a_configuration_of_unknown_keys_writes_few_lines(stage, tmp_path):
    file = tmp_path / "config.toml"
    file.write_text("".join(f"k{number}=1\n" for number in range(90_000)))
    done = subprocess.run([program("watchwordd"), "--config", file, "--check-config"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and len(done.stderr) < 20_000
    assert done.stderr.splitlines()[-1] == "and 89950 more problems"
    broker = stage.configured("")
    before = len(broker.log)
    file.rename(broker.options[1])
    broker.process.send_signal(1)
    eventually(lambda: "configuration not changed" in broker.log, lambda: broker.log, 60)
    assert len(broker.log) - before < 10_000
