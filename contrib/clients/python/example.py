"""Fetches the URL of its first argument, and asks when the server wants a log-in."""
import getpass
import sys

from watchword import Watchword


def ask(challenge):
    print(f"{challenge['url']} asks: {challenge['protectionSpace']['realm']}", file=sys.stderr)
    return input("User: "), getpass.getpass()


print(Watchword(answer=ask).fetch(sys.argv[1])["body"]["value"], end="")
