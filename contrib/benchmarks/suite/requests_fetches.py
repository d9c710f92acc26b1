"""Makes N GETs of one URL with Python's requests, PARALLEL at a time, with a session per thread.

Arguments: URL N PARALLEL USER PASSWORD.
"""
import sys
import threading
import time

import requests


def fetch(url, count, login):
    with requests.Session() as session:
        session.auth = login
        session.trust_env = False
        for _ in range(count):
            session.get(url, timeout=60).raise_for_status()


def main(url, count, parallel, user, password):
    count, parallel = int(count), int(parallel)
    each = count // parallel
    threads = [threading.Thread(target=fetch, args=(url, each, (user, password))) for _ in range(parallel)]
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{each * parallel} fetches: {each * parallel / (time.monotonic() - begin):.0f}/s")


if __name__ == "__main__":
    main(*sys.argv[1:])
