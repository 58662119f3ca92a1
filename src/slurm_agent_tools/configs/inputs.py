"""Which values of a configuration name files that a run reads. Pure: whether they exist is the caller's business."""

from __future__ import annotations

import re

from slurm_agent_tools.configs.reading import Config, leaf, walk

_OUTPUT = re.compile(r"out(?:put)?|save|log|checkpoint|ckpt|cache|result|work|tmp|temp|dest|export", re.IGNORECASE)
_PATH_KEY = re.compile(r"(?:^|_)(?:path|dir|directory|file|folder|root)s?$", re.IGNORECASE)


def paths(config: Config) -> list[str]:
    """Values that name a file or folder which the run reads, each once; resolved by the caller."""
    found = [value for place, value in walk(config.value) if isinstance(value, str) and is_input(place, value)]
    return list(dict.fromkeys(found))


def is_input(place: str, value: str) -> bool:
    """True where the key is called like a path to read, and the value can be one."""
    name = leaf(place)
    if not _PATH_KEY.search(name) or _OUTPUT.search(name) or place.startswith("slurm."):
        return False
    return value.isprintable() and 0 < len(value) < 1000 and not re.search(r"://|[$~{}*<>]", value)
