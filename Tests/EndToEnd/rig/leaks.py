"""Searches for the secrets of a test where they must not be."""
import base64
import os
import pathlib


def forms(secret):
    """Returns a secret unchanged, in hexadecimal, and in base64 at each of the three alignments."""
    raw = secret.encode()
    encoded = [base64.b64encode(b"x" * shift + raw)[(shift * 4 + 2) // 3 + 1:-4] for shift in range(3)]
    return [raw, raw.hex().encode(), *encoded]


def places_with(secret, places):
    """Returns the names of the `places` (name → bytes) that contain `secret` in any form."""
    return [name for name, content in places.items() if any(form in content for form in forms(secret))]


def files_below(folder):
    return {str(path): path.read_bytes() for path in pathlib.Path(folder).rglob("*") if path.is_file() and os.access(path, os.R_OK)}


# For the whole session: passwords that several tests share, each with the programs that may receive it, and the data received
# by each server that ran longer than a test, as (program, port, bytes).
SHARED = []
HEARD = []


def check_the_run():
    """Checks that no server received a shared secret that was for another one."""
    for secret, allowed in SHARED:
        places = {f"{program} on port {port}": heard for program, port, heard in HEARD if program not in allowed}
        found = places_with(secret, places)
        assert not found, f"{found} received a shared secret that was for another server"
