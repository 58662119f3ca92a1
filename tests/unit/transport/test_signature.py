"""SSH signatures are verified here in the process, and just as ssh-keygen verifies them."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from hypothesis import given
from hypothesis import strategies as st

from slurm_agent_tools.errors import AgentToolsError, InputError
from slurm_agent_tools.models.allowed_signers import KEY_TYPES
from slurm_agent_tools.transport import signature

pytestmark = pytest.mark.proves("signatures-are-verified-here")

PLAN = "slurm-agent-tools approval\nid: a1\nsleep 60 # \u00e4\n"
NOW = datetime.now(UTC)
KINDS = {
    "ed25519": ["-t", "ed25519"],
    "nistp256": ["-t", "ecdsa", "-b", "256"],
    "nistp384": ["-t", "ecdsa", "-b", "384"],
    "nistp521": ["-t", "ecdsa", "-b", "521"],
    "rsa2048": ["-t", "rsa", "-b", "2048"],
    "rsa4096": ["-t", "rsa", "-b", "4096"],
}
SMALL = {"rsa1024": ["-t", "rsa", "-b", "1024"]}


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    for name, words in (KINDS | SMALL | {"eve": ["-t", "ed25519"]}).items():
        subprocess.run(["ssh-keygen", "-q", *words, "-N", "", "-C", name, "-f", str(folder / name)], check=True)
    return folder


def public(keys: Path, name: str) -> str:
    return " ".join((keys / f"{name}.pub").read_text().split()[:2])


def made(key: Path, text: str = PLAN, namespace: str = signature.NAMESPACE, *options: str) -> str:
    """What the real ssh-keygen signs."""
    words = ["ssh-keygen", "-q", "-Y", "sign", "-n", namespace, "-f", str(key), *options]
    return subprocess.run(words, input=text.encode(), check=True, capture_output=True).stdout.decode()


def theirs(folder: Path, signed: str, lines: list[str], who: str, text: str = PLAN) -> bool:
    """What the real ssh-keygen says of a signature."""
    (folder / "allowed").write_text("".join(f"{line}\n" for line in lines))
    (folder / "sig").write_text(signed)
    words = ["-Y", "verify", "-f", str(folder / "allowed"), "-I", who, "-n", signature.NAMESPACE]
    done = subprocess.run(
        ["ssh-keygen", *words, "-s", str(folder / "sig")], input=text.encode(), capture_output=True, check=False
    )
    return done.returncode == 0


def ours(signed: str, lines: list[str], who: str | None = None, text: str = PLAN) -> str | None:
    """Who signed; None where it does not count."""
    try:
        return signature.verify(text, signed, lines, now=NOW, who=who)
    except InputError:
        return None


# --- the kinds of keys ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hashed", ["sha256", "sha512"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_signature_by_each_kind_of_key_counts_as_it_does_for_ssh_keygen(keys, tmp_path, kind, hashed):
    signed, lines = (
        made(keys / kind, PLAN, signature.NAMESPACE, "-O", f"hashalg={hashed}"),
        [f"ada {public(keys, kind)}"],
    )
    assert ours(signed, lines) == "ada"
    assert theirs(tmp_path, signed, lines, "ada")
    for text in (PLAN + " ", PLAN[1:], ""):
        assert ours(signed, lines, text=text) is None
    assert ours(signed, [f"ada {public(keys, 'eve')}"]) is None


@pytest.mark.parametrize("kind", ["ed25519", "nistp256", "rsa2048"])
def test_no_byte_of_a_signature_can_be_changed(keys, tmp_path, kind):
    signed, lines = made(keys / kind), [f"ada {public(keys, kind)}"]
    raw = base64.b64decode("".join(signed.split("\n")[1:-2]))
    for place in range(len(raw)):
        for bit in (0x01, 0x80):
            changed = bytearray(raw)
            changed[place] ^= bit
            assert ours(armoured(bytes(changed)), lines) is None, place
    for odd in (raw + b"\0", raw[:-1], raw * 2, b"", raw[6:]):
        assert ours(armoured(odd), lines) is None
    assert ours(armoured(raw), lines) == "ada"


def test_a_short_rsa_key_does_not_count(keys):
    with pytest.raises(InputError, match="RSA key of 1024 bits"):
        signature.verify(PLAN, made(keys / "rsa1024"), [f"ada {public(keys, 'rsa1024')}"], now=NOW)


def test_an_rsa_signature_over_sha1_does_not_count(keys):
    key = serialization.load_ssh_private_key((keys / "rsa2048").read_bytes(), None)
    blob = base64.b64decode(public(keys, "rsa2048").split()[1])
    value = key.sign(covered(PLAN), padding.PKCS1v15(), hashes.SHA1())  # noqa: S303 - what has to be refused
    with pytest.raises(InputError, match="only rsa-sha2-512 or rsa-sha2-256 counts"):
        signature.verify(
            PLAN, sealed(blob, field(b"ssh-rsa") + field(value)), [f"ada {public(keys, 'rsa2048')}"], now=NOW
        )


# --- security keys: their signatures are made here, since there is no such key ---------------------------------------


def field(value: bytes) -> bytes:
    return len(value).to_bytes(4, "big") + value


def large(number: int) -> bytes:
    return field(number.to_bytes(number.bit_length() // 8 + 1, "big"))


def covered(text: str, namespace: str = signature.NAMESPACE) -> bytes:
    parts = (namespace.encode(), b"", b"sha512", hashlib.sha512(text.encode()).digest())
    return b"SSHSIG" + b"".join(field(part) for part in parts)


def sealed(key: bytes, inner: bytes, namespace: str = signature.NAMESPACE) -> str:
    parts = (key, namespace.encode(), b"", b"sha512", inner)
    return armoured(b"SSHSIG\0\0\0\1" + b"".join(field(part) for part in parts))


def armoured(raw: bytes) -> str:
    text = base64.b64encode(raw).decode()
    lines = [text[place : place + 70] for place in range(0, len(text), 70)]
    return "\n".join(["-----BEGIN SSH SIGNATURE-----", *lines, "-----END SSH SIGNATURE-----", ""])


class SecurityKey:
    """A security key in software. `line` is its public key, `signs` makes a signature with these flags."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        if "ed25519" in kind:
            self.key = ed25519.Ed25519PrivateKey.generate()
            how = serialization.Encoding.Raw, serialization.PublicFormat.Raw
            point = field(self.key.public_key().public_bytes(*how))
        else:
            self.key = ec.generate_private_key(ec.SECP256R1())
            how = serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
            point = field(b"nistp256") + field(self.key.public_key().public_bytes(*how))
        self.blob = field(kind.encode()) + point + field(b"ssh:")
        self.line = f"{kind} {base64.b64encode(self.blob).decode()}"

    def signs(self, text: str = PLAN, flags: int = 1) -> str:
        more = bytes([flags]) + (7).to_bytes(4, "big")
        data = hashlib.sha256(b"ssh:").digest() + more + hashlib.sha256(covered(text)).digest()
        if isinstance(self.key, ed25519.Ed25519PrivateKey):
            value = self.key.sign(data)
        else:
            first, second = decode_dss_signature(self.key.sign(data, ec.ECDSA(hashes.SHA256())))
            value = large(first) + large(second)
        return sealed(self.blob, field(self.kind.encode()) + field(value) + more)


