"""Keyrings for tests: a private message bus, with gnome-keyring or the rig's own service, and the programs of others.

Only `secret_service.py` is our own: items are written with secret-tool and read with secretstorage.
"""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess

import secretstorage
from jeepney.io.blocking import open_dbus_connection

from .desktop import BUS
from .waiting import is_ready

SERVICE = "org.freedesktop.secrets"
SCHEMA = "org.gnome.keyring.NetworkPassword"
# The schema that gnome-keyring reports for an item without one, after it has read the item from its file again.
NO_SCHEMA = ("xdg:schema", "org.freedesktop.Secret.Generic")


class Keyring:
    """A bus with a home directory of its own, which starts no services. Started processes are ended by their process ids."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(mode=0o700)
        self.address = f"unix:path={self.folder}/bus"
        self.for_broker = {"DBUS_SESSION_BUS_ADDRESS": self.address}
        self.environment = {
            "HOME": str(self.folder), "XDG_RUNTIME_DIR": str(self.folder), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1", **self.for_broker}
        self.processes, self.calls_path = [], self.folder / "calls"

    def start_bus(self):
        configuration = self.folder / "bus.conf"
        configuration.write_text(BUS.format(folder=self.folder))
        self._launch("dbus-daemon", f"--config-file={configuration}", "--nofork", "--print-address")
        return self

    def end(self):
        for process in reversed(self.processes):
            process.kill()
            process.wait(30)
            process.stdout.close()

    # Services

    def start_gnome(self):
        """Starts gnome-keyring with an unlocked and empty default collection."""
        self._start(["gnome-keyring-daemon", "--foreground", "--unlock", "--components=secrets"], b"rig")
        # gnome-keyring does not report that it is ready; the bus reports when it owns its name.
        self.run("gdbus", "wait", "--session", "--timeout", "10", SERVICE)
        return self

    def restart_gnome(self):
        """Ends gnome-keyring, and starts it again with its files."""
        process = self.processes.pop()
        process.kill()
        process.wait(30)
        process.stdout.close()
        # The name is released when the bus notices the end of the connection, possibly after the exit of the process.
        while "true" in self.run(
                "gdbus", "call", "--session", "--dest", "org.freedesktop.DBus", "--object-path", "/org/freedesktop/DBus",
                "--method", "org.freedesktop.DBus.NameHasOwner", SERVICE):
            pass
        return self.start_gnome()

    def start_rig(self, misbehaviour=None, *items):
        """Starts the service of `secret_service.py` with `items`, each with attributes and a secret."""
        options = ["--log", str(self.calls_path)] + (["--misbehave", misbehaviour] if misbehaviour else [])
        for attributes, secret in items:
            options += ["--item", json.dumps({"label": "Rig", "attributes": attributes, "secret": secret})]
        self._launch("/usr/bin/python3", str(pathlib.Path(__file__).with_name("secret_service.py")), *options)
        return self

    @property
    def calls(self):
        """Returns the calls that the rig's service received, as method names."""
        lines = self.calls_path.read_text().splitlines() if self.calls_path.exists() else []
        return [line.split()[0].rsplit(".", 1)[1] for line in lines]

    def _start(self, command, text=b""):
        process = subprocess.Popen(
            command, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        process.stdin.write(text)
        process.stdin.close()
        self.processes.append(process)
        return process

    def _launch(self, *command):
        """Starts a program and waits for its first line."""
        process = self._start(list(command))
        ready = is_ready(process.stdout, 20)
        assert ready and process.stdout.readline(), f"{command[0]} did not start"

    # The programs of others

    def run(self, *command, text="", status=0, **environment):
        done = subprocess.run(
            command, env={**self.environment, **environment}, input=text, capture_output=True, text=True, timeout=30)
        assert done.returncode == status, (command, done.returncode, done.stderr)
        return done.stdout

    def lookup(self, **attributes):
        """Returns what secret-tool finds with exactly these attributes, or `None`."""
        words = [word for pair in attributes.items() for word in pair]
        done = subprocess.run(
            ["secret-tool", "lookup", *words], env=self.environment, capture_output=True, text=True, timeout=30)
        assert not done.stderr, done.stderr
        return done.stdout if done.returncode == 0 else None

    def put(self, password, **attributes):
        """Stores an item with secret-tool. With `schema`, the item is like those of GNOME's programs."""
        named = {"xdg:schema": attributes.pop("schema")} if "schema" in attributes else {}
        words = [word for pair in {**named, **attributes}.items() for word in pair]
        self.run("secret-tool", "store", "--label=Put", *words, text=password)

    def items(self):
        """Returns the attributes of every item (without the schema that gnome-keyring adds) and its secret, read with
        secretstorage."""
        with contextlib.closing(open_dbus_connection(self.address)) as connection:
            collection = secretstorage.get_default_collection(connection)
            items = list(collection.get_all_items())
            return [(dict(item.get_attributes().items() - {NO_SCHEMA}), item.get_secret().decode()) for item in items]

    def delete(self):
        """Empties the default collection."""
        with contextlib.closing(open_dbus_connection(self.address)) as connection:
            for item in secretstorage.get_default_collection(connection).get_all_items():
                item.delete()


def build_git_helper(folder):
    """Builds git's own helper for libsecret, from the sources in its package."""
    source = pathlib.Path(folder) / "libsecret"
    shutil.copytree("/usr/share/doc/git/contrib/credential/libsecret", source)
    subprocess.run(["make", "-s", "-C", str(source)], check=True, capture_output=True, timeout=120)
    return str(source / "git-credential-libsecret")


def description(server, user="bob", **more):
    """Returns the attributes with which, according to the specification, a credential for `server` is stored."""
    return {"server": "127.0.0.1", "protocol": "http", "port": str(server.port), "user": user, **more}


def settle(client):
    """Returns when the broker has written all pending changes to the keyring.

    The broker makes calls of the keyring in sequence, and storing a credential takes two calls. After the first reply the
    second call is queued, and before the second reply it is complete.
    """
    return [client.call("keyring/status")["result"] for _ in range(2)][1]


def heard(client, method):
    """Returns the parameters of the notifications `method` received so far, in order; each is returned once."""
    found = []
    while not client.notifications.empty():
        message = client.notifications.get_nowait()
        if message["method"] == method:
            found.append(message["params"])
    return found
