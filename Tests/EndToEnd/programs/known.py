"""Answers with a stored login, and prints the listed users, the outcome of the answer, and the body. With `async`, it uses asyncio."""
import asyncio
import sys

from watchword import CANCEL, Stored, Watchword
from watchword.aio import AsyncWatchword

url, wanted, *how = sys.argv[1].split(" ")


def answer(challenge):
    known = challenge.get("knownUsers", [])
    print("known", ",".join("\\".join(filter(None, (one.get("domain"), one["user"]))) for one in known))
    return next((Stored(one["id"]) for one in known if one["user"] == wanted), CANCEL)


def resolved(end):
    print("resolved", end["outcome"], end["user"])
    # The error is logged, and does not affect the fetch.
    raise ArithmeticError


async def main():
    async with AsyncWatchword(answer, resolved=resolved) as broker:
        return await broker.fetch(url)


page = asyncio.run(main()) if how else Watchword(answer, resolved=resolved).fetch(url)
print("body", page["body"]["value"], end="")
