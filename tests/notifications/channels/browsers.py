"""Browsers that registered for push messages: the one of RFC 8291's example, and ones
whose keys a test has, so that it reads what they get."""

from __future__ import annotations

from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from notifications.channels import push, subscriptions
from policies.models import Person
from reviews.models import PushSubscription

# RFC 8291, section 5 and appendix A.
RFC_KEY = (
    "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIA"
    "iw4"
)
RFC_AUTH = "BTBZMqHH6r4Tts7J_aSIgg"
CHROME = "Mozilla/5.0 (Linux; Android 16) AppleWebKit/537.36 Chrome/150.0 Mobile Safari"


def register(person: Person, endpoint: str) -> PushSubscription:
    return subscriptions.register_browser(
        person=person, endpoint=endpoint, p256dh=RFC_KEY, auth=RFC_AUTH, agent=CHROME
    )


@dataclass
class Browser:
    """A browser: its keys, and how it reads a message (RFC 8291, section 3)."""

    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )
    auth: bytes = b"sixteen secret b"

    @property
    def public(self) -> bytes:
        point = PublicFormat.UncompressedPoint
        return self.key.public_key().public_bytes(Encoding.X962, point)

    def register(self, person: Person, endpoint: str) -> PushSubscription:
        return subscriptions.register_browser(
            person=person,
            endpoint=endpoint,
            p256dh=push.encode_base64(self.public),
            auth=push.encode_base64(self.auth),
            agent=CHROME,
        )

    def read(self, body: bytes) -> bytes:
        salt, size, length = body[:16], int.from_bytes(body[16:20], "big"), body[20]
        sender, sealed = body[21 : 21 + length], body[21 + length :]
        assert len(sealed) <= size
        theirs = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender)
        info = b"WebPush: info\0" + self.public + sender
        secret = HKDF(SHA256(), 32, self.auth, info).derive(
            self.key.exchange(ec.ECDH(), theirs)
        )
        key = HKDF(SHA256(), 16, salt, b"Content-Encoding: aes128gcm\0").derive(secret)
        nonce = HKDF(SHA256(), 12, salt, b"Content-Encoding: nonce\0").derive(secret)
        padded = AESGCM(key).decrypt(nonce, sealed, None)
        text, end, _ = padded.rpartition(b"\2")
        assert end
        return text