SECURITY_KEYS = [kind for kind in KEY_TYPES if kind.startswith("sk-")]


@pytest.mark.parametrize("kind", SECURITY_KEYS)
def test_a_security_key_counts_with_a_touch_and_not_without(tmp_path, kind):
    key = SecurityKey(kind)
    lines = [f"ada {key.line}"]
    for flags in (1, 5):
        assert ours(key.signs(flags=flags), lines) == "ada"
        assert theirs(tmp_path, key.signs(flags=flags), lines, "ada")
    for flags in (0, 4):
        with pytest.raises(InputError, match="without a touch"):
            signature.verify(PLAN, key.signs(flags=flags), lines, now=NOW)
    assert ours(key.signs("another"), lines) is None
    for place in (-1, -5):  # its counter, and its flags
        raw = bytearray(base64.b64decode("".join(key.signs().split("\n")[1:-2])))
        raw[place] ^= 4
        assert ours(armoured(bytes(raw)), lines) is None


# --- who, for what, and when ---------------------------------------------------------------------------------------


DAY = timedelta(days=1)


def day(when: datetime) -> str:
    return f"{when:%Y%m%d}"


LINES: dict[str, Callable[[str], str]] = {
    "a name": lambda key: f"ada@lab {key}",
    "names": lambda key: f"bob@lab,ada@lab {key} a comment",
    "a pattern": lambda key: f"*@lab {key}",
    "one sign": lambda key: f"ad?@lab {key}",
    "a pattern but for somebody": lambda key: f"*@lab,!eve@lab {key}",
    "nobody": lambda key: f"ada@lab,!* {key}",
    "in quotes": lambda key: f'"ada@lab,bob@lab" {key}',
    "this use": lambda key: f'ada@lab namespaces="git,slurm-*" {key}',
    "another use": lambda key: f'ada@lab namespaces="git" {key}',
    "not this use": lambda key: f'ada@lab namespaces="*,!slurm-agent-tools" {key}',
    "valid": lambda key: f'ada@lab valid-after="{day(NOW - 3 * DAY)}",valid-before="{day(NOW + 3 * DAY)}" {key}',
    "valid to the second": lambda key: f'ada@lab VALID-AFTER="{NOW - 2 * DAY:%Y%m%d%H%M%S}Z" {key}',
    "expired": lambda key: f'ada@lab valid-before="{day(NOW - 2 * DAY)}" {key}',
    "not yet": lambda key: f'ada@lab valid-after="{NOW + 2 * DAY:%Y%m%d%H%M}" {key}',
}


