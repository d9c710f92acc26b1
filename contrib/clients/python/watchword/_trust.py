"""Checks that a socket belongs to this user's broker: a process of another user would receive passwords.

This file imports nothing from the package, because the desktop agent uses it too, through a link in contrib/agent/watchword_agent.
"""
import os
import socket
import stat
import struct
from typing import Any, Optional

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_CREDENTIALS = struct.Struct("iII")


def directory_problem(path: str) -> Optional[str]:
    """Returns why other users could replace the socket, or `None`. A missing directory is left to connect()."""
    directory = os.path.dirname(path) or "."
    try:
        status = os.stat(directory)
    except OSError:
        return None
    if status.st_uid not in (os.geteuid(), 0):
        return f"the directory {directory} belongs to user {status.st_uid}"
    if status.st_mode & _WRITABLE_BY_OTHERS:
        return f"the directory {directory} can be written by other users (mode {stat.S_IMODE(status.st_mode):04o})"
    return None


def peer_problem(connected: Any) -> Optional[str]:
    """Returns a problem if a process of another user listens (SO_PEERCRED, unix(7)), or `None`. Must be called before sending.

    `connected` is a socket or asyncio's `TransportSocket`.
    """
    _, uid, _ = _CREDENTIALS.unpack(connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return f"user {uid} listens there" if uid != os.geteuid() else None  # guard: client-peer-python
