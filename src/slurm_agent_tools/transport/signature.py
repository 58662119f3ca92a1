"""SSH signatures over a plan: made with a person's own key by ssh-keygen, verified here in the process.

The format is OpenSSH's PROTOCOL.sshsig. No program has a say in whether a signature counts.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from slurm_agent_tools.errors import AgentToolsError, InputError
from slurm_agent_tools.models import allowed_signers
from slurm_agent_tools.models.allowed_signers import AllowedSigner
from slurm_agent_tools.transport import process

NAMESPACE = "slurm-agent-tools"

_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"

_LIMIT = 64 * 1024

_LEAST_RSA, _MOST_RSA = 2048, 16384
"""Bits of an RSA key that counts: shorter ones can be broken, longer ones only cost time."""

_TOUCHED = 0x01
"""The flag by which a security key says that somebody was there."""

_CURVES: dict[str, tuple[ec.EllipticCurve, hashes.HashAlgorithm]] = {
    "nistp256": (ec.SECP256R1(), hashes.SHA256()),
    "nistp384": (ec.SECP384R1(), hashes.SHA384()),
    "nistp521": (ec.SECP521R1(), hashes.SHA512()),
}

_HINT = "Sign exactly what `slurm-agent-tools approve ID --show` prints, with a key that the policy lists."

_PROGRAMS = ("/usr/bin/ssh-keygen", "/usr/local/bin/ssh-keygen", r"C:\Windows\System32\OpenSSH\ssh-keygen.exe")


class _Odd(ValueError):
    """Bytes that are no signature, or one of a kind that does not count."""


class _Fields:
    """Reads the fields of OpenSSH's binary formats one after the other. Raises _Odd."""

    def __init__(self, data: bytes) -> None:
        self._data, self._place = data, 0

    def take(self, count: int) -> bytes:
        """That many bytes."""
        found = self._data[self._place : self._place + count]
        if len(found) != count:
            raise _Odd("ends too early")
        self._place += count
        return found

    def number(self) -> int:
        """Four bytes."""
        return int.from_bytes(self.take(4), "big")

    def field(self) -> bytes:
        """Bytes behind their count."""
        return self.take(self.number())

    def text(self) -> str:
        """Such bytes, as a name."""
        return self.field().decode("ascii", "backslashreplace")

    def large(self) -> int:
        """A number of any length that is not negative."""
        found = self.field()
        if found[:1] >= b"\x80":
            raise _Odd("holds a negative number")
        return int.from_bytes(found, "big")

    def end(self) -> None:
        """Nothing may follow."""
        if self._place != len(self._data):
            raise _Odd("has bytes behind its end")


@dataclass(frozen=True, slots=True)
class _Signature:
    """What an armoured signature holds. `kind` and `data` are the signature itself."""

    key: bytes
    namespace: str
    reserved: bytes
    hashed_with: str
    kind: str
    data: _Fields

    def covered(self, message: bytes) -> bytes:
        """The bytes that were signed for this message."""
        made = {"sha256": hashlib.sha256, "sha512": hashlib.sha512}.get(self.hashed_with)
        if made is None:
            raise _Odd(f"is over a hash {self.hashed_with!r}, which does not count")
        parts = (self.namespace.encode(), self.reserved, self.hashed_with.encode(), made(message).digest())
        return b"SSHSIG" + b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def verify(plan: str, signed: str, signers: Sequence[str], *, now: datetime, who: str | None = None) -> str:
    """Who signed the plan, by the name in a line of the allowed signers. Raises InputError for what does not count.

    `who` is the principal that it shall count for: needed where a line names patterns alone.
    """
    if not signers:
        hint = "An administrator lists `allowed_signers` in the site's policy."
        raise InputError("allowed_signers", "", "is empty in the policy: no signature counts", hint=hint)
    listed = _listed(signers)
    try:
        signature = _read(signed)
        fitting = [one for one in listed if one.key == signature.key]
        if not fitting:
            raise InputError("signature", signed[:40], "is by nobody whom the policy lists", hint=_HINT)
        name = _name(fitting, who, signature.namespace, now)
        _check(signature, plan.encode())
    except _Odd as error:
        raise InputError("signature", signed[:40], str(error), hint="Sign with `ssh-keygen -Y sign`.") from error
    except InvalidSignature as error:
        raise InputError("signature", signed[:40], "does not fit this plan", hint=_HINT) from error
    return name


