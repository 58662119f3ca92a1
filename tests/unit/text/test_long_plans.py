"""A question with facts of megabytes takes no more than a look at each of their signs."""

from __future__ import annotations

from typing import SupportsIndex

from slurm_agent_tools.text import plan_text


class Line(str):
    """A text that counts the signs which are copied out of it, or together with it."""

    __slots__ = ()
    copied = 0

    def __getitem__(self, at: SupportsIndex | slice) -> Line:
        return self._noted(super().__getitem__(at))

    def __add__(self, other: str) -> Line:
        return self._noted(super().__add__(other))

    def __radd__(self, other: str) -> Line:
        return self._noted(other + str(self))

    def split(self, *words: object, **more: object) -> list[Line]:  # type: ignore[override]
        return [Line(one) for one in super().split(*words, **more)]  # type: ignore[arg-type]

    def splitlines(self, keepends: bool = False) -> list[Line]:  # type: ignore[override]
        return [Line(one) for one in super().splitlines(keepends)]

    def _noted(self, made: str) -> Line:
        Line.copied += len(made)
        return Line(made)


def test_a_long_line_is_folded_without_a_copy_of_its_rest_for_each_piece():
    for text in ("x" * 50_000, "word " * 10_000, "caf\u00e9 \u4e2d" * 8000):
        Line.copied = 0
        shown = list(plan_text._folded(Line(text), plan_text.COLUMNS))
        assert "".join([shown[0], *(row[8:] for row in shown[1:])]) == text
        assert Line.copied < 6 * len(text)


def test_a_fact_of_many_lines_is_joined_once():
    files = [("also runs", f"{'d' * 3000}{number} (sha256 1)") for number in range(60)]
    text = "a\nb\nc\nd\n" + plan_text.facts(files)
    Line.copied = 0
    found = plan_text._read(Line(text))
    assert found == {"also runs": ", ".join(value for _, value in files)}
    assert Line.copied < 3 * len(text)
