"""Replays Protocol/conversations against a broker.

A line is {"dir":"client","message":…} or "raw" for what the client sends, {"dir":"broker","message":…} for the message expected
next, {"any-order":[…]} for messages expected in any order, and {"attach":{…},"reply":{…},"receives":…} for a second connection
with its `fetch/attach`, the expected reply, and all bytes expected after it. The first line can be {"server":{…}} for the
server that the conversation needs, with "proxy":{…} beside it for a proxy that requires a login. In strings, <url>, <host> and
<port> stand for that server, <proxyUrl> and <proxyPort> for the proxy; "<any>" matches anything, "<bind:x>" does too and binds
the value to x, and "<x>" is the bound value. An object matches if its members do; "<more>":true allows additional members.
"""
import json
import re

from .bodies import Attached
from .client import framed
from .forwarding import ForwardProxy
from .scripted import DigestCheck, ScriptedServer, basic, basic_server, bearer_server, response, rounds_server


def serve(kind, realm="Staff", user="bob", password="", algorithm="MD5", token="", scheme="", rounds=()):
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
    if kind == "bearer":
        return bearer_server(token, realm)
    if kind == "rounds":
        return rounds_server(rounds, scheme)
    return ScriptedServer(lambda request: response(200, b"open"))


def forward(user, password, realm):
    """Returns a proxy that requires Basic."""
    right = basic(user, password)
    refusal = response(407, b"who is there", f'Proxy-Authenticate: Basic realm="{realm}"')
    return ForwardProxy(lambda request: None if request.header("Proxy-Authorization") == right else refusal)


class Replay:
    def __init__(self, path):
        self.lines = [json.loads(line) for line in path.read_text().splitlines()]
        self.bound, self.servers = {}, []
        if "server" in self.lines[0]:
            needed = self.lines.pop(0)
            server = serve(**needed["server"])
            self.servers.append(server)
            self.bound = {"url": server.url, "host": "127.0.0.1", "port": server.port}
            if "proxy" in needed:
                proxy = forward(**needed["proxy"])
                self.servers.append(proxy)
                self.bound |= {"proxyUrl": proxy.url, "proxyPort": proxy.port}

    def filled(self, value):
        """Returns `value` with all bound names replaced."""
        if isinstance(value, str):
            if value[1:-1] in self.bound and value == f"<{value[1:-1]}>":
                return self.bound[value[1:-1]]
            return re.sub(r"<(\w+)>", lambda found: str(self.bound.get(found[1], found[0])), value)
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
        """Replays the conversation. `receive()` returns the next message of the broker."""
        for line in self.lines:
            if "raw" in line:
                client.send_bytes(framed(line["raw"].encode(), client.framing))
            elif line.get("dir") == "client":
                client.send(self.filled(line["message"]))
            elif "attach" in line:
                attached = Attached(client.socket.getpeername(), **self.filled(line["attach"]), framing=client.framing)
                self.match(line["reply"], attached.reply)
                if "receives" in line:
                    assert attached.read().decode() == line["receives"]
                attached.close()
            elif "any-order" in line:
                left = list(line["any-order"])
                for _ in range(len(left)):
                    got = receive()
                    one = next(one for one in left if one.get("id") == got.get("id"))
                    left.remove(one)
                    if "jsonrpc" in one:
                        self.match(one, got)
            else:
                self.match(line["message"], receive())