def _listed(signers: Sequence[str]) -> list[AllowedSigner]:
    try:
        return [allowed_signers.parse(line) for line in signers]
    except ValueError as error:
        raise InputError("allowed_signers", "", str(error), hint="An administrator mends the site's policy.") from error


def _name(fitting: Sequence[AllowedSigner], who: str | None, namespace: str, now: datetime) -> str:
    """The principal of the first line that lets this key sign. Raises InputError."""
    problems = []
    for line in fitting:
        name = who or line.name
        problem = "names nobody by itself: say who with --principal" if name is None else None
        if name is not None:
            problem = line.refuses(name, NAMESPACE, now)
            if problem is None and namespace != NAMESPACE:
                problem = f"was made for the namespace {namespace!a}, not for {NAMESPACE}"
            if problem is None:
                return name
        problems.append(f"is by a key of {','.join(line.principals)} that {problem}")
    raise InputError("signature", who or "", problems[0], hint=_HINT)


def _read(signed: str) -> _Signature:
    body = signed.strip()
    if len(signed) > _LIMIT or not (body.startswith(_BEGIN) and body.endswith(_END)):
        raise _Odd("is not an SSH signature")
    try:
        text = "".join(body[len(_BEGIN) : -len(_END)].split())
        fields = _Fields(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError) as error:
        raise _Odd("is not an SSH signature: it is not base64") from error
    if fields.take(6) != b"SSHSIG" or fields.number() != 1:
        raise _Odd("is not an SSH signature of version 1")
    key, namespace, reserved, hashed_with = fields.field(), fields.text(), fields.field(), fields.text()
    inner = _Fields(fields.field())
    fields.end()
    return _Signature(key, namespace, reserved, hashed_with, inner.text(), inner)


def _check(signature: _Signature, message: bytes) -> None:
    """Raises InvalidSignature where it does not fit, and _Odd where it or its key is of a kind that does not count."""
    key = _Fields(signature.key)
    kind = key.text()
    check = _CHECKS.get(kind)
    if check is None:
        raise _Odd(f"is by a key of the kind {kind!a}, which does not count")
    try:
        check(kind, key, signature, signature.covered(message))
    except _Odd:
        raise
    except (ValueError, UnsupportedAlgorithm) as error:  # cryptography's words for a key that is none
        raise _Odd("is by a key that cannot be read") from error


def _same(signature: _Signature, *kinds: str) -> None:
    if signature.kind not in kinds:
        raise _Odd(f"is of the kind {signature.kind!a}; with this key only {' or '.join(kinds)} counts")


def _ed25519(kind: str, key: _Fields, signature: _Signature, covered: bytes) -> None:
    _same(signature, kind)
    public = ed25519.Ed25519PublicKey.from_public_bytes(key.field())
    value = signature.data.field()
    if kind.startswith("sk-"):
        covered = _touched(key, signature, covered)
    key.end()
    signature.data.end()
    public.verify(value, covered)


