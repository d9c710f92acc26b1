"""Every window of the agent, as a message for programs/agent_windows.py, and their pictures in each variant: light and dark, at 100 and 200 %, in
each language."""
import contextlib
import dataclasses
import json
import pathlib

from PIL import Image, ImageDraw, ImageFont

from .broker import ROOT
from .desktop import Desktop

EXAMPLES = ROOT / "Protocol" / "examples"
KEEPING = {"persistenceAllowed": ["none", "forSession", "permanent"]}
ALLOWING = {"allows": ["once", "session", "always"]}
SPACE = {"protocol": "https", "host": "intranet.example", "port": 443, "realm": "Staff reports", "isProxy": False,
         "authenticationMethod": "httpBasic", "receivesCredentialSecurely": True}
PROPOSED = {"proposedCredential": {"user": "bob", "hasPassword": True, "source": "keyring"}, "previousFailureCount": 0}
KNOWN = {"knownUsers": [
    {"id": "keyring:/1", "user": "bob", "domain": "", "source": "keyring"},
    {"id": "session:2", "user": "alice", "domain": "CORP", "source": "session"},
    {"id": "session:3", "user": "reports", "domain": "", "source": "session"}]}
REFUSED = {"proposedCredential": {"user": "bob"}, "previousFailureCount": 1}
#: Path, subject, issuer and expiry.
CERTIFICATES = [("/home/bob/.pki/bob.pem", "CN=Bob", "CN=Example Users", "2030-03-01T12:00:00Z"),
                ("/home/bob/.ssl/lab.pem", "CN=Bob (laboratory)", "CN=Lab", "2020-11-30T12:00:00Z")]
FILES = ("/home/bob/.pki/bob.p12", "")
SAVED = {"keyring": {"state": "usable"}, "credentials": [
    {"id": "keyring:/1", "type": "password", "source": "keyring", "user": "bob", "protectionSpace": SPACE},
    {"id": "session:2", "type": "token", "source": "session", "protectionSpace": {**SPACE, "host": "api.example", "realm": None}},
    {"id": "session:3", "type": "trust", "source": "session", "persistence": "forSession",
     "protectionSpace": {**SPACE, "host": "printer.example", "port": 8443, "realm": None}}]}
USERS = {"keyring": {"state": "usable"}, "credentials": [
    {**SAVED["credentials"][0], "isDefault": True}, {**SAVED["credentials"][0], "id": "keyring:/4", "user": "alice"}]}
LOCKED = {"error": {"code": -32004, "message": "the broker is locked", "data": {"kind": "locked"}}}
GRANTS = [{"id": f"g{number}", "subject": {"id": subject}, "protectionSpace": SPACE, "user": "bob", "allow": allow}
          for number, (subject, allow) in enumerate([
              ("flatpak:org.example.Maps", "always"), ("exe:/usr/bin/evince", "session"), ("unit:backup.service", "no")])]
CONFIGURATION = "/home/bob/.config/watchword/config.toml"
EVENTS = [
    {"kind": kind, "time": f"2026-11-20T09:{minute}:00Z", "client": {"executable": f"/usr/bin/{program}", "pid": pid}, "user": "bob",
     "protectionSpace": SPACE, **more}
    for kind, minute, program, pid, more in (
        ("credentialUsed", 41, "python3.11", 4712, {"source": "keyring", "count": 3}),
        ("credentialStored", 38, "watchword", 4711, {"source": "keyring"}),
        ("credentialRefused", 37, "watchword", 4711, {"source": "agent"}),
        ("consentAnswered", 20, "evince", 4699, {"action": "session", "source": "session"}))]


def question(name, expand=False, changes=(), waiting=0, certificates=(), **params):
    """Returns the message for a question: an example of the protocol with other parameters."""
    example = json.loads((EXAMPLES / f"{name}.json").read_text())
    return {"id": 1, "method": example["method"], "params": {**example["params"], **params}, "expand": expand,
            "changes": dict(changes), "waiting": waiting, "certificates": certificates}


