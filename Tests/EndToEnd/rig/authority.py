"""Issues certificates of every kind with python3-cryptography."""
import datetime
import ipaddress
import pathlib
import re

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = datetime.timedelta(days=1)


def now():
    return datetime.datetime.utcnow().replace(microsecond=0)


def new_key(bits=None):
    """Returns an RSA key of this size or, by default, a P-256 key, which is generated fast."""
    return rsa.generate_private_key(65537, bits) if bits else ec.generate_private_key(ec.SECP256R1())


def encryption(passphrase):
    return serialization.BestAvailableEncryption(passphrase.encode()) if passphrase else serialization.NoEncryption()


def name(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


class Pair:
    def __init__(self, key, certificate):
        self.key, self.certificate = key, certificate

    @property
    def certificate_pem(self):
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def key_pem(self, passphrase=None):
        return self.key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption(passphrase))

    def pkcs12(self, passphrase, issuer=None):
        others = [issuer.certificate] if issuer else None
        return pkcs12.serialize_key_and_certificates(b"client", self.key, self.certificate, others, encryption(passphrase))

    def fingerprint(self):
        return self.certificate.fingerprint(hashes.SHA256()).hex()

    @property
    def public_pem(self):
        return self.key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)

    @property
    def der(self):
        return self.certificate.public_bytes(serialization.Encoding.DER)

    def write(self, folder, stem):
        folder = pathlib.Path(folder)
        for ending, content in {"pem": self.certificate_pem, "key": self.key_pem()}.items():
            (folder / f"{stem}.{ending}").write_bytes(content)
            (folder / f"{stem}.{ending}").chmod(0o644 if ending == "pem" else 0o600)
        return folder / f"{stem}.pem", folder / f"{stem}.key"


def certificate(subject, key, issuer, signer, start, end, *extensions, digest=hashes.SHA256()):
    """Makes a certificate that is valid from `start` to `end`, in days from now, for a key."""
    builder = (
        x509.CertificateBuilder().subject_name(name(subject)).issuer_name(name(issuer)).public_key(key.public_key())
        .serial_number(x509.random_serial_number()).not_valid_before(now() + start * DAY).not_valid_after(now() + end * DAY))
    for extension in extensions:
        builder = builder.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
    return builder.sign(signer, digest)


def alternative_names(texts):
    return x509.SubjectAlternativeName([
        x509.IPAddress(ipaddress.ip_address(text)) if re.fullmatch(r"[\d.]+", text) else x509.DNSName(text) for text in texts])


class Authority(Pair):
    def __init__(self, common_name="Test authority", issuer=None):
        key, self.name = new_key(), common_name
        super().__init__(key, certificate(
            common_name, key, (issuer or self).name, issuer.key if issuer else key, -1, 9, x509.BasicConstraints(ca=True, path_length=None)))

    def issue(self, common_name="localhost", names=("localhost", "127.0.0.1"), start=-1, end=1, bits=None, client=False, digest=hashes.SHA256()):
        """Issues a leaf certificate that is valid from `start` to `end`, in days from now."""
        key = new_key(bits)
        usage = ExtendedKeyUsageOID.CLIENT_AUTH if client else ExtendedKeyUsageOID.SERVER_AUTH
        extensions = [x509.ExtendedKeyUsage([usage]), *([] if client else [alternative_names(names)])]
        return Pair(key, certificate(common_name, key, self.name, self.key, start, end, *extensions, digest=digest))


def self_signed(common_name="localhost", names=("localhost", "127.0.0.1"), bits=None):
    key = new_key(bits)
    return Pair(key, certificate(common_name, key, common_name, key, -1, 1, alternative_names(names)))
