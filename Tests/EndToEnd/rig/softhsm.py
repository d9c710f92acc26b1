"""A PKCS#11 token in a folder, made with SoftHSM and OpenSC, with a client's key and certificate."""
import os
import pathlib
import secrets
import subprocess

from cryptography.hazmat.primitives import serialization

from .servers import INSTALL, find

MODULE = "/usr/lib/softhsm/libsofthsm2.so"


class Token:
    """`environment` is what a program needs to find the token; `certificate_url` and `key_url` identify its objects (RFC 7512).
    """

    def __init__(self, folder, pair, label="watchword", name="client"):
        assert pathlib.Path(MODULE).exists(), f"{MODULE} is missing; run {INSTALL}"
        assert list(pathlib.Path("/usr/lib").glob("*/engines-3/pkcs11.so")), f"OpenSSL's engine pkcs11 is missing; run {INSTALL}"
        self.folder, self.label = pathlib.Path(folder), label
        self.pin, officer = secrets.token_hex(6), secrets.token_hex(6)
        (self.folder / "tokens").mkdir(mode=0o700)
        configuration = self.folder / "softhsm2.conf"
        configuration.write_text(f"directories.tokendir = {self.folder}/tokens\nobjectstore.backend = file\nlog.level = ERROR\n")
        self.environment = {"SOFTHSM2_CONF": str(configuration), "PKCS11_MODULE_PATH": MODULE}
        self._secrets = {"TOKEN_PIN": self.pin, "TOKEN_OFFICER": officer}
        self._tool("--init-token", "--slot-index", "0", "--label", label, "--so-pin", "env:TOKEN_OFFICER")
        self._tool("--token-label", label, "--init-pin", "--login", "--so-pin", "env:TOKEN_OFFICER", "--pin", "env:TOKEN_PIN")
        parts = {
            "cert": pair.certificate.public_bytes(serialization.Encoding.DER),
            "privkey": pair.key.private_bytes(
                serialization.Encoding.DER, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())}
        for kind, content in parts.items():
            path = self.folder / f"{kind}.der"
            path.write_bytes(content)
            self._tool("--token-label", label, "--login", "--pin", "env:TOKEN_PIN", "--write-object", str(path), "--type", kind,
                       "--id", "01", "--label", name, *(["--usage-sign"] if kind == "privkey" else []))
            path.unlink()
        self.certificate_url = f"pkcs11:token={label};object={name};type=cert"
        self.key_url = f"pkcs11:token={label};object={name};type=private"

    def _tool(self, *words):
        done = subprocess.run(
            [find("pkcs11-tool"), "--module", MODULE, *words], env={**os.environ, **self.environment, **self._secrets},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def objects(self):
        return self._tool("--token-label", self.label, "--login", "--pin", "env:TOKEN_PIN", "--list-objects")