def browser_login(name, seconds=600, opened=False, expand=False, **login):
    """Returns the message for a login in the browser, which ends in this time; `opened` shows the window as after its button."""
    message = question(f"auth.challenge/{name}", expand=expand)
    message["params"]["login"].update(login)
    return {**message, "expires_in": seconds, "opened": opened}


def saved(page, found=SAVED, events=EVENTS, **more):
    return {"saved": found, "events": events, "page": page, **more}


LOGIN = {"protectionSpace": SPACE, "offers": [], "url": "https://intranet.example/report", **KEEPING}
WINDOWS = {
    "login": question("auth.challenge/credential", **LOGIN, waiting=2),
    "password": question("auth.challenge/credential", **LOGIN, **REFUSED),
    "login-saved": question("auth.challenge/credential", **LOGIN, **PROPOSED),
    "login-users": question("auth.challenge/credential", **LOGIN, **KNOWN),
    "login-ntlm": question("auth.challenge/ntlm", **KEEPING, expand=True),
    "login-proxy": question("auth.challenge/proxy", **KEEPING, changes={"is_repeated": True}),
    "login-downgrade": question("auth.challenge/downgrade", **KEEPING),
    "token": question("auth.challenge/bearer", **KEEPING),
    "browser-login": browser_login("browser-login"),
    "device-login": browser_login("device-login"),
    "certificate": question("auth.challenge/client-certificate", **KEEPING),
    "certificate-list": question("auth.challenge/client-certificate", **KEEPING, certificates=CERTIFICATES),
    "certificate-passphrase": question("auth.challenge/client-certificate-passphrase", **KEEPING, changes={"typed_files": FILES}),
    "trust": question("auth.challenge/server-trust", **KEEPING),
    "trust-changed": question("auth.challenge/server-trust-changed", **KEEPING, expand=True),
    "consent": question("auth.confirm/sandbox", **ALLOWING),
    "consent-interpreter": question("auth.confirm/interpreter", expand=True),
    "consent-script": question("auth.confirm/script", expand=True),
    "prompt-secret": question("auth.prompt/secret"),
    "prompt-text": question("auth.prompt/text"),
    "prompt-confirmation": question("auth.prompt/confirmation", expand=True),
    "prompt-information": question("auth.prompt/information"),
    "prompt-repeated": question("auth.prompt/secret", changes={"is_repeated": True}),
    "saved": saved("saved"),
    "saved-users": saved("saved", USERS),
    "saved-locked": saved("saved", {**SAVED, "keyring": {"state": "locked", "reason": "it is locked"}}),
    "saved-nothing": saved("saved", {"credentials": []}, []),
    "saved-forget": saved("saved", dialogue="forget"),
    "saved-add": saved("saved", dialogue="add"),
    "lock": saved("saved", dialogue="lock"),
    "locked": saved("saved", LOCKED),
    "unlock": saved("saved", LOCKED, dialogue="unlock"),
    "no-broker": saved("saved", lost="the broker closed the connection"),
    "recent": saved("recent"),
    "recent-nothing": saved("recent", {"credentials": []}, []),
    "permissions": saved("permissions", grants=GRANTS),
    "permissions-nothing": saved("permissions"),
    "settings": saved("settings", configuration=CONFIGURATION),
}
#: Long names, many entries, and every kind of entry.
MANY = [{"id": f"session:{number}", "user": f"user_{number}_" + "x" * (number * 16), "domain": "CORP" if number % 2 else "",
         "source": "session" if number % 3 else "keyring"} for number in range(16)]
LONG = {"keyring": {"state": "locked", "reason": "the keyring is locked"}, "credentials": [
    {"id": f"{source}:{user}", "type": "password", "source": source, "user": user, "protectionSpace": SPACE, "isDefault": user == "alice"}
    for source, user in [("keyring", "alice"), ("keyring", "bob"), ("session", "carol_" + "x" * 90)]]}
LONG_GRANTS = [*GRANTS, {**GRANTS[0], "id": "g7", "subject": {"id": "exe:/opt/" + "very_long/" * 60 + "prog"}}]
ALL_TYPES = {"keyring": {"state": "locked", "reason": "it is locked"}, "credentials": [
    {"id": f"{source}:1", "type": kind, "source": source, "user": "bob", "protectionSpace": SPACE}
    for source in ("session", "keyring") for kind in ("password", "token", "trust", "certificate")]}
