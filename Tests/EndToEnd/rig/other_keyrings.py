"""The keyrings of other desktops: KeePassXC and KWallet, without a display, unlocked and empty. Each starts on the bus of a `Keyring`.
"""
import json

import secretstorage

from .bodies import eventually
from .keyring import SERVICE, Keyring
from .servers import written

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
