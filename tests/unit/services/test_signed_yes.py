"""A person's yes by a signature: it counts for one plan, by a key that the policy lists, and by no program's word."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.unit.services.scenes import NEEDS_A_PERSON, Scene
from tests.unit.services.test_persons_yes import at_the_terminal, question, under_a_site

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.transport import signature

# --- by a signature -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two keys: of ada and of somebody."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("ada", "somebody"):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name)]
        subprocess.run(words, check=True)
    return folder


@pytest.fixture
def signing(scene: Scene, keys: Path) -> Scene:
    """A script that needs a person, and a policy that lists ada's key."""
    scene.write("train.sh", NEEDS_A_PERSON)
    scene.policy(allowed_signers=[f"ada {(keys / 'ada.pub').read_text().strip()}"])
    return scene


async def signed(scene: Scene, key: Path, text: str | None = None) -> None:
    item = question(scene)
    written = await signature.sign(item.plan if text is None else text, key)
    at_the_terminal(scene, channel="signed", granted_by="ada", signature=written)


async def test_a_listed_signature_over_the_plan_counts_and_names_its_key(signing: Scene, keys: Path):
    await signing.submit()
    await signed(signing, keys / "ada")

    assert (await signing.submit()).status == "submitted"
    (sent,) = signing.lines("submitted")
    assert (sent["approval"]["channel"], sent["approval"]["by"]) == ("signed", "ada")


async def signed_under_a_site(scene: Scene, keys: Path) -> None:
    """A request that needs a person, signed by the one whom the site lists."""
    scene.write("train.sh", NEEDS_A_PERSON)
    line = f"ada {' '.join((keys / 'ada.pub').read_text().split()[:2])}"
    under_a_site(scene, f"allowed_signers: ['{line}']\n")
    await scene.submit()
    await signed(scene, keys / "ada")


@pytest.mark.proves("site-counts-signatures")
async def test_under_a_sites_policy_a_signature_by_its_list_counts_and_is_called_so(scene: Scene, keys: Path):
    await signed_under_a_site(scene, keys)
    reply = await scene.submit()
    assert (reply.status, reply.decision.approval.worth) == ("submitted", "a signature by a key that the site lists")


async def test_a_used_signature_that_a_job_marks_as_unused_counts_until_it_expires(scene: Scene, keys: Path):
    """What SECURITY.md says of it: a shell of the same user writes the ledger."""
    await signed_under_a_site(scene, keys)
    first = await scene.submit()
    await scene.wait(first.job_id)
    await scene.cancel(first.job_id)
    with closing(sqlite3.connect(scene.context.store.path, timeout=10)) as db, db:
        db.execute("UPDATE approvals SET used = NULL")

    again = await scene.submit()
    scene.slurm.clock.move(3601)
    with closing(sqlite3.connect(scene.context.store.path, timeout=10)) as db, db:
        db.execute("UPDATE approvals SET used = NULL, expires = expires + 1e6, granted = granted + 3601")
    late = await scene.submit(idempotency_key="late")

    assert (first.status, again.status, late.status) == ("submitted", "submitted", "blocked")


async def test_a_signature_over_another_text_or_by_another_key_does_not_count(signing: Scene, keys: Path):
    await signing.submit()
    await signed(signing, keys / "ada", "another plan")
    assert (await signing.submit()).status == "blocked"

    (item,) = [one for one in signing.context.store.approvals.open(signing.context.owner) if one.granted]
    foreign = await signature.sign(item.plan, keys / "somebody")
    signing.context.store.approvals.update(item, signature=foreign)
    assert (await signing.submit()).status == "blocked"


async def test_a_program_that_calls_itself_ssh_keygen_gives_no_yes(signing: Scene, tmp_path: Path, monkeypatch):
    program = tmp_path / "bin" / "ssh-keygen"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho ada\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    await signing.submit()
    at_the_terminal(signing, channel="signed", granted_by="ada", signature="-----BEGIN SSH SIGNATURE-----\nforged\n")
    assert (await signing.submit()).status == "blocked"


async def test_a_yes_by_a_key_that_was_struck_off_since_does_not_count(signing: Scene, keys: Path):
    await signing.submit()
    await signed(signing, keys / "ada")
    signing.policy(allowed_signers=[f"ada {(keys / 'somebody.pub').read_text().strip()}"])
    assert (await signing.submit()).status == "blocked"


async def test_a_yes_counts_for_the_one_whom_its_key_may_sign_for(signing: Scene, keys: Path):
    signing.policy(allowed_signers=[f"*@lab {(keys / 'ada.pub').read_text().strip()}"])
    await signing.submit()
    await signed(signing, keys / "ada")
    assert (await signing.submit()).status == "blocked"  # it says that ada signed, who is not of the lab

    (item,) = [one for one in signing.context.store.approvals.open(signing.context.owner) if one.granted]
    signing.context.store.approvals.update(item, granted_by="bob@lab")
    reply = await signing.submit()
    assert (reply.status, reply.decision.approval.by) == ("submitted", "bob@lab")


@pytest.mark.parametrize(
    ("text", "listed", "field"),
    [("-----BEGIN SSH SIGNATURE-----\nx", False, "allowed_signers"), ("yes", True, "signature")],
)
def test_what_is_no_signature_is_named(keys: Path, text: str, listed: bool, field: str):
    signers = [f"ada {(keys / 'ada.pub').read_text().strip()}"] if listed else []
    with pytest.raises(InputError) as caught:
        signature.verify("plan", text, signers, now=datetime.now(UTC))
    assert caught.value.field == field


async def test_who_signed_is_said_and_a_stranger_is_nobody(keys: Path):
    signers = [f"ada {(keys / 'ada.pub').read_text().strip()}"]
    assert signature.verify("plan", await signature.sign("plan", keys / "ada"), signers, now=datetime.now(UTC)) == "ada"
    with pytest.raises(InputError, match="by nobody whom the policy lists"):
        signature.verify("plan", await signature.sign("plan", keys / "somebody"), signers, now=datetime.now(UTC))
    with pytest.raises(InputError, match="does not fit this plan"):
        signature.verify("plan!", await signature.sign("plan", keys / "ada"), signers, now=datetime.now(UTC))


async def test_a_key_that_cannot_sign_is_named(tmp_path: Path):
    with pytest.raises(InputError, match="could not be used to sign"):
        await signature.sign("plan", tmp_path / "none")
