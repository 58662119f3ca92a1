"""A report as Markdown and as one page of HTML that needs nothing else. Pure; every text is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from slurm_agent_tools.text import sanitize

_MARKS = re.compile(r"([\\`*_\[\]<>|#])")

_STYLE = """
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;display:block;overflow-x:auto;margin:1rem 0}
th,td{border:1px solid color-mix(in srgb,currentColor 25%,transparent);padding:.3rem .6rem;text-align:left;
vertical-align:top}
figure{margin:1.5rem 0}figcaption{font-size:.9rem;opacity:.8}svg{width:100%;height:auto;border-radius:.3rem}
"""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One or more sentences."""

    text: str


@dataclass(frozen=True, slots=True)
class Bullets:
    """Sentences that stand beside each other."""

    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table; every row has a cell for each column."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """An SVG of `text.svg_plots`, and what it shows. Markdown has the words alone: the page has the picture."""

    svg: str
    caption: str


ReportBlock = Paragraph | Bullets | ReportTable | Picture


@dataclass(frozen=True, slots=True)
class ReportSection:
    """One part of a report."""

    title: str
    blocks: tuple[ReportBlock, ...]


def markdown(title: str, sections: Iterable[ReportSection]) -> str:
    """The report as Markdown."""
    lines = [f"# {_plain(title)}", ""]
    for section in sections:
        lines += [f"## {_plain(section.title)}", ""]
        for block in section.blocks:
            lines += [*_markdown_block(block), ""]
    return "\n".join(lines).rstrip() + "\n"


def _markdown_block(block: ReportBlock) -> Iterator[str]:
    if isinstance(block, Paragraph):
        yield _plain(block.text)
    elif isinstance(block, Bullets):
        yield from (f"- {_plain(item)}" for item in block.items)
    elif isinstance(block, ReportTable):
        yield _row(block.header)
        yield "|" + " --- |" * len(block.header)
        yield from (_row(row) for row in block.rows)
    else:
        yield f"*{_plain(block.caption)} (the picture is in the page beside this file)*"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_plain(cell) for cell in cells)} |"


def _plain(text: str) -> str:
    """Text that Markdown shows as it is: no markup, no line break."""
    return _MARKS.sub(r"\\\1", sanitize.line(text))


def page(title: str, sections: Iterable[ReportSection]) -> str:
    """The report as one HTML page: no script, nothing loaded from elsewhere."""
    body = [f"<h1>{_text(title)}</h1>"]
    for section in sections:
        body.append(f"<h2>{_text(section.title)}</h2>")
        body += [_html_block(block) for block in section.blocks]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{_text(title)}</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def _html_block(block: ReportBlock) -> str:
    if isinstance(block, Paragraph):
        return f"<p>{_text(block.text)}</p>"
    if isinstance(block, Bullets):
        return f"<ul>{''.join(f'<li>{_text(item)}</li>' for item in block.items)}</ul>"
    if isinstance(block, ReportTable):
        header = "".join(f"<th>{_text(cell)}</th>" for cell in block.header)
        rows = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in block.rows)
        return f"<table><thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table>"
    return f"<figure>{block.svg}<figcaption>{_text(block.caption)}</figcaption></figure>"


def _text(text: str) -> str:
    return escape(sanitize.line(text))
