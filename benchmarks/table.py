"""One figure beside its reference, and the table of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_HEAD = ("what", "ours", "beside", "reference", "ratio", "limit", "holds")


@dataclass(frozen=True, slots=True)
class Row:
    """One measured figure. `beside`: the reference's own figure, measured in the same run; `limit`: on the ratio.

    Without a reference the limit is on the figure itself. A row without a limit is told and judges nothing.
    """

    what: str
    ours: float
    unit: str
    reference: str = ""
    beside: float | None = None
    limit: float | None = None

    @property
    def ratio(self) -> float | None:
        """Ours over the reference's; None without a reference."""
        return self.ours / self.beside if self.beside else None

    @property
    def holds(self) -> bool:
        """True where there is no limit, or the ratio (without a reference: the figure) is within it."""
        if self.limit is None:
            return True
        return (self.ours if self.ratio is None else self.ratio) <= self.limit


def show(rows: Sequence[Row]) -> str:
    """The table as Markdown, columns aligned."""
    cells = [_HEAD, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_HEAD))]
    lines = ["| " + " | ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)) + " |"
             for line in cells]  # fmt: skip
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.what,
        _number(row.ours, row.unit),
        _number(row.beside, row.unit),
        row.reference or "-",
        _number(row.ratio),
        _number(row.limit, "" if row.beside else row.unit),
        "-" if row.limit is None else "yes" if row.holds else "NO",
    )


def _number(value: float | None, unit: str = "") -> str:
    return "-" if value is None else f"{value:.4g} {unit}".strip()