def _ecdsa(kind: str, key: _Fields, signature: _Signature, covered: bytes) -> None:
    _same(signature, kind)
    name = key.text()
    if kind.split("@", maxsplit=1)[0].rsplit("-", 1)[-1] != name:
        raise _Odd("is by a key whose curve is not that of its kind")
    curve, hashed = _CURVES[name]
    point = key.field()
    if point[:1] != b"\x04":
        raise _Odd("is by a key that cannot be read")
    public = ec.EllipticCurvePublicKey.from_encoded_point(curve, point)
    numbers = _Fields(signature.data.field())
    first, second = numbers.large(), numbers.large()
    numbers.end()
    if kind.startswith("sk-"):
        covered = _touched(key, signature, covered)
    key.end()
    signature.data.end()
    public.verify(encode_dss_signature(first, second), covered, ec.ECDSA(hashed))


def _rsa(_: str, key: _Fields, signature: _Signature, covered: bytes) -> None:
    _same(signature, "rsa-sha2-512", "rsa-sha2-256")
    exponent, modulus = key.large(), key.large()
    key.end()
    if not _LEAST_RSA <= modulus.bit_length() <= _MOST_RSA:
        raise _Odd(f"is by an RSA key of {modulus.bit_length()} bits; {_LEAST_RSA} to {_MOST_RSA} count")
    value = signature.data.field()
    signature.data.end()
    hashed = hashes.SHA512() if signature.kind == "rsa-sha2-512" else hashes.SHA256()
    whole = value.rjust((modulus.bit_length() + 7) // 8, b"\0")  # leading zeros may be left out
    rsa.RSAPublicNumbers(exponent, modulus).public_key().verify(whole, covered, padding.PKCS1v15(), hashed)


def _touched(key: _Fields, signature: _Signature, covered: bytes) -> bytes:
    """What a security key signs: its purpose, that somebody was there, its counter, and the hash of the rest."""
    purpose, flags, counter = key.field(), signature.data.take(1), signature.data.take(4)
    if not flags[0] & _TOUCHED:
        raise _Odd("was made by a security key without a touch")
    return hashlib.sha256(purpose).digest() + flags + counter + hashlib.sha256(covered).digest()


_CHECKS: dict[str, Callable[[str, _Fields, _Signature, bytes], None]] = {
    kind: _rsa if kind == "ssh-rsa" else _ecdsa if "ecdsa" in kind else _ed25519 for kind in allowed_signers.KEY_TYPES
}


# --- Signing, with a person's key: the one thing here that ssh-keygen does --------------------------------------------


async def sign(plan: str, key: Path) -> str:
    """The plan signed with a key; a touch is asked for by ssh-keygen itself. Raises InputError and AgentToolsError."""
    names = ("HOME", "SSH_AUTH_SOCK", "SystemRoot")
    env = {name: os.environ[name] for name in names if name in os.environ} | {"PATH": "/usr/bin:/bin"}
    words = [_program(), "-Y", "sign", "-n", NAMESPACE, "-f", str(key)]
    done = await process.run(words, stdin=plan.encode(), env=env, timeout=120)
    signed = done.stdout.decode("utf-8", "replace")
    if done.exit_code != 0 or _BEGIN not in signed:
        hint = "Unlock the key in your agent first, or sign by hand and give the file with --signature."
        raise InputError("sign", str(key), "could not be used to sign", hint=hint)
    return signed[signed.index(_BEGIN) :]


def _program() -> str:
    """The system's own ssh-keygen; one that others than root could change is passed by. Raises AgentToolsError."""
    found = next((path for path in _PROGRAMS if _of_the_system(path)), None)
    if found is None:
        hint = "Install the OpenSSH client, or sign elsewhere what --show prints, and give the file with --signature."
        raise AgentToolsError(f"the system has no ssh-keygen: looked for {', '.join(_PROGRAMS[:2])}", hint=hint)
    return found


def _of_the_system(path: str) -> bool:
    """Whether the file and every folder above it, links followed, are root's and nobody else can write them."""
    real = Path(os.path.realpath(path))
    try:
        places = [place.stat() for place in (real, *real.parents)]
    except OSError:
        return False
    return os.name == "nt" or all(one.st_uid == 0 and not one.st_mode & (stat.S_IWGRP | stat.S_IWOTH) for one in places)
