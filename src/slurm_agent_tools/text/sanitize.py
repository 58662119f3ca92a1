r"""Text from outside as data: hidden signs made visible, secrets masked, length bounded. What every reply passes.

Names stay recognisable: what can be seen stays as it is, what cannot is spelled as Python spells it, \x1b or \u202e.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from slurm_agent_tools.text.masking import MASK, mask, secret_value

MAX_LINE, MAX_TEXT, MAX_ITEMS = 8_000, 120_000, 2_000

_KEPT_END = 1_000

# What steers a terminal (C0, C1), reorders or hides other text (Unicode's Cf, Zl, Zp, fillers, tags, variation
# selectors), or is no character (surrogates, private use). A line end and a tab are text.
HIDDEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ud800-\uf8ff"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "\U000f0000-\U0010ffff"
)

_EMOJI = r"(?<=[^\x00-\u00a8\ufe00-\ufe0f])\ufe0f"  # one selector behind a sign that has a coloured form

_HIDDEN = re.compile(f"(?P<fine>{_EMOJI})|[{HIDDEN}]")

_LINE_ENDS = re.compile("[\n\t]")

# Fields whose text is one line, whoever wrote it.
_ONE_LINE = frozenset({"name", "job_name", "experiment_name", "user", "partition", "state", "file", "path", "nodes"})

# Fields that hold somebody's settings: there a key's name tells a secret.
_SETTINGS = frozenset({"config", "config_diff", "config_summary"})


def visible(text: str) -> str:
    """The text with every hidden sign spelled out; line ends and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    return _HIDDEN.sub(_spelled, _utf8(text))


def stripped(text: str) -> str:
    """The text without hidden signs: for log lines, in which words are looked for."""
    return text if text.isascii() and text.isprintable() else _HIDDEN.sub(r"\g<fine>", text)


def line(text: str) -> str:
    """One line: as `visible`, line ends and tabs spelled out as well."""
    return _LINE_ENDS.sub(_spelled, visible(text))


def shown(text: str) -> str:
    """A text from outside as it may be shown: visible, without secrets, bounded."""
    return bounded(mask(visible(text)))


def _spelled(match: re.Match[str]) -> str:
    if match.groupdict().get("fine"):
        return match[0]
    return match[0].encode("unicode_escape", "surrogatepass").decode()


def _utf8(text: str) -> str:
    r"""Bytes that are no UTF-8 (names of jobs and files may hold them) as \xNN."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # half a character, from JSON
        return text


def bounded(text: str, *, longest: int = MAX_LINE, whole: int = MAX_TEXT) -> str:
    """Long lines cut in the middle, a long text in its middle; what was left out is told."""
    if len(text) > longest:
        text = "\n".join(_cut(piece, longest) for piece in text.split("\n"))
    return _cut(text, whole)


def _cut(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    end = min(_KEPT_END, longest // 4)
    head = longest - end
    return f"{text[:head]} [... {len(text) - longest} characters ...] {text[-end:]}"


def document(body: Mapping[str, Any]) -> dict[str, Any]:
    """A whole reply as it may be shown. Lists that are too long are cut, and the summary says so."""
    cuts: list[str] = []
    made = {shown(str(key)): _value(str(key), value, str(key), cuts) for key, value in body.items()}
    if cuts and isinstance(made.get("summary"), str):
        made["summary"] += f" Left out here: {'; '.join(cuts[:5])}."
    return made


def _value(key: str, value: Any, place: str, cuts: list[str], *, settings: bool = False) -> Any:
    """One value below `key`; `settings` where names of keys tell what is a secret."""
    settings = settings or key in _SETTINGS
    if isinstance(value, Mapping):
        pairs = list(value.items())
        _note(len(pairs), place, cuts)
        secret = settings and _secret_pair(key, value)
        return {
            shown(str(name)): MASK
            if secret and isinstance(inner, str)
            else _value(str(name), inner, f"{place}.{name}", cuts, settings=settings)
            for name, inner in pairs[:MAX_ITEMS]
        }
    if isinstance(value, list | tuple):
        _note(len(value), place, cuts)
        return [_value(key, item, place, cuts, settings=settings) for item in value[:MAX_ITEMS]]
    if not isinstance(value, str):
        return value
    if settings and secret_value(key, value):
        return MASK
    return shown(line(value)) if key in _ONE_LINE and not settings else shown(value)


def _secret_pair(key: str, value: Mapping[str, Any]) -> bool:
    """A difference `{baseline, target}` of a setting whose name tells a secret."""
    return set(value) == {"baseline", "target"} and any(secret_value(key, item) for item in value.values())


def holds(body: Mapping[str, Any], place: str) -> bool:
    """True where a reply has something at a place `a.b`."""
    here: Any = body
    for name in place.split("."):
        here = here.get(name) if isinstance(here, Mapping) else None
    return here not in (None, [], {})


def _note(count: int, place: str, cuts: list[str]) -> None:
    if count > MAX_ITEMS:
        cuts.append(f"{count - MAX_ITEMS} of {count} in {_cut(line(place), 80)}")


# --- Names that are safe in a file name -------------------------------------------------------------------------------


def safe_name(text: str, *, limit: int = 60) -> str:
    """Letters, digits, dot, underscore and dash only, never empty, never starting with a dot or dash."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip(".-")[:limit] or "job"
