"""SHA-256 and HMAC in Lua: the published examples, and random texts against Python's own, on every Lua of Debian."""

from __future__ import annotations

import hashlib
import hmac
import random
from importlib import resources

import pytest
from tests.unit.policy import lua_host

pytestmark = pytest.mark.parametrize(("program", "arithmetic"), lua_host.VARIANTS)

SOURCE = (resources.files("slurm_agent_tools") / "assets" / "hmac_sha256.lua").read_text()

FIPS_180_4 = {
    b"abc": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq":
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
    b"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu":
        "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1",
    b"": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
}  # fmt: skip

RFC_4231 = (
    (b"\x0b" * 20, b"Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
    (b"Jefe", b"what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
    (b"\xaa" * 20, b"\xdd" * 50, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"),
    (bytes(range(1, 26)), b"\xcd" * 50, "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"),
    (b"\x0c" * 20, b"Test With Truncation", "a3b6167473100ee06e0c796c2955552b"),
    (b"\xaa" * 131, b"Test Using Larger Than Block-Size Key - Hash Key First",
     "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"),
    (b"\xaa" * 131, (b"This is a test using a larger than block-size key and a larger than block-size data. The key needs"
     b" to be hashed before being used by the HMAC algorithm."),
     "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"),
)  # fmt: skip


def digests(program: str, arithmetic: str, calls: list[str]) -> list[str]:
    """What these expressions are, worked out with this arithmetic."""
    text = "\n".join([SOURCE, "print(ARITHMETIC)", *(f"print({call})" for call in calls)])
    first, *found = lua_host.run(program, text, bit=arithmetic != "a table").splitlines()
    assert first == arithmetic
    return found


def text_of(data: bytes) -> str:
    return lua_host.literal(data.decode("utf-8", "surrogateescape"))


def test_the_examples_of_fips_180_4(program: str, arithmetic: str):
    found = digests(program, arithmetic, [f"sha256({text_of(text)})" for text in FIPS_180_4])
    assert found == list(FIPS_180_4.values())


def test_the_vectors_of_rfc_4231(program: str, arithmetic: str):
    found = digests(program, arithmetic, [f"signer({text_of(key)})({text_of(data)})" for key, data, _ in RFC_4231])
    assert [text[: len(wanted)] for text, (_, _, wanted) in zip(found, RFC_4231, strict=True)] == [
        wanted for _, _, wanted in RFC_4231
    ]


def test_texts_of_every_length_around_a_block_are_as_python_hashes_them(program: str, arithmetic: str):
    chance = random.Random(4231)  # noqa: S311 - of tests
    texts = [chance.randbytes(length) for length in [*range(54, 67), *range(118, 130), 1000]]
    keys = [chance.randbytes(chance.choice([1, 32, 63, 64, 65, 200])) for _ in texts]
    assert digests(program, arithmetic, [f"sha256({text_of(text)})" for text in texts]) == [
        hashlib.sha256(text).hexdigest() for text in texts
    ]
    calls = [f"signer({text_of(key)})({text_of(text)})" for key, text in zip(keys, texts, strict=True)]
    assert digests(program, arithmetic, calls) == [
        hmac.new(key, text, hashlib.sha256).hexdigest() for key, text in zip(keys, texts, strict=True)
    ]
