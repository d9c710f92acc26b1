"""Whether a socket is that of this user's broker. One that another user has put there would receive passwords."""
import os
import socket
import stat
import struct
from typing import Union

from asyncio.trsock import TransportSocket

from .errors import SocketNotTrusted

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_CREDENTIALS = struct.Struct("iII")


def check_directory(path: str) -> None:
    """Before connecting: nobody else can replace the socket. A directory that does not exist is left to connect()."""
    directory = os.path.dirname(path) or "."
    try:
        status = os.stat(directory)
    except OSError:
        return
    if status.st_uid not in (os.geteuid(), 0):
        raise SocketNotTrusted(path, f"the directory {directory} belongs to user {status.st_uid}")
    if status.st_mode & _WRITABLE_BY_OTHERS:
        mode = stat.S_IMODE(status.st_mode)
        raise SocketNotTrusted(path, f"the directory {directory} can be written by other users (mode {mode:04o})")


def check_peer(connected: Union[socket.socket, TransportSocket], path: str) -> None:
    """After connecting and before anything is sent: the process that listens runs as this user (SO_PEERCRED, unix(7))."""
    _, uid, _ = _CREDENTIALS.unpack(connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    if uid != os.geteuid():
        raise SocketNotTrusted(path, f"user {uid} listens there")
