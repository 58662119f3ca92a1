"""The parts that pictures are drawn of: texts, lines and the whole, as SVG. Every text is escaped; in pixels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

from slurm_agent_tools.text import sanitize


def safe(text: str) -> str:
    """A text from outside in markup: one line, with what cannot be seen made visible."""
    return escape(sanitize.shown(sanitize.line(text)))


def words(x: float, y: float, text: str, *, anchor: str = "start", **more: str | int) -> str:
    """A text whose `anchor` (start, middle, end) is at this place. `more`: other attributes, `_` for `-`."""
    place = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{x:.1f}" y="{y:.1f}"{place}{_attributes(more)}>{safe(text)}</text>'


def rule(start: tuple[float, float], end: tuple[float, float], **more: str | int) -> str:
    """A straight line."""
    places = f'x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"'
    return f"<line {places}{_attributes(more)}/>"


def _attributes(named: Mapping[str, str | int]) -> str:
    return "".join(f' {name.strip("_").replace("_", "-")}="{value}"' for name, value in named.items())


def picture(parts: Iterable[str], width: float, height: float, title: str, *, size: int = 12) -> str:
    """A document of its own on white, its letters so large."""
    head = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {head} font-family="sans-serif" font-size="{size}" role="img">',
            f"<title>{safe(title)}</title>",
            f'<path d="M0 0H{width:g}V{height:g}H0z" fill="#fff"/>',
            *parts,
            "</svg>",
            "",
        ]
    )
