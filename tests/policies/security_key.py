"""A security key, as a person holds it: it answers as a browser would pass it on."""

from __future__ import annotations

import hashlib
import json
import secrets
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from django.conf import settings
from fido2.cose import ES256
from fido2.utils import websafe_encode
from fido2.webauthn import (
    Aaguid,
    AttestationObject,
    AttestedCredentialData,
    AuthenticatorData,
    CollectedClientData,
)

from policies import passkeys
from policies.models import Person

FLAG = AuthenticatorData.FLAG
PRESENT, VERIFIED = FLAG.UP, FLAG.UP | FLAG.UV


class SecurityKey:
    """A key with one passkey. `count` is what it counted, 0 for ever where None."""

    def __init__(self, person: Person, count: int | None = 0) -> None:
        self.person, self.count = person, count
        self.id = secrets.token_bytes(32)
        self.private = ec.generate_private_key(ec.SECP256R1())
        self.origin = settings.COUNTERSEAL.base_url

    def make(self, options: dict[str, Any]) -> str:
        """The answer to `navigator.credentials.create`."""
        public = ES256.from_cryptography_key(self.private.public_key())
        made = AttestedCredentialData.create(Aaguid.NONE, self.id, public)
        data = self._build_data(options["rp"]["id"], VERIFIED | FLAG.AT, bytes(made))
        client = self._build_client("webauthn.create", options["challenge"])
        shown = AttestationObject.create("none", data, {})
        return self._pack(clientDataJSON=client, attestationObject=shown)

    def sign(self, options: dict[str, Any], flags: FLAG = VERIFIED) -> str:
        """The answer to `navigator.credentials.get`."""
        if self.count is not None:
            self.count += 1
        data = self._build_data(options["rpId"], flags)
        client = self._build_client("webauthn.get", options["challenge"])
        signed = data + hashlib.sha256(client).digest()
        return self._pack(
            clientDataJSON=client,
            authenticatorData=data,
            signature=self.private.sign(signed, ec.ECDSA(SHA256())),
            userHandle=self.person.public_id.encode(),
        )

    def _build_data(self, host: str, flags: FLAG, made: bytes = b"") -> Any:
        digest = hashlib.sha256(host.encode()).digest()
        return AuthenticatorData.create(digest, flags, self.count or 0, made)

    def _build_client(self, kind: str, challenge: str) -> bytes:
        return CollectedClientData.create(kind, challenge, self.origin)

    def _pack(self, **parts: bytes) -> str:
        name = websafe_encode(self.id)
        response = {key: websafe_encode(value) for key, value in parts.items()}
        plain = {"id": name, "rawId": name, "type": "public-key"}
        return json.dumps({**plain, "response": response, "clientExtensionResults": {}})


def offer_passkeys(settings: Any) -> None:
    """The gate has an address for which browsers make passkeys."""
    changed = {"base_url": "http://localhost:8000"}
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=changed)


def give_key(
    person: Person, count: int | None = 0
) -> tuple[SecurityKey, tuple[str, ...]]:
    """A security key that the person added, and their recovery codes."""
    held = SecurityKey(person, count)
    answer = held.make(passkeys.build_creation_options(person))
    return held, tuple(passkeys.add_passkey(person, "Key", answer))
