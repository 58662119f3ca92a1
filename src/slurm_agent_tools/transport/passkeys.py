"""Answers of passkeys to a plan (WebAuthn): what is asked of them, and whether an answer counts. Nothing is kept here.

What a passkey signs is a challenge: a hash over a number that is used once and the whole text that the person read. So
the answer is a yes to that text and to no other, and can be verified again when the yes is used.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from slurm_agent_tools.errors import AgentToolsError
from slurm_agent_tools.models import allowed_passkeys
from slurm_agent_tools.models.allowed_passkeys import AllowedPasskey, decoded, encoded

if TYPE_CHECKING:
    from webauthn.helpers.structs import AuthenticationCredential

_PURPOSE = b"slurm-agent-tools approval by passkey\0"

_LARGEST = 16 * 1024


class PasskeyRefused(AgentToolsError):
    """An answer that is no yes. `fault`: the check that it did not pass, in a word or two."""

    def __init__(self, fault: str, message: str, hint: str = "Nothing was approved.") -> None:
        super().__init__(message, hint=hint)
        self.fault = fault


@dataclass(frozen=True, slots=True)
class PasskeyAnswer:
    """What an authenticator answered to the challenge of one plan, each part as base64url: the receipt of a yes."""

    nonce: str
    key_id: str
    authenticator_data: str
    client_data: str
    signature: str

    @classmethod
    def of(cls, nonce: bytes, answer: Any) -> PasskeyAnswer:
        """From the JSON of a browser's credential. Raises PasskeyRefused."""
        try:
            parts, key_id = answer["response"], answer["rawId"]
            found = (key_id, parts["authenticatorData"], parts["clientDataJSON"], parts["signature"])
            return cls(encoded(nonce), *(encoded(decoded(part)) for part in found))
        except (KeyError, TypeError, ValueError) as error:
            raise PasskeyRefused("unreadable", "The answer of the passkey cannot be read") from error

    @classmethod
    def read(cls, text: str) -> PasskeyAnswer:
        """As `text` wrote it. Raises PasskeyRefused."""
        try:
            return cls(**{name: encoded(decoded(part)) for name, part in json.loads(text[:_LARGEST]).items()})
        except (AttributeError, TypeError, ValueError, RecursionError) as error:
            raise PasskeyRefused("unreadable", "What was kept of the answer cannot be read") from error

    @property
    def text(self) -> str:
        """As the ledger keeps it."""
        return json.dumps(asdict(self))

    @property
    def count(self) -> int:
        """How often the key says that it was used; 0 where it does not count. Raises PasskeyRefused."""
        data = decoded(self.authenticator_data)
        if len(data) < 37:
            raise PasskeyRefused("unreadable", "The answer of the passkey cannot be read")
        return int.from_bytes(data[33:37], "big")


@dataclass(frozen=True, slots=True)
class PasskeyYes:
    """A yes that counts: whose key, and its count."""

    by: str
    key: AllowedPasskey


def challenge(plan: str, nonce: bytes) -> bytes:
    """What a passkey signs for this text, all of it, and this number."""
    return hashlib.sha256(_PURPOSE + nonce + hashlib.sha256(plan.encode("utf-8", "surrogatepass")).digest()).digest()


def listed(lines: Iterable[str]) -> list[AllowedPasskey]:
    """The keys of a list that was read before. Raises ValueError."""
    return [allowed_passkeys.parse(line) for line in lines]


def verify(
    plan: str, answer: PasskeyAnswer, lines: Iterable[str], *, origins: Collection[str] | None = None, count: int = 0
) -> PasskeyYes:
    """Whose yes to this very text it is. `origins` of the page that asked, None where only the key's line says so.

    `count`: of an earlier answer by this key, which this one must be beyond, unless the key does not count. Raises
    PasskeyRefused, and AgentToolsError where the extra is not installed.
    """
    key = next((one for one in listed(lines) if encoded(one.key_id) == answer.key_id), None)
    if key is None:
        raise PasskeyRefused("unknown key", "The passkey is not enrolled")
    structs = _library()
    expected = challenge(plan, decoded(answer.nonce))
    origin = _checked(answer, key, expected, origins)
    if answer.count <= count and (answer.count or count):
        raise PasskeyRefused("counter", f"The passkey's counter is {answer.count}, and was {count} before: a copy?")
    from webauthn import verify_authentication_response  # noqa: PLC0415 - as in _library
    from webauthn.helpers.exceptions import WebAuthnException  # noqa: PLC0415 - as in _library

    try:
        verify_authentication_response(
            credential=_credential(answer, structs), expected_challenge=expected, expected_rp_id=key.rp_id,
            expected_origin=origin, credential_public_key=key.key, credential_current_sign_count=count,
            require_user_verification=True,
        )  # fmt: skip
    except (WebAuthnException, ValueError, TypeError, KeyError) as error:
        raise PasskeyRefused("signature", "The signature of the passkey does not fit") from error
    return PasskeyYes(key.name, key)


