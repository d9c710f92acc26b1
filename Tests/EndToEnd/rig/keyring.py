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

from .bodies import eventually
from .desktop import BUS
from .servers import written
from .waiting import is_ready, output

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
        written(self.folder, {"bus.conf": BUS.format(folder=self.folder)})
        self._launch("dbus-daemon", f"--config-file={self.folder}/bus.conf", "--nofork", "--print-address")
        return self

    def end(self):
        while self.processes:
            self._end_last()

    def _end_last(self):
        process = self.processes.pop()
        process.kill()
        process.wait(30)
        process.stdout.close()

    def end_service(self):
        """Ends the program that was started last. The bus may notice the end of the connection after the exit of the process."""
        self._end_last()
        while "true" in self.run(
                "gdbus", "call", "--session", "--dest", "org.freedesktop.DBus", "--object-path", "/org/freedesktop/DBus",
                "--method", "org.freedesktop.DBus.NameHasOwner", SERVICE):
            pass

    # Services

    def start_gnome(self):
        """Starts gnome-keyring with an unlocked and empty default collection."""
        self._start(["gnome-keyring-daemon", "--foreground", "--unlock", "--components=secrets"], b"rig")
        return self.wait_for(SERVICE)

    def wait_for(self, name):
        """Waits until the bus has this name: a service does not report that it is ready."""
        self.run("gdbus", "wait", "--session", "--timeout", "20", name)
        return self

    def restart_gnome(self):
        self.end_service()
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
        process = self._start(command)
        assert is_ready(process.stdout, 20) and process.stdout.readline(), f"{command[0]} did not start"

    # The programs of others

    def run(self, *command, text="", status=0, **environment):
        done = subprocess.run(
            command, env={**self.environment, **environment}, input=text, capture_output=True, text=True, timeout=30)
        assert done.returncode == status, (command, done.returncode, done.stderr)
        return done.stdout

    def lookup(self, **attributes):
        """Returns what secret-tool finds with exactly these attributes, or `None`."""
        done = subprocess.run(
            ["secret-tool", "lookup", *words_of(attributes)], env=self.environment, capture_output=True, text=True, timeout=30)
        assert not done.stderr, done.stderr
        return done.stdout if done.returncode == 0 else None

    def put(self, password, **attributes):
        """Stores an item with secret-tool. With `schema`, the item is like those of GNOME's programs."""
        named = {"xdg:schema": attributes.pop("schema")} if "schema" in attributes else {}
        self.run("secret-tool", "store", "--label=Put", *words_of({**named, **attributes}), text=password)

    @contextlib.contextmanager
    def collection(self):
        """The default collection, in secretstorage, whose `get_default_collection` would create one."""
        with contextlib.closing(open_dbus_connection(self.address)) as connection:
            yield secretstorage.get_collection_by_alias(connection, "default")

    def items(self):
        """Returns the attributes of every item (without the schema that gnome-keyring adds) and its secret, read with
        secretstorage."""
        with self.collection() as found:
            return [(dict(item.get_attributes().items() - {NO_SCHEMA}), item.get_secret().decode()) for item in found.get_all_items()]

    def delete(self):
        with self.collection() as found:
            for item in list(found.get_all_items()):
                item.delete()


def words_of(attributes):
    return [word for pair in attributes.items() for word in pair]


def build_git_helper(folder):
    """Builds git's own helper for libsecret, from the sources in its package."""
    source = pathlib.Path(folder) / "libsecret"
    shutil.copytree("/usr/share/doc/git/contrib/credential/libsecret", source)
    output("make", "-s", "-C", str(source))
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


