"""What `sbatch -v` prints of the options that it read, one block for each component, apart from all else that it says.

The form is that of every sbatch since 19.05: `sbatch: name<padding>: value` between two rules of dashes. A value may
hold a line break and so look like another option; a block in which a line does not fit or a name comes twice is
therefore not read at all, and the guard sends no value with a line break.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_BEGIN, _END = "sbatch: defined options", "sbatch: end of defined options"
_RULE = f"sbatch: {'-' * 20} {'-' * 20}"
_OPTION = re.compile(r"sbatch: ([a-z][a-z0-9-]*)( *): (.*)", re.DOTALL)
_PADDED = 20
_PLUGIN = re.compile(r"sbatch: [\w/]+: (?:common_)?init: .* loaded\b.*")

Shown = tuple[Mapping[str, str], ...]


def split(text: str) -> tuple[Shown | None, str]:
    """(options of each component, everything else that sbatch said); None where a block cannot be read.

    An sbatch that gave up before it had read all options shows no block: an empty tuple.
    """
    blocks: list[dict[str, str] | None] = []
    rest: list[str] = []
    lines = iter(text.split("\n"))
    for line in lines:
        if line == _BEGIN:
            blocks.append(_block(lines))
        elif not _PLUGIN.fullmatch(line):
            rest.append(line)
    shown = tuple(block for block in blocks if block is not None)
    return (shown if len(shown) == len(blocks) else None), "\n".join(rest)


def _block(lines: Iterator[str]) -> dict[str, str] | None:
    """Options up to the end mark. What does not fit is swallowed with the block, so that nobody takes it for a word."""
    found: dict[str, str] = {}
    fits = next(lines, "") == _RULE
    for line in lines:
        if line == _RULE:
            return found if fits and next(lines, "") == _END else None
        option = _OPTION.fullmatch(line)
        if option is None or len(option[1] + option[2]) != max(_PADDED, len(option[1])) or option[1] in found:
            fits = False
        else:
            found[option[1]] = option[3]
    return None