ALL_EVENTS = [{**EVENTS[0], "kind": kind, "time": "2025-11-20T20:00:00Z"} for kind in (
    "credentialUsed", "credentialRefused", "sessionCleared", "grantRevoked", "eventsLost", "denied", "trustAccepted", "challengeAnswered",
    "consentAnswered", "credentialStored", "locked")]
#: Further states of windows, of which no pictures are taken.
STATES = {
    "browser-login-waiting": browser_login("browser-login", opened=True),
    "browser-login-refused": browser_login("browser-login", url="file:///etc/passwd"),
    "device-login-over": browser_login("device-login", seconds=-1),
}
#: Windows with many entries, some of which have equal names.
FULL = {
    "login-ntlm-saved": question("auth.challenge/ntlm", **KEEPING, **PROPOSED),
    "token-saved": question("auth.challenge/bearer", **KEEPING, **PROPOSED),
    "login-many-users": question("auth.challenge/known-users", **KEEPING, knownUsers=MANY),
    "saved-types": saved("saved", ALL_TYPES),
    "recent-kinds": saved("recent", events=ALL_EVENTS),
}
#: Those whose data is too long to be told from texts.
LONG_STATES = {"saved-long": saved("saved", LONG), "permissions-long": saved("permissions", grants=LONG_GRANTS)}


PO = ROOT / "contrib" / "agent" / "po"
PICTURES = ROOT / "contrib" / "agent" / "pictures"
LANGUAGES = ("en", "de", "he")
SCREEN = "1280x800"
FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"
# The columns of a sheet, the width of a picture in it, and the number of colours of a committed picture.
COLUMNS, WIDTH, COLOURS = 7, 250, 112


@dataclasses.dataclass(frozen=True)
class Variant:
    """A look of the windows; `scheme` is light or dark."""

    scheme: str
    percent: int
    language: str

    @property
    def name(self):
        return f"{self.scheme}-{self.percent}-{self.language}"


VARIANTS = [Variant(scheme, percent, language) for scheme in ("light", "dark") for percent in (100, 200) for language in LANGUAGES]


def take(folder, variant, shower):
    """Shows every window, and returns the picture of each with its description; `shower` makes the program that shows them."""
    with contextlib.closing(Desktop(folder, scheme=variant.scheme, size=SCREEN)) as desktop:
        words = [] if variant.language == "en" else [f"po={PO}/{variant.language}.po"]
        show = shower(desktop, *words, environment={"GDK_SCALE": str(variant.percent // 100)})
        found = {}
        for name, message in WINDOWS.items():
            show.send(message)
            # The buttons are enabled after the initial delay.
            window = show.send({"wait": True})
            path = pathlib.Path(folder) / f"{name}.png"
            desktop.must("scrot", "--overwrite", "--focused", str(path))
            found[name] = (path, window)
        return found


def small(picture):
    """Returns a picture with few colours, which compresses well."""
    return picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)


def sheet(pictures):
    """Returns one picture with all pictures, each below its name."""
    font = ImageFont.truetype(FONT, 12)
    scaled = {name: one.convert("RGB").resize((WIDTH, one.height * WIDTH // one.width), Image.Resampling.LANCZOS)
              for name, one in pictures.items()}
    names = list(scaled)
    rows = [names[start:start + COLUMNS] for start in range(0, len(names), COLUMNS)]
    heights = [max(scaled[name].height for name in row) + 30 for row in rows]
    whole = Image.new("RGB", (COLUMNS * (WIDTH + 10) + 10, sum(heights) + 10), "#808890")
    draw, top = ImageDraw.Draw(whole), 5
    for row, height in zip(rows, heights):
        for column, name in enumerate(row):
            left = 10 + column * (WIDTH + 10)
            draw.text((left, top), name, "white", font)
            whole.paste(scaled[name], (left, top + 20))
        top += height
    return whole


def save(picture, path):
    path.parent.mkdir(exist_ok=True)
    small(picture).save(path, optimize=True)
