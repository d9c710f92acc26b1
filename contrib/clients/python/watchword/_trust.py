"""Whether a socket is that of this user's broker. One that another user has put there would receive passwords.

Nothing of this package is imported: the desktop agent uses the same file, through a link in contrib/agent/watchword_agent.
"""
import os
import socket
import stat
import struct
from typing import Any, Optional

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_CREDENTIALS = struct.Struct("iII")


def directory_problem(path: str) -> Optional[str]:
    """Before connecting: why others could replace the socket. A directory that does not exist is left to connect()."""
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
    """After connecting and before anything is sent: whether another user's process listens (SO_PEERCRED, unix(7)).

    `connected` is a socket, or what asyncio gives for one.
    """
    _, uid, _ = _CREDENTIALS.unpack(connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return f"user {uid} listens there" if uid != os.geteuid() else None
