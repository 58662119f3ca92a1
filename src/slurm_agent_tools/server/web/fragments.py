"""A view as HTML: a template over a plain record, and nothing else. Pages show it, and so can any host of HTML.

Every text is escaped by the environment. What is markup already is `Markup`, which only our own plots are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from slurm_agent_tools.text import sanitize, svg_plots
from slurm_agent_tools.units import format_duration, human_memory

FOLDER = Path(__file__).parent

UNKNOWN = "not known"


@cache
def environment() -> Environment:
    """The templates of this package, read once. A name that a record lacks is an error, never an empty cell."""
    made = Environment(
        loader=FileSystemLoader([FOLDER / "templates", FOLDER / "static"]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {"clock": clock, "lasts": lasts, "memory": memory, "percent": percent, "number": number,
                     "use_plot": use_plot}  # fmt: skip
    return made


def fragment(view: str, record: Mapping[str, Any], base: str | None = "") -> Markup:
    """One view of a plain record. `base`: from here to the pages that it links to; None where there are none."""
    return Markup(environment().get_template(f"views/{view}.html").render(**record, base=base))  # noqa: S704 - ours


def page(**parts: Any) -> str:
    """A whole page around a fragment; the parts are those of templates/page.html."""
    return environment().get_template("page.html").render(**parts)


def standing_alone(**parts: Any) -> str:
    """A whole document that loads nothing: the parts of templates/app.html, with our style and script inside."""
    made = environment()
    style, script = (Markup(_source(made, name)) for name in ("dashboard.css", "chat.js"))  # noqa: S704 - ours
    return made.get_template("app.html").render(style=style, script=script, **parts)


def _source(of: Environment, name: str) -> str:
    """A file of the package as it is, not as a template."""
    if of.loader is None:  # never: `environment` gives it one
        raise LookupError(name)
    return of.loader.get_source(of, name)[0]


def plain(document: Mapping[str, Any]) -> dict[str, Any]:
    """A record as it may be shown: hidden signs spelled out, secrets masked, length bounded, as in every answer."""
    return sanitize.document(document)


# --- How figures are written -------------------------------------------------------------------------------------


def clock(moment: str | datetime | None) -> Markup | str:
    """A moment in UTC to the second, as text that machines read too."""
    if moment is None:
        return UNKNOWN
    at = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    return Markup('<time datetime="{}">{}</time>').format(at.isoformat(), f"{at:%Y-%m-%d %H:%M:%S}")


def use_plot(curves: Mapping[str, Sequence[Sequence[float]]]) -> Markup:
    """What a job used over time: for each name points of minutes since its start and per cent of what it has."""
    points = {name: [(one[0], one[1]) for one in line] for name, line in curves.items()}
    plot = svg_plots.curves(points, title="Use over time", x="minutes since its start", y="% of what it has", most=100)
    return Markup(svg_plots.unstyled(plot))  # noqa: S704 - every text in it is escaped there


def lasts(seconds: float | None) -> str:
    """A duration as Slurm writes it."""
    return UNKNOWN if seconds is None else format_duration(round(seconds))


def memory(size: int | None) -> str:
    """Bytes in a human spelling."""
    return UNKNOWN if size is None else human_memory(size)


def percent(share: float | None) -> str:
    """A share of 1 in per cent."""
    return UNKNOWN if share is None else f"{share:.0%}"


def number(value: float | None) -> str:
    """A number of four digits at most."""
    return UNKNOWN if value is None else f"{value:.4g}"
