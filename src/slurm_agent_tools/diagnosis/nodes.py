"""What the state of a node means for jobs (sinfo(1), NODE STATE CODES). Pure."""

from __future__ import annotations

from slurm_agent_tools.model import Node

_TROUBLE = ("down", "fail", "inval", "err", "unk")
_DRAINS = ("drain", "drng")


def troubled(node: Node) -> bool:
    """True where it is down, failing, registered wrongly, not heard of, or does not answer (`*`).

    One that is drained, reserved or powered off is in no trouble.
    """
    state = node.state.lower()
    return "*" in state or state.startswith(_TROUBLE)


def drained(node: Node) -> bool:
    """True where an administrator, or Slurm, keeps new jobs from it; those that it has may go on."""
    return node.state.lower().startswith(_DRAINS)
