"""Clients that end in the middle of their challenges, in waves, and the server that challenges them. A program, so that it does
not delay measurements in the test process.

    /usr/bin/python3 crowd.py SOCKET CLIENTS AT-ONCE

Each client fetches from a realm of its own, and ends before it has read its challenge, after that, after half of its answer, or
after all of it. Prints what the server received: a JSON object with `challenges`, `requests`, and `wrong`, the logins that do
not belong to the realm of their request.
"""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from rig.streams import DyingServer, Passwords, number_of  # noqa: E402
from rig.client import connected, lines_of  # noqa: E402
from rig.scripted import basic  # noqa: E402

HELLO = {"client": {"name": "crowd"}, "protocolVersion": 1, "capabilities": {"challenge": {"delivery": "request"}}}
MANNERS = 4


def begin(path, url):
    connection = connected(path, 60)
    connection.sendall(lines_of({"id": 1, "method": "initialize", "params": HELLO}, {"id": 2, "method": "fetch/run", "params": {"url": url}}))
    return connection


def challenge_of(connection):
    """Reads until the challenge; returns its id."""
    for text in connection.makefile("rb"):
        message = json.loads(text)
        if message.get("method") == "auth/challenge":
            return message["id"]
    raise OSError("the broker has closed the connection")


def die(connection, manner, password):
    if manner > 0:
        challenge = challenge_of(connection)
    if manner > 1:
        credential = {"type": "password", "user": "bob", "password": password, "persistence": "none"}
        answer = lines_of({"id": challenge, "result": {"action": "credential", "credential": credential}})
        connection.sendall(answer if manner > 2 else answer[:len(answer) // 2])
    connection.close()
    return manner > 0


def main(path, clients, at_once):
    passwords = Passwords("crowd")
    server = DyingServer(passwords.check("Basic"))
    challenges = 0
    for first in range(0, clients, at_once):
        numbers = range(first, min(first + at_once, clients))
        wave = [begin(path, f"{server.url}/{number:05}/page") for number in numbers]
        challenges += sum(die(one, number % MANNERS, passwords(number)) for number, one in zip(numbers, wave))
    wrong = [request.raw.decode("latin-1") for request in server.requests
             if request.authorization not in (None, basic("bob", passwords(number_of(request))))]
    print(json.dumps({"challenges": challenges, "requests": len(server.requests), "wrong": wrong}))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
