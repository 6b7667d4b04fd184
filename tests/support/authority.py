"""A certificate authority of a test's own, and the certificates of servers under it."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ec import generate_private_key as new_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat


class Authority:
    """A certificate authority of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._key = folder, new_key(SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "an authority")])
        self.file = folder / f"{id(self)}.pem"
        own = self._certificate(self._key, self._name, x509.BasicConstraints(True, None))
        self.file.write_bytes(own)

    def serving(self, host: str, days: int = 1) -> ssl.SSLContext:
        """What a server of that name or address uses, whose certificate ends after these days."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certified(host, days))
        return context

    def certified(self, host: str, days: int = 1) -> Path:
        """A file with the certificate and the key of a server of that name or address."""
        key, file = new_key(SECP256R1()), self._folder / f"{id(self)}-{host}.pem"
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
        names: x509.GeneralName = x509.DNSName(host)
        with contextlib.suppress(ValueError):
            names = x509.IPAddress(ipaddress.ip_address(host))
        made = self._certificate(key, name, x509.SubjectAlternativeName([names]), days)
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        file.write_bytes(secret + made)
        return file

    def _certificate(
        self,
        key: EllipticCurvePrivateKey,
        name: x509.Name,
        extension: x509.ExtensionType,
        days: int = 1,
    ) -> bytes:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder(self._name, name, key.public_key(), x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=10))
            .not_valid_after(now + datetime.timedelta(days=days))
            .add_extension(extension, critical=True)
            .sign(self._key, SHA256())
            .public_bytes(Encoding.PEM)
        )
