"""A client for the Watchword broker: typed, and standard library only.

>>> broker = Watchword(answer=lambda challenge: ("bob", getpass.getpass()))
>>> broker.fetch("https://intranet.example/report")["body"]["value"]

`watchword.aio` has the same for asyncio; `watchword.requests_adapter`, `watchword.httpx_transport` and
`watchword.keyring_backend` need the packages that they are named after.
"""
from .answers import (
    CANCEL, CONTINUE, DEFAULT, REJECT, Answer, Certificate, Credential, Decision, Header, Password, Proposed, Stored, Token, Trust)
from .client import Stream, Watchword
from .errors import BrokerError, BrokerNotRunning, ConnectionClosed, SocketNotTrusted, WatchwordError
from .messages import Challenge, Fetched, KnownUser, Resolved

__all__ = [
    "CANCEL", "CONTINUE", "DEFAULT", "REJECT", "Answer", "BrokerError", "BrokerNotRunning", "Certificate", "Challenge",
    "ConnectionClosed", "Credential", "Decision", "Fetched", "Header", "KnownUser", "Password", "Proposed", "Resolved",
    "SocketNotTrusted", "Stored", "Stream", "Token", "Trust", "Watchword", "WatchwordError"]