@pytest.mark.parametrize("who", ["ada@lab", "bob@lab", "eve@lab", "ada@lab.evil", "*@lab", "x"])
@pytest.mark.parametrize("line", LINES)
def test_lines_of_allowed_signers_mean_what_they_mean_to_ssh_keygen(keys, tmp_path, line, who):
    lines, signed = [LINES[line](public(keys, "ed25519"))], made(keys / "ed25519")
    assert (ours(signed, lines, who) == who) is theirs(tmp_path, signed, lines, who)


@pytest.mark.parametrize(
    ("line", "name"),
    [("names", "bob@lab"), ("in quotes", "ada@lab"), ("a pattern", None), ("nobody", None), ("expired", None)],
)
def test_without_a_claim_the_first_name_of_the_line_signed_and_a_pattern_is_nobody(keys, line, name):
    assert ours(made(keys / "ed25519"), [LINES[line](public(keys, "ed25519"))]) == name


def test_who_is_not_meant_is_told_why(keys):
    signed, key = made(keys / "ed25519"), public(keys, "ed25519")
    for line, who, said in (
        ("a pattern", None, "--principal"), ("expired", None, "counted only until"), ("not yet", None, "only from"),
        ("another use", None, "namespace"), ("a name", "eve@lab", "does not count for eve@lab"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=said):
            signature.verify(PLAN, signed, [LINES[line](key)], now=NOW, who=who)


def test_a_signature_for_another_namespace_does_not_count(keys, tmp_path):
    signed, lines = made(keys / "ed25519", PLAN, "git"), [f"ada {public(keys, 'ed25519')}"]
    assert (ours(signed, lines), theirs(tmp_path, signed, lines, "ada")) == (None, False)


def test_a_later_line_can_let_the_same_key_sign(keys):
    key = public(keys, "ed25519")
    assert ours(made(keys / "ed25519"), [LINES["expired"](key), f"eve {public(keys, 'eve')}", f"ada {key}"]) == "ada"


def test_a_key_that_is_not_listed_any_more_does_not_count(keys):
    signed = made(keys / "ed25519")
    assert ours(signed, [f"ada {public(keys, 'ed25519')}"]) == "ada"
    assert ours(signed, [f"eve {public(keys, 'eve')}"]) is None


@pytest.mark.parametrize("zone", ["Etc/GMT+12", "Etc/GMT-14"])
def test_the_time_zone_of_the_process_moves_no_limit(keys, monkeypatch, zone):
    monkeypatch.setenv("TZ", zone)
    key = public(keys, "ed25519")
    local = NOW.astimezone(signature.allowed_signers._machine_zone())
    for shift, counts in ((-timedelta(hours=1), None), (timedelta(hours=1), "ada")):
        line = f'ada valid-before="{local + shift:%Y%m%d%H%M%S}" {key}'
        assert ours(made(keys / "ed25519"), [line]) == counts


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ada cert-authority {key}", "cert-authority is not supported"),
        ('ada namespaces="git",cert-authority {key}', "cert-authority is not supported"),
        ('ada zone="x" {key}', "neither an option"),
        ("ada namespaces {key}", "no value"),
        ('ada namespaces="a",namespaces="b" {key}', "twice"),
        ('ada valid-after="2027-01-31" {key}', "no time"),
        ('ada valid-after="20271399" {key}', "no time that there is"),
        ('ada valid-after="20280101",valid-before="20270101" {key}', "behind"),
        ("ada ssh-dss AAAA", "kind of key"),
        ("ada ssh-ed25519-cert-v01@openssh.com AAAA", "kind of key"),
        ("ada ssh-ed25519", "kind of key"),
        ("ada ssh-ed25519 %%%", "base64"),
        ("ada ssh-ed25519 AAAAB3NzaC1yc2E=", "not of that kind"),
        ("{key}", "kind of key"),
        ("ada", "principal"),
        ("ada,, {key}", "empty principal"),
        ("! {key}", "empty principal"),
        ("# ada", "not one line"),
        ("", "not one line"),
        ("ada {key}\neve x", "not one line"),
    ],
)
def test_a_line_that_cannot_be_read_is_an_error_and_never_skipped(keys, line, said):
    key = public(keys, "ed25519")
    with pytest.raises(InputError, match=said):
        signature.verify(PLAN, made(keys / "ed25519"), [f"ada {key}", line.format(key=key)], now=NOW)


