"""Follows the advice about every script of a folder, word for word, and tells whether it keeps the work.

    python scripts/kept_work.py FOLDER           the figures; 1 where a remedy broke a script
    python scripts/kept_work.py FOLDER --left    also what is still refused after two rounds, and why

The property is that of `tests/unit/policy/kept_work.py`: bash can parse the script, every command that was not the
violation is there in its place, one that does work is left, and the next answer allows it or names something new.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the tests are no package that is installed

from tests.unit.policy.kept_work import Followed, follow  # noqa: E402


def main(arguments: Sequence[str]) -> int:
    """Print the figures over every file of a folder, and what broke."""
    folder = Path(arguments[0])
    results = [_one(path, folder) for path in sorted(folder.rglob("*")) if path.is_file()]
    rounds = Counter(one.rounds for one in results)
    broke = [one for one in results if one.broken]
    told = sum(one.rounds is None and bool(one.words or one.person) for one in results)
    words, person = sum(one.words for one in results), sum(one.person for one in results)
    print(f"{len(results)} scripts: {rounds[0]} allowed at once, {rounds[1]} more after one round,")
    print(f"{rounds[2]} more after two, {rounds[None]} not, of which {told} were told in words what to do")
    print(f"{sum(one.remedies for one in results)} remedies: {words} in words, {person} that ask a person")
    print(f"{len(broke)} scripts broken")
    for one in broke:
        print(f"BROKEN {one.name}", *one.broken, sep="\n    ")
    for one in results if "--left" in arguments else ():
        if one.rounds is None:
            print(f"LEFT {one.name}{' (words)' if one.words else ''}", *one.left, sep="\n    ")
    return 1 if broke else 0


def _one(path: Path, folder: Path) -> Followed:
    done = asyncio.run(follow(path.read_bytes().decode("utf-8", "surrogateescape")))
    done.name = str(path.relative_to(folder))
    return done


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