# Qt's platform without a display.
WITHOUT_DISPLAY = {"QT_QPA_PLATFORM": "offscreen"}
# The group that KeePassXC shows to other programs is in the database, the permission to do so in the settings.
DATABASE = """<?xml version="1.0" encoding="UTF-8"?>
<KeePassFile><Meta><DatabaseName>Rig</DatabaseName><RecycleBinEnabled>False</RecycleBinEnabled><CustomData><Item>
<Key>FDO_SECRETS_EXPOSED_GROUP</Key><Value>{00112233-4455-6677-8899-aabbccddeeff}</Value></Item></CustomData></Meta>
<Root><Group><UUID>ABEiM0RVZneImaq7zN3u/w==</UUID><Name>Logins</Name></Group></Root></KeePassFile>
"""
KEEPASSXC_SETTINGS = """[General]
ConfigVersion=2
SingleInstance=false
UpdateCheckMessageShown=true
[GUI]
CheckForUpdates=false
[FdoSecrets]
Enabled=true
ShowNotification=false
ConfirmDeleteItem=false
ConfirmAccessItem=false
"""
KWALLET_SETTINGS = """[Wallet]
First Use=false
Default Wallet=rig
Prompt on Open=false
[org.freedesktop.secrets]
apiEnabled=true
"""
KWALLET = ("gdbus", "call", "--session", "--dest", "org.kde.kwalletd5", "--object-path", "/modules/kwalletd5", "--method")
# The length of the hash that the desktop's login passes to KWallet.
KWALLET_HASH = json.dumps([*range(56)])


def start_keepassxc(keyring):
    """Starts KeePassXC with a database, which is created at the first start."""
    database = keyring.folder / "rig.kdbx"
    keyring.environment.update(WITHOUT_DISPLAY)
    if not database.exists():
        written(keyring.folder, {".config/keepassxc/keepassxc.ini": KEEPASSXC_SETTINGS, "empty.xml": DATABASE})
        keyring.run("keepassxc-cli", "import", "--set-password", f"{keyring.folder}/empty.xml", str(database), text="rig\nrig\n")
    keyring._start(["keepassxc", "--pw-stdin", str(database)], b"rig\n")
    return ready(keyring)


def start_kwallet(keyring, is_unlocked=True):
    """Starts KWallet, and opens its wallet as the desktop's login does; the first start creates it. The wallet is open, but its
    collection is locked until a program unlocks it, as secret-tool does, which needs no dialogue then."""
    keyring.environment.update(WITHOUT_DISPLAY)
    if not (keyring.folder / ".config").exists():
        written(keyring.folder, {".config/kwalletrc": KWALLET_SETTINGS})
        open_wallet(keyring)
        # KWallet has no collection for a wallet that it has created since it started.
        keyring.end_service()
    open_wallet(keyring)
    eventually(lambda: is_locked(keyring) is not None, "KWallet has no default collection")
    if is_unlocked:
        with keyring.collection() as found:
            found.unlock()
    return ready(keyring) if is_unlocked else keyring


def open_wallet(keyring):
    keyring._start(["kwalletd5"])
    keyring.wait_for("org.kde.kwalletd5")
    keyring.run(*KWALLET, "org.kde.KWallet.pamOpen", "rig", KWALLET_HASH, "0")
    eventually(lambda: "true" in keyring.run(*KWALLET, "org.kde.KWallet.isOpen", "rig"), "the wallet is not open")


KEYRINGS = {"gnome-keyring": Keyring.start_gnome, "keepassxc": start_keepassxc, "kwallet": start_kwallet}


def ready(keyring):
    """Waits until the service has an unlocked default collection."""
    keyring.wait_for(SERVICE)
    eventually(lambda: is_locked(keyring) is False, "the keyring has no unlocked default collection")
    return keyring


def is_locked(keyring):
    """Whether the default collection is locked; `None` without one."""
    try:
        with keyring.collection() as found:
            return found.is_locked()
    except secretstorage.exceptions.SecretStorageException:
        return None


def lock(keyring, start):
    """Locks the default collection. KeePassXC asks before it does, so it is started without the password of its database."""
    if start is start_keepassxc:
        keyring.end_service()
        keyring._start(["keepassxc", f"{keyring.folder}/rig.kdbx"])
        keyring.wait_for(SERVICE)
    else:
        with keyring.collection() as found:
            found.lock()
    eventually(lambda: is_locked(keyring) is not False, "the keyring is not locked")


def wait_until_saved(keyring, start, text):
    """Waits until the keyring has written its changes to its file, of which `text` is the last."""
    if start is start_keepassxc:
        export = ("keepassxc-cli", "export", f"{keyring.folder}/rig.kdbx")
        eventually(lambda: text in keyring.run(*export, text="rig\n"), "KeePassXC does not write its database")
    elif start is start_kwallet:
        keyring.run(*KWALLET, "org.kde.KWallet.closeAllWallets")
        eventually(lambda: "false" in keyring.run(*KWALLET, "org.kde.KWallet.isOpen", "rig"), "KWallet does not close its wallet")
