"""How severe a rule's answer is, and which levels a policy may set for which rule."""

from __future__ import annotations

from typing import Literal

from slurm_agent_tools.replies import Outcome

Level = Literal["off", "warn", "justify", "approve", "deny"]
ORDER: tuple[Level, ...] = ("off", "warn", "justify", "approve", "deny")
VIOLATIONS: frozenset[Outcome] = frozenset({"justify", "approve", "deny"})

SETTABLE: dict[str, tuple[Level, ...]] = {
    "memory-per-gpu": ("justify", "approve", "deny"),
    "gpus": ("justify", "approve", "deny"),
    "time-limit": ("justify", "approve", "deny"),
    "concurrent-jobs": ("approve", "deny"),
    "budget": ("justify", "approve", "deny"),
    "cuda-visible-devices": ("warn", "justify", "approve", "deny"),
    "device-index": ORDER,
    "auto-retry": ("approve", "deny"),
    "duplicate": ORDER,
    "direct-submission": ("approve", "deny"),
    "interactive": ("approve", "deny"),
    "partition": ("deny",),
    "dependency": ("deny",),
    "script-exists": ("deny",),
    "status-first": ("off", "warn", "deny"),
    "path": ("deny",),
    "directives": ("approve", "deny"),
    "opaque-code": ("warn", "justify", "approve", "deny"),
}
"""What a policy may make of each rule. Where nothing softer stands, the guard itself rests on the refusal."""


def harsher(first: Level, second: Level) -> Level:
    """The more severe of two levels."""
    return max(first, second, key=ORDER.index)
