"""Looks for the secrets of a test where they have no business."""
import base64
import os
import pathlib


def forms(secret):
    """A secret as it is, in hexadecimal, and in base64 at each of the three alignments."""
    raw = secret.encode()
    encoded = [base64.b64encode(b"x" * shift + raw)[(shift * 4 + 2) // 3 + 1:-4] for shift in range(3)]
    return [raw, raw.hex().encode(), *encoded]


def places_with(secret, places):
    """Names of the `places` (name → bytes) that hold `secret` in any form."""
    return [name for name, content in places.items() if any(form in content for form in forms(secret))]


def files_below(folder):
    return {str(path): path.read_bytes() for path in pathlib.Path(folder).rglob("*") if path.is_file() and os.access(path, os.R_OK)}


# Over the whole run: passwords that several tests share, each with the programs that may hear it, and what every server that
# ran longer than a test has heard, as (program, port, bytes).
SHARED = []
HEARD = []


def check_the_run():
    """Nothing that was for one server is in what another one has heard."""
    for secret, allowed in SHARED:
        places = {f"{program} on port {port}": heard for program, port, heard in HEARD if program not in allowed}
        found = places_with(secret, places)
        assert not found, f"a shared secret was heard by {found}"
