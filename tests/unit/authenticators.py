"""A passkey in software: it makes keys and answers as an authenticator and its browser do, or as a faulty one would."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from slurm_agent_tools.models.allowed_passkeys import AllowedPasskey, encoded

PRESENT, VERIFIED, HAS_KEY = 0x01, 0x04, 0x40


@dataclass
class Authenticator:
    """One key for one name. `count` grows with each answer, unless it is None: then the key does not count."""

    key_id: bytes = b"key-of-ada"
    count: int | None = 0
    private: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    @property
    def public(self) -> bytes:
        """The public half as COSE writes it."""
        point = self.private.public_key().public_numbers()
        return cbor2.dumps({1: 2, 3: -7, -1: 1, -2: point.x.to_bytes(32, "big"), -3: point.y.to_bytes(32, "big")})

    def allowed(self, name: str = "ada", origin: str = "http://localhost") -> AllowedPasskey:
        return AllowedPasskey(name, origin, self.key_id, self.public)

    def answer(
        self, challenge: bytes, origin: str = "http://localhost:8000", rp_id: str = "localhost", *,
        verified: bool = True, kind: str = "webauthn.get", embedded: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        """What `credential.toJSON()` gives a page."""
        if self.count is not None:
            self.count += 1
        flags = PRESENT | (VERIFIED if verified else 0)
        data = hashlib.sha256(rp_id.encode()).digest() + bytes([flags]) + (self.count or 0).to_bytes(4, "big")
        client = self._client(kind, challenge, origin, embedded)
        signed = self.private.sign(data + hashlib.sha256(client).digest(), ec.ECDSA(hashes.SHA256()))
        parts = {"authenticatorData": data, "clientDataJSON": client, "signature": signed}
        return self._credential({name: encoded(part) for name, part in parts.items()})

    def made(self, challenge: bytes, origin: str, rp_id: str = "localhost", *, verified: bool = True) -> dict[str, Any]:
        """What a page gets of a new key."""
        flags = PRESENT | HAS_KEY | (VERIFIED if verified else 0)
        known = bytes(16) + len(self.key_id).to_bytes(2, "big") + self.key_id + self.public
        data = hashlib.sha256(rp_id.encode()).digest() + bytes([flags]) + bytes(4) + known
        attested = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})
        client = self._client("webauthn.create", challenge, origin, embedded=False)
        return self._credential({"attestationObject": encoded(attested), "clientDataJSON": encoded(client)})

    def _client(self, kind: str, challenge: bytes, origin: str, embedded: bool) -> bytes:
        said = {"type": kind, "challenge": encoded(challenge), "origin": origin, "crossOrigin": embedded}
        return json.dumps(said).encode()

    def _credential(self, response: dict[str, str]) -> dict[str, Any]:
        name = encoded(self.key_id)
        return {"id": name, "rawId": name, "type": "public-key", "response": response, "clientExtensionResults": {}}
