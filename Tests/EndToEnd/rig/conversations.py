"""Replays Protocol/conversations against a broker.

A line is {"dir":"client","message":…} or "raw", {"dir":"broker","message":…} for what must come, {"any-order":[…]} for messages
that come in either order, or, first, {"server":{…}} for the server that the conversation needs. In strings <url>, <host> and
<port> stand for that server; "<any>" matches anything, "<bind:x>" too and binds it, "<x>" is what was bound. An object matches
when its members do; "<more>":true allows others beside them.
"""
import json
import re

from .scripted import DigestCheck, ScriptedServer, basic_server, response


def serve(kind, realm="Staff", user="bob", password="", algorithm="MD5"):
    if kind == "basic":
        return basic_server(user, password, realm)
    if kind == "digest":
        return ScriptedServer(DigestCheck(user, password, realm, algorithm))
    if kind == "both":
        basic = basic_server(user, password, realm).handler
        digest = f'WWW-Authenticate: Digest realm="{realm}", nonce="n", qop="auth"'
        return ScriptedServer(
            lambda request: basic(request).replace(b"\r\nWWW-", f"\r\n{digest}\r\nWWW-".encode()))
    if kind == "redirect":
        return ScriptedServer(lambda request: response(302, b"", "Location: /there") if request.target == "/" else response(200, b"there"))
    return ScriptedServer(lambda request: response(200, b"open"))


class Replay:
    def __init__(self, path):
        self.lines = [json.loads(line) for line in path.read_text().splitlines()]
        self.bound = {}
        self.server = None
        if "server" in self.lines[0]:
            self.server = serve(**self.lines.pop(0)["server"])
            self.bound = {"url": self.server.url, "host": "127.0.0.1", "port": self.server.port}

    def filled(self, value):
        """`value` with everything that is bound."""
        if isinstance(value, str):
            whole = re.fullmatch(r"<(\w+)>", value)
            if whole and whole.group(1) in self.bound:
                return self.bound[whole.group(1)]
            return re.sub(r"<(\w+)>", lambda found: str(self.bound.get(found.group(1), found.group(0))), value)
        if isinstance(value, list):
            return [self.filled(one) for one in value]
        return {key: self.filled(one) for key, one in value.items()} if isinstance(value, dict) else value

    def match(self, wanted, got, where="message"):
        if isinstance(wanted, str) and (wanted == "<any>" or wanted.startswith("<bind:")):
            if wanted != "<any>":
                self.bound[wanted[6:-1]] = got
            return
        if isinstance(wanted, dict):
            assert isinstance(got, dict), f"{where}: {got!r}"
            names = set(wanted) - {"<more>"}
            assert names <= set(got) and ("<more>" in wanted or names == set(got)), f"{where}: {sorted(got)} for {sorted(names)}"
            for name in names:
                self.match(wanted[name], got[name], f"{where}.{name}")
        elif isinstance(wanted, list):
            assert isinstance(got, list) and len(got) == len(wanted), f"{where}: {got!r}"
            for index, pair in enumerate(zip(wanted, got)):
                self.match(*pair, f"{where}[{index}]")
        else:
            assert self.filled(wanted) == got, f"{where}: {got!r} for {self.filled(wanted)!r}"

    def run(self, client, receive):
        """`receive()` returns the next message of the broker."""
        for line in self.lines:
            if line.get("dir") == "client":
                if "raw" in line:
                    text = line["raw"].encode()
                    client.send_bytes(text + b"\n" if client.framing == "lines" else b"Content-Length: %d\r\n\r\n%s" % (len(text), text))
                else:
                    client.send(self.filled(line["message"]))
            elif "any-order" in line:
                left = list(line["any-order"])
                for _ in range(len(left)):
                    got = receive()
                    left.remove(next(one for one in left if one.get("id") == got.get("id")))
            else:
                self.match(line["message"], receive())