def _checked(answer: PasskeyAnswer, key: AllowedPasskey, expected: bytes, origins: Collection[str] | None) -> str:
    """The origin of an answer to this challenge; each fault by its name, which the library does not tell."""
    try:
        said = json.loads(decoded(answer.client_data))
        asked, origin, embedded = decoded(str(said["challenge"])), str(said["origin"]), said.get("crossOrigin", False)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise PasskeyRefused("unreadable", "The answer of the passkey cannot be read") from error
    if asked != expected:
        raise PasskeyRefused("another question", "The passkey answered another question: an older one, or another plan")
    if embedded is not False or not key.counts_at(origin) or (origins is not None and origin not in origins):
        raise PasskeyRefused("another origin", f"The passkey was asked by a page of {origin[:200]!r}, not by this one")
    verified = 0x04
    if answer.count >= 0 and not decoded(answer.authenticator_data)[32] & verified:
        told = "The passkey did not check who was there: it needs a PIN, a finger or a face"
        raise PasskeyRefused("no user verification", told)
    return origin


def check_installed() -> None:
    """Raises AgentToolsError without the extra."""
    _library()


def _library() -> Any:
    """py_webauthn, which few need. Raises AgentToolsError without it."""
    try:
        from webauthn.helpers import structs  # noqa: PLC0415 - it takes 170 ms to load
    except ImportError as error:
        hint = "Install it: pip install 'slurm-agent-tools[passkey]'"
        raise AgentToolsError("Passkeys need the extra passkey, which is not installed", hint=hint) from error
    return structs


def _credential(answer: PasskeyAnswer, structs: Any) -> AuthenticationCredential:
    made: AuthenticationCredential = structs.AuthenticationCredential(
        id=answer.key_id,
        raw_id=decoded(answer.key_id),
        response=structs.AuthenticatorAssertionResponse(
            client_data_json=decoded(answer.client_data),
            authenticator_data=decoded(answer.authenticator_data),
            signature=decoded(answer.signature),
        ),
    )
    return made


# --- What a page hands to the browser -------------------------------------------------------------------------------


def asked(keys: Iterable[AllowedPasskey], made: bytes) -> dict[str, Any]:
    """The options of `navigator.credentials.get` as JSON for these keys, which are of one name."""
    known = list(keys)
    return {
        "challenge": encoded(made),
        "rpId": known[0].rp_id,
        "timeout": 120_000,
        "userVerification": "required",
        "allowCredentials": [{"type": "public-key", "id": encoded(key.key_id)} for key in known],
    }


def offered(name: str, origin: str, made: bytes, user: bytes) -> dict[str, Any]:
    """The options of `navigator.credentials.create` as JSON, for a new key. Raises AgentToolsError."""
    _library()
    from webauthn import generate_registration_options, options_to_json  # noqa: PLC0415 - as in _library
    from webauthn.helpers.structs import (  # noqa: PLC0415 - as in _library
        AuthenticatorSelectionCriteria,
        UserVerificationRequirement,
    )

    options = generate_registration_options(
        rp_id=AllowedPasskey(name, origin, b"", b"").rp_id, rp_name="slurm-agent-tools", user_name=name, user_id=user,
        challenge=made, timeout=300_000,
        authenticator_selection=AuthenticatorSelectionCriteria(user_verification=UserVerificationRequirement.REQUIRED),
    )  # fmt: skip
    return dict(json.loads(options_to_json(options)))


def made_key(answer: Any, *, name: str, origin: str, page: str, made: bytes) -> AllowedPasskey:
    """The key that a browser made for the origin, asked by a page of `page`. Raises PasskeyRefused, AgentToolsError."""
    _library()
    from webauthn import verify_registration_response  # noqa: PLC0415 - as in _library
    from webauthn.helpers.exceptions import WebAuthnException  # noqa: PLC0415 - as in _library

    rp_id = AllowedPasskey(name, origin, b"", b"").rp_id
    try:
        found = verify_registration_response(
            credential=answer, expected_challenge=made, expected_rp_id=rp_id, expected_origin=page,
            require_user_verification=True,
        )  # fmt: skip
    except (WebAuthnException, ValueError, TypeError, KeyError) as error:
        raise PasskeyRefused("unreadable", f"The new passkey does not count: {str(error)[:200]}") from error
    return AllowedPasskey(name, origin, found.credential_id, found.credential_public_key)
