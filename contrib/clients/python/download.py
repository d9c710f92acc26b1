#!/usr/bin/env python3
"""Usage: download.py URL FILE. Downloads a file of any size in little memory, and prompts for a login at the terminal."""
import getpass
import shutil
import sys

from watchword import Watchword

broker = Watchword(answer=lambda challenge: (input("User: "), getpass.getpass()))
download = broker.start(sys.argv[1])
with broker.attach(download) as body, open(sys.argv[2], "wb") as file:
    shutil.copyfileobj(body, file)
print(broker.finish(download)["bodyBytes"], "bytes")
