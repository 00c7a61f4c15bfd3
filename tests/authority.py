"""Certificates for tests, as PEM and as PKCS #12."""

from __future__ import annotations

import datetime as dt
import ipaddress
from typing import TYPE_CHECKING, Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)

if TYPE_CHECKING:
    from pathlib import Path

PASSWORD = b"of the store"


class Authority:
    """An authority whose certificates are in a folder, as PEM and as PKCS #12."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        self._certificate = self._sign(self._name, self._key, authority=True)
        self.pem = folder / f"{name}.pem"
        self.pem.write_bytes(self._certificate.public_bytes(Encoding.PEM))
        self.p12 = folder / f"{name}.p12"
        trusted = [pkcs12.PKCS12Certificate(self._certificate, b"ca")]
        self.p12.write_bytes(pkcs12.serialize_java_truststore(trusted, BestAvailableEncryption(PASSWORD)))

    def issue(self, name: str) -> Path:
        """Make a certificate for this host; return a PEM file with its key, beside which are NAME.key and NAME.p12."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        certificate = self._sign(subject, key)
        pem = certificate.public_bytes(Encoding.PEM)
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        (self.folder / f"{name}.key").write_bytes(private)
        (self.folder / f"{name}.crt").write_bytes(pem)
        store = pkcs12.serialize_key_and_certificates(b"x", key, certificate, None, BestAvailableEncryption(PASSWORD))
        (self.folder / f"{name}.p12").write_bytes(store)
        path = self.folder / f"{name}.pem"
        path.write_bytes(pem + private)
        return path

    def _sign(self, subject: x509.Name, key: Any, authority: bool = False) -> x509.Certificate:
        now = dt.datetime.now(dt.timezone.utc)
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self._name).public_key(key.public_key())
        builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now - dt.timedelta(days=1))
        builder = builder.not_valid_after(now + dt.timedelta(days=1))
        builder = builder.add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        builder = builder.add_extension(x509.SubjectAlternativeName([address]), critical=False)
        return builder.sign(self._key, hashes.SHA256())
