"""Clients that perform random actions one after the other and check their results."""
import hashlib
import socket
import threading
import time

from rig.bodies import Attached
from rig.client import Client
from rig.ntlm import DOMAIN

WITHIN = 90
# The errors that are expected because a server, a proxy, a client or the keyring is killed, or the broker locked.
UNDERSTOOD = {
    "cancelled", "cannotConnect", "connectionLost", "malformedResponse", "proxyFailed", "tlsFailed", "timedOut", "challengeCancelled",
    "challengeTimedOut", "bodyIncomplete", "bodyNotReplayable", "locked", "busy", "unknownFetch", "unknownCredential",
    "keyringUnavailable",
}


class Gone(Exception):
    """The connection ended as intended."""


class Actor(threading.Thread):
    """A client. `world` has `sites`, `gate`, `socket`, `verdict`, and `is_open`, which is false while resources are counted and changes
    with the condition `turn`."""

    def __init__(self, world, chance):
        super().__init__(daemon=True)
        self.world, self.chance, self.verdict = world, chance, world.verdict
        self.client, self.manner, self.dying = None, "right", False
        self.is_idle = False

    def run(self):
        while True:
            if not self.world.is_open:
                self.leave()
                with self.world.turn:
                    self.is_idle = True
                    self.world.turn.notify_all()
                    self.world.turn.wait_for(lambda: self.world.is_open)
                    self.is_idle = False
            try:
                self.one_thing()
            except Gone:
                self.leave()
            except Exception as problem:  # noqa: BLE001
                self.verdict.wrong(f"{type(problem).__name__}: {problem}")
                self.leave()

    def leave(self):
        if not self.client:
            return
        self.client.close()
        ids = [one["id"] for side, one in self.client.messages if side == "broker" and "method" not in one]
        if len(ids) != len(set(ids)):
            self.verdict.wrong("a request was answered twice")
        self.client = None

    # Messages

    def connected(self):
        if self.client and (self.client.next_id > 40 or self.client.closed.is_set()):
            self.leave()
        if not self.client:
            self.client = Client(self.world.socket, framing=self.chance.choice(["lines", "headers"]), answer=self.answer)
        return self.client

    def wait(self, client, call):
        """Returns the reply, which must arrive unless this client has disconnected."""
        with client.arrived:
            came = client.arrived.wait_for(lambda: call in client.replies or client.closed.is_set(), WITHIN)
        if call in client.replies:
            return self.understood(client.replies[call])
        if not self.dying:
            self.verdict.wrong("the broker ended a connection" if came else f"no reply in {WITHIN} s")
        raise Gone

    def call(self, method, params=None):
        client = self.connected()
        return self.wait(client, client.start(method, params))

    def understood(self, reply):
        if "error" in reply:
            kind = reply["error"]["data"].get("kind")
            self.verdict.count(f"ended with {kind}")
            # NTLM logs in with two exchanges; a server that is killed between them does not continue the login.
            is_cut_login = kind == "notSupported" and "does not continue the login" in reply["error"]["message"]
            if kind not in UNDERSTOOD and not is_cut_login:
                self.verdict.wrong(f"unexpected error: {reply['error']}")
        return reply

    def account(self, challenge):
        """Returns the place of a challenge and an account of it."""
        space = challenge["protectionSpace"]
        gate = self.world.gate
        places = [gate.place] if space["isProxy"] else [
            place for site in self.world.sites if site.server.port == space["port"] for place in site.places]
        place = next((one for one in places if one.realm == space["realm"] or one.scheme == "ntlm"), None)
        if not place:
            self.verdict.wrong(f"a challenge for an unknown space: {space}")
            return None, None
        return place, self.chance.choice(place.right if self.manner == "right" else place.wrong)

    def answer(self, challenge):
        self.verdict.count("challenges")
        place, account = self.account(challenge)
        manner, self.manner = self.manner, "right"  # only the first answer can be wrong
        if self.dying:
            self.client.socket.shutdown(socket.SHUT_RDWR)
        if manner in ("continue", "cancel", "default", "reject") or not account:
            return {"action": manner if account else "cancel"}
        persistence = self.chance.choice([kind for kind in challenge["persistenceAllowed"]])
        return {"action": "credential", "credential": {**self.credential(place, account), "persistence": persistence}}

    @staticmethod
    def credential(place, account):
        if place.scheme == "bearer":
            return {"type": "token", "token": account.secret}
        domain = {"domain": DOMAIN} if place.scheme == "ntlm" else {}
        return {"type": "password", "user": account.user, "password": account.secret, **domain}

    # Actions

    def one_thing(self):
        self.dying = False
        self.manner = self.chance.choice(["right"] * 6 + ["wrong", "continue", "cancel", "default", "reject"])
        things = [self.fetch] * 8 + [
            self.bring, self.through_the_proxy, self.through_the_proxy, self.elsewhere, self.upload, self.download, self.download,
            self.break_off, self.die, self.die, self.forget, self.lock, self.crowd]
        thing = self.chance.choice(things)
        self.verdict.count(thing.__name__)
        thing()

    def somewhere(self, *schemes):
        sites = [(site, number) for site in self.world.sites for number, place in enumerate(site.places)
                 if not schemes or place.scheme in schemes]
        site, number = self.chance.choice(sites)
        return site, number, f"{site.url}/{number}"

    def check_page(self, reply, site, number):
        result = reply.get("result")
        if not result or result["status"] not in (200, 401, 407):
            return
        if result["status"] == 200:
            self.verdict.count("pages received")
            text, place = result["body"]["value"], site.places[number]
            named = f" of {result['auth']['user']}" if place.scheme in ("basic", "digest") else ""
            if not text.startswith(f"{site.name} {place.name}{named}"):
                self.verdict.wrong(f"a page of another account: {text!r} for {place.name} as {result['auth']}")

    def fetch(self, **params):
        site, number, url = self.somewhere()
        self.check_page(self.call("fetch/run", {"url": url + "/page", **params}), site, number)

    def bring(self):
        """Fetches with a right or wrong credential of its own."""
        site, number, url = self.somewhere("basic", "digest", "bearer")
        place = site.places[number]
        credential = self.credential(place, self.chance.choice([*place.right, *place.wrong]))
        self.check_page(self.call("fetch/run", {
            "url": url + "/page", "credential": {**credential, "persistence": "none"},
            "auth": {"interaction": "none", "useStorage": self.chance.random() < 0.5}}), site, number)

    def through_the_proxy(self):
        site, number, url = self.somewhere("basic", "digest")
        self.check_page(self.call("fetch/run", {"url": url + "/page", "proxy": {"url": self.world.gate.url}}), site, number)

    def elsewhere(self):
        """Follows a redirect to another server, which must receive no credential of the first."""
        _, _, first = self.somewhere("basic", "digest", "bearer")
        site, number, second = self.somewhere()
        if first.startswith("https:") and second.startswith("http:"):
            return
        self.check_page(self.call("fetch/run", {"url": f"{first}/away/{second}/page"}), site, number)

    def crowd(self):
        """Makes ten concurrent fetches of one page."""
        client = self.connected()
        site, number, url = self.somewhere()
        for call in [client.start("fetch/run", {"url": url + "/page"}) for _ in range(10)]:
            self.check_page(self.wait(client, call), site, number)

    def completed(self, client, fetch):
        def found():
            return next((one["params"] for side, one in list(client.messages) if side == "broker" and
                         one.get("method") == "fetch/completed" and one["params"]["fetchId"] == fetch), None)
        with client.arrived:
            if not client.arrived.wait_for(lambda: found() or client.closed.is_set(), WITHIN):
                self.verdict.wrong("a fetch in steps does not complete")
        if not found():
            raise Gone
        return self.understood(found()) if "error" in found() else found()

    def download(self):
        """Downloads a body at full speed, slowly, or in part."""
        client = self.connected()
        site, number, url = self.somewhere("basic", "digest", "bearer")
        blocks = self.chance.choice([1, 8, 64])
        begun = self.call("fetch/start", {"url": f"{url}/big/{blocks}"})
        if "result" not in begun:
            return
        begun = begun["result"]
        attached = Attached(self.world.socket, begun["attachToken"])
        if "result" in attached.reply:
            way, count = self.chance.choice(["all", "slow", "half"]), 0
            for part in attached.parts():
                count += len(part)
                if way == "half" and count > 1 << 16:
                    break
                if way == "slow":
                    time.sleep(0.01)
        attached.close()
        done = self.completed(client, begun["fetchId"])
        if done.get("status") == 200 and "error" not in done and done["bodyBytes"] != blocks << 16:
            self.verdict.wrong(f"{done['bodyBytes']} bytes of {blocks << 16}")

    def upload(self):
        client = self.connected()
        _, _, url = self.somewhere("basic", "bearer")
        body = self.chance.randbytes(self.chance.choice([10, 5_000, 300_000, 1_500_000]))
        begun = self.call("fetch/start", {"url": url + "/put", "method": "PUT", "body": {"type": "attach", "sizeBytes": len(body)}})
        if "result" not in begun:
            return
        begun = begun["result"]
        attached = Attached(self.world.socket, begun["attachToken"], side="request")
        try:
            attached.socket.sendall(body)
            attached.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        reply = self.call("fetch/read", {"fetchId": begun["fetchId"]})
        attached.close()
        done = self.completed(client, begun["fetchId"])
        if done.get("status") == 200 and "result" in reply:
            self.verdict.count("uploads")
            value = reply["result"]["data"]["value"]
            if value != hashlib.sha256(body).hexdigest():
                self.verdict.wrong("the server received a different body")

    def break_off(self):
        client = self.connected()
        site, number, url = self.somewhere()
        call = client.start("fetch/run", {"url": url + "/page", "auth": {"useStorage": False}})
        time.sleep(self.chance.random() / 20)
        client.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": call}})
        self.check_page(self.wait(client, call), site, number)

    def die(self):
        """Disconnects at a random moment, or with an unanswered challenge."""
        client = self.connected()
        _, _, url = self.somewhere()
        self.dying = self.chance.random() < 0.5
        client.start("fetch/run", {"url": url + "/page", "auth": {"useStorage": self.chance.random() < 0.5}})
        time.sleep(self.chance.random() / 20)
        self.dying = True
        raise Gone

    def forget(self):
        site, _, _ = self.somewhere()
        if self.chance.random() < 0.5:
            self.call("session/clear", {"origin": site.url})
            return
        listed = self.call("credential/list").get("result", {}).get("credentials", [])
        if listed:
            self.call("credential/forget", {"id": self.chance.choice(listed)["id"]})

    def lock(self):
        if self.chance.random() > 0.2:
            return self.fetch()
        # One passphrase for all clients, so that a client that disconnects locks out no other.
        word = self.chance.choice(["pass.phrase", None])
        if "result" in self.call("broker/lock", {"passphrase": word} if word else {}):
            self.fetch()
            while "error" in (reply := self.call("broker/unlock", {"passphrase": word} if word else {})):
                if reply["error"]["data"]["kind"] == "locked":
                    word = "pass.phrase"
                time.sleep(0.2)
