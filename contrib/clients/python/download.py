#!/usr/bin/env python3
"""Usage: download.py URL FILE. Of any size, in little memory; asks for a log-in at the terminal."""
import getpass
import shutil
import sys

from watchword import Watchword

broker = Watchword(answer=lambda challenge: (input("User: "), getpass.getpass()))
download = broker.start(sys.argv[1])
with broker.attach(download) as body, open(sys.argv[2], "wb") as file:
    shutil.copyfileobj(body, file)
print(broker.finish(download)["bodyBytes"], "bytes")
