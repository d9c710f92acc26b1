"""The two algorithms with which the Secret Service transfers secrets over the bus."""
import hashlib
import hmac
import secrets

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

# The second Oakley group (RFC 2409 section 6.2).
PRIME = int(
    "FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22514A08798E3404DD"
    "EF9519B3CD3A431B302B0A6DF25F14374FE1356D6D51C245E485B576625E7EC6F44C42E9A637ED6B0BFF5CB6F406B7ED"
    "EE386BFB5A899FA5AE9F24117C4B1FE649286651ECE65381FFFFFFFFFFFFFFFF", 16)


class Encryption:
    """The algorithm dh-ietf1024-sha256-aes128-cbc-pkcs7."""

    def __init__(self, public):
        private = secrets.randbelow(PRIME - 2) + 1
        self.public = pow(2, private, PRIME).to_bytes(128, "big")
        shared = pow(int.from_bytes(public, "big"), private, PRIME).to_bytes(128, "big")
        extracted = hmac.new(bytes(32), shared, hashlib.sha256).digest()
        self.key = hmac.new(extracted, b"\x01", hashlib.sha256).digest()[:16]

    def encrypt(self, clear):
        vector, fill = secrets.token_bytes(16), 16 - len(clear) % 16
        cipher = Cipher(algorithms.AES(self.key), modes.CBC(vector)).encryptor()
        return vector, cipher.update(clear + bytes([fill]) * fill) + cipher.finalize()

    def decrypt(self, vector, hidden):
        cipher = Cipher(algorithms.AES(self.key), modes.CBC(vector)).decryptor()
        padded = cipher.update(hidden) + cipher.finalize()
        return padded[:-padded[-1]]


class Plain:
    encrypt = staticmethod(lambda clear: (b"", clear))
    decrypt = staticmethod(lambda _, hidden: hidden)
