"""Usage: typed.py URL. Shows which login a page was fetched with; `mypy --strict` accepts this program."""
import os
import sys

from watchword import CANCEL, Answer, Challenge, Password, Watchword


def ask(challenge: Challenge) -> Answer:
    if challenge["previousFailureCount"] or "password" not in challenge["accepts"]:
        return CANCEL
    with open(os.environ["LOGIN_FILE"]) as file:
        user, password = file.read().split("\n")[:2]
    return Password(user, password, persistence="none")


with Watchword(answer=ask) as broker:
    page = broker.fetch(sys.argv[1], method="GET", timeoutMs=30_000, tls={"trust": "onFailure"})
    login = page["auth"]
    print(page["status"], page["url"], login["user"] if login else "without a login")
    print(len(broker.content(page)), "bytes")
