"""A typed client for the Watchword broker, with the standard library only.

>>> broker = Watchword(answer=lambda challenge: ("bob", getpass.getpass()))
>>> broker.content(broker.fetch("https://intranet.example/report"))

`watchword.aio` is the client for asyncio; `watchword.requests_adapter`, `watchword.httpx_transport` and
`watchword.keyring_backend` each require the package in their name.
"""
from ._version import __version__
from .answers import (
    CANCEL, CONTINUE, DEFAULT, REJECT, Answer, AnswerMessage, Certificate, Credential, Decision, Header, Password, Proposed,
    Stored, Token, Trust)
from .client import Stream, Watchword
from .errors import BrokerError, BrokerNotRunning, ConnectionClosed, SocketNotTrusted, WatchwordError
from .messages import Authentication, Challenge, Fetched, Finished, Head, KnownUser, ProtectionSpace, Resolved, Started, TokenLogin

__all__ = [
    "CANCEL", "CONTINUE", "DEFAULT", "REJECT", "Answer", "AnswerMessage", "Authentication", "BrokerError",
    "BrokerNotRunning", "Certificate", "Challenge", "ConnectionClosed", "Credential", "Decision", "Fetched", "Finished", "Head",
    "Header", "KnownUser", "Password", "Proposed", "ProtectionSpace", "Resolved", "SocketNotTrusted", "Started", "Stored", "Stream", "Token",
    "TokenLogin", "Trust", "Watchword", "WatchwordError", "__version__"]