# --- no program has a say -----------------------------------------------------------------------------------------


@pytest.fixture
def forger(tmp_path, monkeypatch) -> Path:
    """An ssh-keygen that says yes to everything stands first in the PATH."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "ssh-keygen"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\necho ada\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    return tmp_path / "asked"


def test_an_ssh_keygen_in_the_path_forges_nothing_and_is_not_asked(keys, forger):
    lines = [f"ada {public(keys, 'ed25519')}"]
    for forged in ("-----BEGIN SSH SIGNATURE-----\nforged", armoured(b"SSHSIG" + bytes(200)), armoured(b"x")):
        assert ours(forged, lines) is None
    assert not forger.exists()


async def test_an_ssh_keygen_in_the_path_is_not_given_a_key_to_sign_with(keys, forger):
    signed = await signature.sign(PLAN, keys / "ed25519")
    assert ours(signed, [f"ada {public(keys, 'ed25519')}"]) == "ada"
    assert not forger.exists()


async def test_an_ssh_keygen_that_others_could_change_signs_nothing(keys, tmp_path, monkeypatch):
    copy = tmp_path / "ssh-keygen"
    shutil.copy("/usr/bin/ssh-keygen", copy)
    copy.chmod(0o777)
    monkeypatch.setattr(signature, "_PROGRAMS", (str(copy), str(tmp_path / "none")))
    with pytest.raises(AgentToolsError, match="the system has no ssh-keygen"):
        await signature.sign(PLAN, keys / "ed25519")


@pytest.mark.parametrize(
    "text", ["", "yes", "-----BEGIN SSH SIGNATURE-----", "-----BEGIN SSH SIGNATURE-----" + "A" * 70_000]
)
def test_what_is_no_signature_is_told(keys, text):
    with pytest.raises(InputError, match="is not an SSH signature"):
        signature.verify(PLAN, text, [f"ada {public(keys, 'ed25519')}"], now=NOW)


# --- whatever somebody sends -----------------------------------------------------------------------------------------


@given(st.data())
def test_no_text_and_no_bytes_are_more_than_an_input_error(data):
    key = SecurityKey("sk-ssh-ed25519@openssh.com")
    raw = bytearray(base64.b64decode("".join(key.signs().split("\n")[1:-2])))
    at = data.draw(st.integers(0, len(raw)))
    raw[at : at + data.draw(st.integers(0, 8))] = data.draw(st.binary(max_size=12))
    odd = data.draw(st.sampled_from([armoured(bytes(raw)), data.draw(st.text()), armoured(data.draw(st.binary()))]))
    if odd != key.signs():
        with pytest.raises(InputError):
            signature.verify(PLAN, odd, [f"ada {key.line}"], now=NOW)


@given(st.text(alphabet='ada@lab ,!*?"=\\\t#namespaces="valid-after" ssh-ed25519 AAAAC3', max_size=80))
def test_no_line_is_more_than_a_value_error(text):
    try:
        found = signature.allowed_signers.parse(text)
    except ValueError:
        return
    assert found.principals
    assert found.key
