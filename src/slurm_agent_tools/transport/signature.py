"""SSH signatures over a plan: made with a person's own key, verified with `ssh-keygen -Y verify`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import anyio

from slurm_agent_tools.errors import AgentToolsError, InputError
from slurm_agent_tools.transport import process

NAMESPACE = "slurm-agent-tools"

_MARK = "-----BEGIN SSH SIGNATURE-----"

_LIMIT = 64 * 1024


async def verify(plan: str, signed: str, signers: Sequence[str]) -> str:
    """Who signed the plan, as the allowed signers name him. Raises InputError for a signature that does not count."""
    if not signers:
        hint = "An administrator lists `allowed_signers` in the site's policy."
        raise InputError("allowed_signers", "", "is empty in the policy: no signature counts", hint=hint)
    if not signed.startswith(_MARK) or len(signed) > _LIMIT:
        raise InputError("signature", signed[:40], "is not an SSH signature", hint="Sign with `ssh-keygen -Y sign`.")
    with tempfile.TemporaryDirectory(prefix="slurm-agent-") as folder:
        allowed, file = Path(folder, "allowed_signers"), Path(folder, "plan.sig")
        await anyio.Path(allowed).write_text("\n".join(signers) + "\n", encoding="utf-8")
        await anyio.Path(file).write_text(signed, encoding="utf-8")
        found = await _keygen(["find-principals", "-s", str(file), "-f", str(allowed)], b"")
        who = found.splitlines()[0].strip() if found else ""
        if not who:
            raise InputError("signature", signed[:40], "is by nobody whom the policy lists", hint=_HINT)
        checked = ["verify", "-f", str(allowed), "-I", who, "-n", NAMESPACE, "-s", str(file)]
        if await _keygen(checked, plan.encode()) is None:
            raise InputError("signature", who, "does not fit this plan", hint=_HINT)
        return who


async def sign(plan: str, key: Path) -> str:
    """The plan signed with a key; a passphrase or a touch is asked for by ssh-keygen itself. Raises InputError."""
    signed = await _keygen(["sign", "-n", NAMESPACE, "-f", str(key)], plan.encode(), seconds=120)
    if not signed or _MARK not in signed:
        hint = "Unlock the key in your agent first, or sign by hand and give the file with --signature."
        raise InputError("sign", str(key), "could not be used to sign", hint=hint)
    return signed[signed.index(_MARK) :]


_HINT = "Sign exactly what `slurm-agent-tools approve ID --show` prints, with a key that the policy lists."


async def _keygen(words: Sequence[str], text: bytes, *, seconds: float = 10) -> str | None:
    """What `ssh-keygen -Y` says; None where it says no. Raises AgentToolsError where it is not installed."""
    env = {name: os.environ[name] for name in ("PATH", "HOME", "SSH_AUTH_SOCK") if name in os.environ}
    try:
        done = await process.run(["ssh-keygen", "-Y", *words], stdin=text, env=env, timeout=seconds)
    except FileNotFoundError as error:
        raise AgentToolsError("ssh-keygen is not installed", hint="Install the OpenSSH client.") from error
    return done.stdout.decode("utf-8", "replace") if done.exit_code == 0 else None
