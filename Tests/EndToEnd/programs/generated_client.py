"""A client of types that a generator has made from the OpenRPC document, and of nothing else that knows the protocol.

Arguments: the socket, a URL, a user; the password is on standard input. Every message is built and read by the generated types.
"""
import json
import socket
import sys

import models

path, url, user = sys.argv[1:]
password = sys.stdin.readline().strip()
connection = socket.socket(socket.AF_UNIX)
connection.connect(path)
lines = connection.makefile("r")
resolved = []


def send(**message):
    connection.sendall(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def plain(value):
    return value.model_dump(mode="json", by_alias=True, exclude_unset=True)


def call(method, params, result):
    send(id=1, method=method, params=plain(params))
    for line in lines:
        message = json.loads(line)
        if message.get("method") == "auth/challenge":
            send(id=message["id"], result=plain(answer(models.AuthChallengeParams.model_validate(message["params"]))))
        elif message.get("method") == "auth/resolved":
            resolved.append(models.AuthResolvedParams.model_validate(message["params"]).outcome.value)
        elif message.get("id") == 1:
            return result.model_validate(message["result"])


def answer(challenge):
    assert challenge.protectionSpace.realm == "Staff" and challenge.previousFailureCount == 0
    credential = {"type": "password", "user": user, "password": password}
    return models.Answer.model_validate({"action": "credential", "credential": credential})


hello = {"client": {"name": "generated"}, "protocolVersion": 1, "capabilities": {"challenge": {"delivery": "request"}}}
call("initialize", models.InitializeParams.model_validate(hello), models.InitializeResult)
call("ping", models.PingParams(), models.PingResult)
version = call("server/status", models.ServerStatusParams(), models.ServerStatusResult).root.version
page = call("fetch/run", models.FetchRunParams(url=url), models.FetchRunResult)
print(json.dumps({"version": version, "page": plain(page), "resolved": resolved}))
