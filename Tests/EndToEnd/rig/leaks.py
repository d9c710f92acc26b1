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
