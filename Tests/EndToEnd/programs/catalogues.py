"""The agent's catalogues."""
import gettext
import io
import subprocess


def compiled(file):
    """Returns the translations in a PO file."""
    made = subprocess.run(["msgfmt", "--check", "--output-file=-", file], stdout=subprocess.PIPE, check=True)
    return gettext.GNUTranslations(io.BytesIO(made.stdout))
