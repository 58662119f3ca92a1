"""Lines of a file of allowed signers, as ssh-keygen(1) describes it: who may sign, with which key, for what, when."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

KEY_TYPES = (
    "ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa",
    "sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com",
)  # fmt: skip

_OPTION = re.compile(r'(?P<name>[A-Za-z-]+)(?:="(?P<value>(?:\\"|[^"])*)")?(?:,|$)')

_OPTIONS = ("namespaces", "valid-after", "valid-before")

_TIME = re.compile(r"(\d{8})(\d{4})?(\d{2})?(Z)?")

_ZONE_FILE = Path("/etc/localtime")

_LONGEST = 100  # letters of a principal


@dataclass(frozen=True, slots=True)
class AllowedSigner:
    """One line: `key` is the public key as OpenSSH writes it in bytes. None: not limited."""

    principals: tuple[str, ...]
    key: bytes
    namespaces: tuple[str, ...] | None = None
    valid_after: datetime | None = None
    valid_before: datetime | None = None

    @property
    def name(self) -> str | None:
        """The first principal that names somebody; None where all of them are patterns."""
        plain = [one for one in self.principals if not one.startswith("!") and not {"*", "?"} & set(one)]
        return next((one for one in plain if matches(one, self.principals)), None)

    def refuses(self, principal: str, namespace: str, now: datetime) -> str | None:
        """Why a signature by this key does not count for that principal, use and time; None where it does."""
        if not principal.isprintable() or " " in principal or len(principal) > _LONGEST:
            return f"counts for a name without blanks, of at most {_LONGEST} letters"  # a pattern fits any text
        if not matches(principal, self.principals):
            return f"does not count for {principal}"
        if self.namespaces is not None and not matches(namespace, self.namespaces):
            return f"does not count for the namespace {namespace}"
        if self.valid_after is not None and now < self.valid_after:
            return f"counts only from {self.valid_after.isoformat()} on"
        if self.valid_before is not None and now > self.valid_before:
            return f"counted only until {self.valid_before.isoformat()}"
        return None


def check(lines: Sequence[str], parse: Callable[[str], object]) -> None:
    """Raises ValueError that names the first line that cannot be read."""
    for line in lines:
        try:
            parse(line)
        except ValueError as error:
            raise ValueError(f"the line {line!r}: {error}") from error


def matches(name: str, patterns: Sequence[str]) -> bool:
    """Whether a pattern fits and none that begins with ! does; * stands for any text and ? for one character."""
    fits = [pattern for pattern in patterns if _fits(name, pattern.removeprefix("!"))]
    return bool(fits) and not any(pattern.startswith("!") for pattern in fits)


def _fits(name: str, pattern: str) -> bool:
    """Each star takes as little as it can: going back to the last one is enough, so that many stars cost no hours."""
    at = place = 0
    star, taken = -1, 0
    while at < len(name):
        if place < len(pattern) and pattern[place] == "*":
            star, taken = place, at
            place += 1
        elif place < len(pattern) and pattern[place] in {"?", name[at]}:
            at, place = at + 1, place + 1
        elif star >= 0:
            taken += 1
            at, place = taken, star + 1
        else:
            return False
    return not pattern[place:].strip("*")


def parse(line: str) -> AllowedSigner:
    """The signer of a line. Raises ValueError with what is wrong: a line that is not understood is never skipped."""
    first, rest = _principals(line.replace("\t", " ").strip())
    options: dict[str, str] = {}
    if rest.split(" ", 1)[0] not in KEY_TYPES:
        options, rest = _options(rest)
    words = rest.split()
    if len(words) < 2 or words[0] not in KEY_TYPES:
        kind = words[0] if words else "nothing"
        raise ValueError(f"{kind!r} stands where the kind of key is expected; one of {', '.join(KEY_TYPES)}")
    spaces = options.get("namespaces")
    limits = {name: _moment(name, options[name]) for name in ("valid-after", "valid-before") if name in options}
    after, before = limits.get("valid-after"), limits.get("valid-before")
    if after is not None and before is not None and after >= before:
        raise ValueError("valid-after lies behind valid-before")
    return AllowedSigner(
        first, _blob(words[0], words[1]), None if spaces is None else tuple(spaces.split(",")), after, before
    )


def _principals(line: str) -> tuple[tuple[str, ...], str]:
    """Who, and the rest of the line."""
    if not line or line.startswith("#") or not line.isprintable():
        raise ValueError("is not one line of a file of allowed signers")
    quoted = re.match(r'(?:"(?P<quoted>[^"]+)"|(?P<plain>[^\s"]+))\s+', line)
    if quoted is None:
        raise ValueError("does not begin with a principal, such as ada@example.org, and a blank")
    principals = tuple((quoted["quoted"] or quoted["plain"]).split(","))
    if not all(one.removeprefix("!") for one in principals):
        raise ValueError("has an empty principal")
    return principals, line[quoted.end() :]


def _options(rest: str) -> tuple[dict[str, str], str]:
    """The options before the key, and what is behind them."""
    text = _until_blank(rest)
    found: dict[str, str] = {}
    for name, value in _each(text):
        if name == "cert-authority":
            raise ValueError("cert-authority is not supported here: list each person's own key")
        if name not in _OPTIONS:
            known = f"an option ({', '.join(_OPTIONS)}) nor a kind of key ({', '.join(KEY_TYPES)})"
            raise ValueError(f"{name!r} is neither {known}")
        if value is None or name in found:
            raise ValueError(f"the option {name} {'is there twice' if name in found else 'has no value in quotes'}")
        found[name] = value
    return found, rest[len(text) :].lstrip()


def _until_blank(rest: str) -> str:
    """What stands before the first blank outside of quotes."""
    found = re.match(r'(?:"(?:\\"|[^"])*"|[^"\s])*', rest)
    return found[0] if found else ""


def _each(text: str) -> Iterator[tuple[str, str | None]]:
    place = 0
    while place < len(text):
        found = _OPTION.match(text, place)
        if found is None:
            raise ValueError(f"{text[place:][:40]!r} is neither an option nor a kind of key")
        yield found["name"].lower(), None if found["value"] is None else found["value"].replace('\\"', '"')
        place = found.end()


def _moment(name: str, text: str) -> datetime:
    """YYYYMMDD, YYYYMMDDHHMM or YYYYMMDDHHMMSS: in UTC with a Z behind, else in this machine's own time zone."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError(f"{name}={text!r} is no time like 20270131, 202701312359 or 20270131235900Z")
    day, minutes, seconds, utc = found.groups()
    try:
        plain = datetime.strptime(f"{day}{minutes or '0000'}{seconds or '00'}", "%Y%m%d%H%M%S")  # noqa: DTZ007
    except ValueError as error:
        raise ValueError(f"{name}={text!r} is no time that there is") from error
    return plain.replace(tzinfo=UTC if utc else _machine_zone()).astimezone(UTC)


def _machine_zone() -> tzinfo:
    """The machine's zone as an administrator set it; TZ, which anybody sets for a process, moves no limit."""
    try:
        with _ZONE_FILE.open("rb") as file:
            return ZoneInfo.from_file(file)
    except (OSError, ValueError):
        return UTC


def _blob(kind: str, text: str) -> bytes:
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"the key behind {kind} is not base64") from error
    name = kind.encode()
    if not key.startswith(len(name).to_bytes(4, "big") + name):
        raise ValueError(f"the key behind {kind} is not of that kind")
    return key
