r"""Text from outside as data: hidden signs made visible, secrets masked, length bounded. What every reply passes.

Names stay recognisable: what can be seen stays as it is, what cannot is spelled as Python spells it, \x1b or \u202e.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

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


_shown_name = lru_cache(1024)(shown)  # the same few names of fields come in every answer


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
    if len(text) <= min(longest, whole):
        return text
    return _cut("\n".join(_cut(piece, longest) for piece in text.split("\n")), whole)


def _cut(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    end = min(_KEPT_END, longest // 4)
    head = longest - end
    return f"{text[:head]} [... {len(text) - longest} characters ...] {text[-end:]}"


def document(body: Mapping[str, Any]) -> dict[str, Any]:
    """A whole reply as it may be shown. Lists that are too long are cut, and the summary says so."""
    cuts: list[str] = []
    shown_body = {_shown_name(str(key)): _value(str(key), value, str(key), cuts) for key, value in body.items()}
    if cuts and isinstance(shown_body.get("summary"), str):
        shown_body["summary"] += f" Left out here: {'; '.join(cuts[:5])}."
    return shown_body


def _value(key: str, value: Any, place: str, cuts: list[str], *, settings: bool = False) -> Any:
    """One value below `key`; `settings` where names of keys tell what is a secret."""
    settings = settings or key in _SETTINGS
    if isinstance(value, Mapping):
        pairs = list(value.items())
        cuts += _cut_list(pairs, place) if len(pairs) > MAX_ITEMS else []
        secret = settings and _secret_pair(key, value)
        return {
            _shown_name(str(name)): MASK
            if secret and isinstance(inner, str)
            else _value(str(name), inner, f"{place}.{name}", cuts, settings=settings)
            for name, inner in pairs[:MAX_ITEMS]
        }
    if isinstance(value, list | tuple):
        cuts += _cut_list(value, place) if len(value) > MAX_ITEMS else []
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


def _cut_list(items: Sized, place: str) -> list[str]:
    """What is said of a list that is longer than what is shown of it."""
    return [f"{len(items) - MAX_ITEMS} of {len(items)} in {_cut(line(place), 80)}"]


# --- Names that are safe in a file name -------------------------------------------------------------------------------


def safe_name(text: str, *, limit: int = 60) -> str:
    """Letters, digits, dot, underscore and dash only, never empty, never starting with a dot or dash."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip(".-")[:limit] or "job"


# --- Secrets: what they look like, and the same text without them. A net for accidents, not a wall --------------------


MASK = "[masked]"

_START = r"(?<![\w-])"
_GAP = r"[\"']{0,2}[ \t]{0,4}"
_OPEN = r"[ \t]{0,4}[\"']?"

# Not a secret: nothing, a placeholder, a variable that is only named, a value of another type, or masked already.
_REAL = r"(?!(?:none|null|true|false|required|yes|no|\*+|x{3,}|\.{3,})(?![\w.-])|[$<{%(\[*]|\[masked)"

# As it stands for `user:password`, in both cases of letters.
_BASE64 = (
    r"(?=[a-z0-9+/]{0,64}[A-Z])(?=[A-Z0-9+/]{0,64}[a-z])(?:[A-Za-z0-9+/]{4}){2,}"
    r"(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?(?![A-Za-z0-9+/=])"
)

_MIXED = r"(?=[\w./+=~:-]{0,64}?\d)(?=[\w./+=~:-]{0,64}?[A-Za-z])"


# What ends the name of a setting that holds one.
_NAMES = (
    r"(?:passw(?:or)?d|passphrase|passwort|secret|api[._-]?key|credentials?"
    r"|(?:access|account|private|client|encryption|signing|auth|session|secret)[._-]?key)"
)

_LOGINS = r"(?:(?:login|account)\s{1,9}\S{1,100}\s{1,9})"

# What is said of a password in two words, as `login failed` is of a login.
_SAID = (
    r"(?!(?:incorrect|invalid|wrong|expired|failed|denied|rejected|accepted|authentication|prompt|changed|mismatch"
    r"|missing|needed|successful|protected|login|for|from|is|was|not|has|must)(?!\S))"
)


@dataclass(frozen=True, slots=True)
class Secret:
    """One kind of secret. The groups `kept` and `kept2` of the pattern stay before the mask, `after` behind it."""

    id: str
    words: tuple[str, ...]
    source: str
    samples: tuple[str, str]
    near_miss: str


_compiled: Callable[[str], re.Pattern[str]] = cache(re.compile)
"""Compiled when it is needed first: most processes need few of them."""


def _row(name: str, words: str, pattern: str, samples: tuple[str, str], near_miss: str) -> Secret:
    first, second = (sample.replace("¦", "") for sample in samples)
    return Secret(name, tuple(words.split()), pattern, (first, second), near_miss)


# A ¦ breaks each sample, so that nobody's search for leaked keys stumbles over this file.
ROWS: tuple[Secret, ...] = (
    _row("private-key", "private",
         r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
         r"(?:(?:\s|\\[nr])*(?:[A-Z][A-Za-z]{0,20}(?:-[A-Z][a-z]{0,20})?: [^\n]{0,100}\n|[A-Za-z0-9+/=]{16,}))*"
         r"(?:(?:\s|\\[nr])*[A-Za-z0-9+/=]{0,15}(?:\s|\\[nr])*-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?",
         ("-----BEGIN OPENSSH ¦PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAA\nAAAB==\n-----END OPENSSH PRIVATE KEY-----",
          "-----BEGIN RSA ¦PRIVATE KEY-----\\nMIIEowIBAAKCAQEA1234567890abcdef\\n-----END RSA PRIVATE KEY-----"),
         "-----BEGIN PUBLIC KEY-----"),
    _row("aws-key-id", "akia asia", r"(?<![A-Za-z0-9])A[KS]IA[0-9A-Z]{16}(?![A-Za-z0-9])",
         ("AKI¦AIOSFODNN7EXAMPLE", "id ASI¦A1234567890ABCDEF used"), "ASIAN_DATASET_V2"),
    _row("github", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
         r"(?<![A-Za-z0-9])(?:gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_\w{22,255})",
         ("gh¦p_0123456789abcdefghijABCDEFGHIJ456789", "github¦_pat_11ABCDEFG0abcdefghijkl_mnopqr"),
         "ghp_import finished"),
    _row("own-token", "sat_", r"(?P<kept>sat_[0-9a-f]{16}_)[\w-]{43}",  # store/tokens.py; the id says which one
         ("sat¦_0123456789abcdef_abcdefghijABCDEFGHIJ0123456789-_abcdefghijAB",
          "curl -H x:sat¦_fedcba9876543210_0123456789012345678901234567890123456789012"),
         "sat_score=0.93 of sat_2026_baseline"),
    _row("gitlab", "glpat- glrt- gldt-", _START + r"gl(?:pat|rt|dt)-[\w-]{20,}",
         ("glp¦at-abcdefghij0123456789", "token glr¦t-0123456789abcdefghij"), "glpat-short"),
    _row("hugging-face", "hf_", r"(?<![A-Za-z0-9])hf_[A-Za-z0-9]{30,}",
         ("hf¦_abcdefghijklmnopqrstuvwxyzABCDEF12", "url?t=hf¦_0123456789012345678901234567890123"),
         "hf_hub_download took 3 s"),
    _row("model-host", "sk- gsk_ r8_ nvapi- xai- wandb_v1_",
         _START + r"(?:sk-(?=[\w-]{0,80}?\d)(?=[\w-]{0,80}?[A-Z])[\w-]{20,}"
         r"|(?:gsk_|r8_|nvapi-|xai-|wandb_v1_)(?=[\w-]{0,80}?\d)[\w-]{24,})",
         ("sk¦-proj-abcDEF1234567890abcdefghij", "key sk¦-ant-api03-ABCdef1234567890-abcdef"),
         "sk-learn-pipeline-with-many-steps-2024"),
    _row("slack", "xox hooks.slack.com",
         r"(?<![A-Za-z0-9])xox[abeoprs]-[A-Za-z0-9-]{10,}|hooks\.slack\.com/services/[\w/]{10,}",
         ("xox¦b-123456789012-abcdefABCDEF", "https://hooks.slack¦.com/services/T000/B000/abcdef123456"),
         "xoxo-lovely"),
    _row("robots", "webhooks/ :aa",
         r"discord(?:app)?\.com/api/webhooks/[\w/-]{20,}|(?<!\d)\d{8,10}:AA[\w-]{33}(?![\w-])",
         ("https://discord.com/api¦/webhooks/123456789012345678/abcdefghijABCDEFGHIJ",
          "bot12345678:AA¦Habcdefghijklmnopqrstuvwxyz012345"), "12:AAAA webhooks/1"),
    _row("deployment", "dp. pul-",
         r"(?<![\w.-])(?:dp\.(?:pt|st|ct|sa)\.(?:[\w-]{1,35}\.)?[A-Za-z0-9]{40,44}|pul-[0-9a-f]{40})(?!\w)",
         ("dp.pt.abcdefghij¦klmnopqrstuvwxyzABCDEFGHIJ01234567", "pul-0123456789abcdef¦0123456789abcdef01234567"),
         "dp.step.1 pul-1"),
    _row("package-host", "npm_ pypi-age dckr_pat_ age-secret-key-",
         r"(?<![A-Za-z0-9])(?:npm_[A-Za-z0-9]{36}|pypi-AgE[\w-]{40,}|dckr_pat_[\w-]{20,}"
         r"|AGE-SECRET-KEY-1[0-9A-Z]{40,})",
         ("npm¦_0123456789abcdefghijABCDEFGHIJ456789", "dckr¦_pat_abcdefghij0123456789"), "npm_config_cache=/tmp"),
    _row("google", "ya29. 1//0 gocspx-",
         r"(?<![\w/])(?:ya29\.[\w-]{20,}|1//0[\w-]{30,}|GOCSPX-[\w-]{20,})",
         ("ya29¦.a0AfH6SMBx-0123456789_abcdefghij", "GOCSPX¦-abcdefghij0123456789klmnop"), "ya29.3 of 1//08 done"),
    _row("clouds",
         "dop_v1_ doo_v1_ dor_v1_ hvs. hvb. dapi atatt3x shpat_ shpss_ rpa_ pplx- glsa_ sntrys_ tskey- lin_api_",
         r"(?<![A-Za-z0-9])(?:do[opr]_v1_[0-9a-f]{40,}|hv[bs]\.[\w-]{24,}|dapi[0-9a-f]{32}(?![0-9a-z])|ATATT3x[\w=-]{40,}"
         r"|shp(?:at|ss)_[0-9a-fA-F]{32}|rpa_[A-Z0-9]{30,}|pplx-[A-Za-z0-9]{40,}|glsa_[A-Za-z0-9]{20,}_[0-9a-f]{8}"
         r"|sntrys_[\w=+/-]{30,}|tskey-[a-z]{2,12}-[\w-]{20,}|lin_api_[A-Za-z0-9]{32,})",
         ("dop¦_v1_0123456789abcdef0123456789abcdef01234567", "hvs¦.CAESIJabcdefghij0123456789"),
         "dapi of hvs.load, rpa_score=1"),
    _row("docker-auth", "auth\" auth' auth\\ _auth",
         r"(?P<kept>(?<![\w-])(?:\\?\"auth\\?\"|'auth'|_auth)[ \t]{0,4}[:=]\s{0,9}\\?[\"']?)" + _BASE64,
         ('{"auths": {"reg.example": {"auth": "YWxpY2U6¦aHVudGVyMg=="}}}',
          "//npm.example/:_auth=YWxpY2U6¦aHVudGVyMg=="),
         '"auth": "kerberos5"'),
    _row("personal-access-token", "pat= pat: pat\" pat'",
         r"(?P<kept>(?<![A-Za-z0-9])(?:[A-Z0-9]{1,30}_){0,4}PAT" + _GAP + r"[:=]" + _OPEN + r")"
         + _MIXED + r"[\w.~+/=-]{20,}",
         ("GITHUB_PAT=0123456789¦abcdef0123456789abcdef01234567", "PAT: 'abcdefghij¦klmnopqrstuvwxyz234567'"),
         "PAT=5 PATH=/opt/a1 LD_PATCH=0123456789abcdef0123"),
    _row("payment-and-mail", "sk_live_ rk_live_ sg. aiza",
         r"(?<![A-Za-z0-9])(?:[sr]k_live_[A-Za-z0-9]{16,}|SG\.[\w-]{16,64}\.[\w-]{16,}|AIza[\w-]{35})",
         ("sk¦_live_abcdefghij0123456789", "AI¦za0123456789abcdefghijklmnopqrstuvwxy"), "sg.load(model.layers)"),
    _row("json-web-token", "eyj", r"(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}(?:\.[\w-]*)?",
         ("SLURM_JWT eyJhbGciOiJIUzI1¦NiJ9.eyJzdWIiOiJhbGljZSJ9.c2lnbmF0dXJl", "eyJ0eXAiOiJKV1Qi¦fQ.eyJleHAiOjE3MDB9."),
         "eyJhbGci is how such texts begin"),
    _row("url-password", "://", r"(?P<kept>://[^\s/:@\"']{0,100}:)[^\s/\"']{1,200}(?P<after>@)",
         ("postgres://me:hunt¦er2@db.local/x", "https://oauth2:abc¦def@git.example.org/r.git"),
         "tcp://10.0.0.1:29500 rank@host"),
    _row("signed-url", "sig= signature= security-token=",
         r"(?i)(?P<kept>(?:[?&]sig|x-(?:amz|goog)-(?:signature|security-token))=)[\w%+/=.-]{16,}",
         ("blob?se=2027&sig=abcd%2Fefgh¦ijklmnop%3D", "o?X-Amz-Signature=0123456789ab¦cdef0123456789abcdef"),
         "sig=3.2 sigma"),
    _row("authorization", "authorization bearer cookie",
         r"(?i)(?P<kept>(?<![\w])(?:(?:proxy-)?authorization" + _GAP + r"[:=]" + _OPEN
         + r"(?:(?:bearer|basic|token|negotiate|digest)[ \t]{1,4})?|(?:set-)?cookie:[ \t]{0,4}))"
         r"(?!\[masked)[^\s\"',]{6,}|(?P<kept2>(?<![\w])bearer[ \t]{1,4})" + _MIXED + r"[\w.~+/=-]{16,}",
         ("Authorization: Basic YWxpY2U6¦c2VjcmV0", "sent Bearer abcdef0123¦456789abcdef"),
         "the bearer of good news arrived"),
    _row("named-secret",
         "password passwd passphrase passwort secret api_key api-key apikey access_key access-key accesskey account_key"
         " accountkey private_key client_key encryption_key signing_key credential pgpass sshpass mysql_pwd"
         " auth_key kaggle_key session_key sas_key wandb_key client-key-data _pass",
         r"(?i)(?P<kept>(?:passw(?:or)?d|passphrase|passwort|secret|api[_-]?key|(?:access|account|private|client|"
         r"encryption|signing|auth|kaggle|session|sas|wandb)[_-]?key|credentials?|pgpass(?:word)?|sshpass|mysql_pwd"
         r"|client-key-data|(?<![a-z])(?:db|smtp|mail|ftp|redis|mongo|mysql|postgres|ldap|vnc|mqtt|proxy|admin|root)_pass)"
         + _GAP + r"(?:[:=]|=>)" + _OPEN + r")" + _REAL + r"[^\s\"',;&)}\]]{3,}",
         ("export WANDB_API_KEY=0123456789¦abcdef0123456789abcdef01234567", '"db_password": "hunt¦er2!"'),
         "password=$DB_PASSWORD"),
    _row("named-token", "token jwt",
         r"(?P<kept>(?:(?<![A-Za-z])(?:(?:identity|registry)?token|TOKEN|Token|jwt|JWT)|(?<=[a-z])Token)"
         + _GAP + r"[:=]" + _OPEN + r")(?!\[masked)" + _MIXED + r"[\w./+=~-]{8,}",
         ("HF_TOKEN=abc123de¦f456", "accessToken: 'x9y8z7w6¦v5u4'"),
         "token_accuracy=0.93 max_tokens=4096 token: 123456"),
    _row("option", "--password --passwd --token --api-key --secret --auth-token --access-token --passphrase sshpass",
         r"(?P<kept>(?<![\w-])(?:--(?:password|passwd|passphrase|secret|api-key|(?:hf-|auth-|access-)?token)"
         r"[ \t]{1,4}[\"']?"
         r"|sshpass[ \t]{1,4}-p[ \t]{0,4}))" + _REAL + r"(?!-)[^\s\"']{4,}",
         ("curl --token abc¦def12", "sshpass -p hunt¦er2 ssh host"), "--tokenizer gpt2 --max-tokens 4096"),
    _row("login", "login -u --user",
         r"(?P<kept>(?<![\w-])(?:login[ \t]{1,4}[^\s]{1,100}[ \t]{1,4}password[ \t]{1,4}"
         + _SAID + r"|wandb[ \t]{1,4}login[ \t]{1,4}(?=[0-9a-f]{40})"
         r"|curl[ \t][^\n]{0,200}?(?:-u|--user)[ \t]{1,4}[^\s:]{1,64}:))[^\s]{4,}",
         ("machine h login me password hunt¦er2", "wandb login 0123456789abcdef0123¦456789abcdef01234567"),
         "curl -u me https://host/x"),
    _row("netrc", "password",  # of which each word may stand in a line of its own
         r"(?im)(?P<kept>^[ \t]{0,9}(?:machine\s{1,9}\S{1,255}|default)\s{1,9}" + _LOGINS + r"{0,2}password\s{1,9})"
         + _SAID + _REAL + r"\S{3,}|(?P<kept2>^[ \t]{0,9}" + _LOGINS + r"{1,2}password\s{1,9})"
         + _SAID + _REAL + r"\S{3,}(?=[ \t]{0,9}$)",
         ("\nmachine h\n  login me\n  password hunt¦er2\n", "\nlogin me\npassword hunt¦er2\n"),
         "login failed\npassword incorrect"),
    _row("element", "</ value=",
         r"(?i)(?P<kept><(?:[\w.:-]{0,60}" + _NAMES + r"(?:\s[^<>]{0,200})?"
         r"|(key|name)>[^<>]{0,100}" + _NAMES + r"\s{0,9}</\2>\s{0,99}<(?:string|value))>\s{0,99}(?:<!\[CDATA\[)?)"
         + _REAL + r"[^<>]{3,2000}?(?=\]\]>|</)"
         r"|(?P<kept2>(?<![\w-])(?:key|name)=[\"'][^\"'<>]{0,100}" + _NAMES + r"[\"']\s{1,9}value=[\"'])"
         + _REAL + r"[^\"'<>]{3,}",
         ("<db:apiKey kind='x'>hunt¦er2</db:apiKey>", "<name>fs.secret.key</name>\n<value>hunt¦er2</value>"),
         "<passwordPolicy>strong</passwordPolicy> <password>$DB</password>"),
    _row("block", "passw passphrase secret key credential",
         r"(?im)(?P<kept>" + _NAMES + r"[\"']?:[ \t]{1,4}[|>][+-]?[ \t]{0,4}\n[ \t]{1,40})" + _REAL + r"[^\s]{3,}"
         r"|(?P<kept2>^[ \t]{0,40}[\w.-]{0,60}" + _NAMES + r":[ \t]{0,4}\n[ \t]{1,40})" + _MIXED
         + r"[^\s:]{4,}(?=[ \t]{0,9}$)",
         ("password: |\n  hunt¦er2", "\n  db_api_key:\n    hunt¦er2\n"),
         "password: |\nwhere"),
)  # fmt: skip

_KEY = (
    r"(?i)(?:^|[^a-z]|(?-i:(?<=[a-z])(?=[A-Z])))(?:passw(?:or)?d|passphrase|passwort|secret|api[_-]?key"
    r"|(?:access|account|private|client|encryption|signing|auth|session|wandb|kaggle)[_-]?key|credentials?)$"
)

_TOKEN_KEY = r"(?:^|[^A-Za-z])(?:token|TOKEN|jwt|JWT)$|[a-z]Token$"  # noqa: S105 - a pattern

_TOKEN = _MIXED + r"[\w./+=~:-]{8,}"

_PLAIN = r"(?i)" + _REAL + r"."


_WORDS = {word for row in ROWS for word in row.words}
_LEAST = [word for word in _WORDS if not any(other != word and other in word for other in _WORDS)]
"""Words of which every other one holds one: a text without these has none of them."""


def mask(text: str) -> str:
    """The text without what looks like a secret; the number of its lines stays."""
    lowered = text.lower()
    if not any(map(lowered.__contains__, _LEAST)):
        return text
    for row in ROWS:
        if any(word in lowered for word in row.words):
            text = _compiled(row.source).sub(_hidden, text)
    return text


def _hidden(match: re.Match[str]) -> str:
    parts = match.groupdict()
    kept = parts.get("kept") or parts.get("kept2") or ""
    return kept + MASK + (parts.get("after") or "") + "\n" * match[0].count("\n", len(kept))


def secret_value(key: str, value: object) -> bool:
    """True where a setting's name says that its value is a secret, and the value can be one."""
    if not isinstance(value, str) or value == MASK:
        return False
    if key in {"auth", "_auth"}:  # of a registry, in docker's settings and npm's
        return _compiled(_BASE64).fullmatch(value.strip()) is not None
    if _compiled(_KEY).search(key):
        return _compiled(_PLAIN).match(value.strip()) is not None
    return _compiled(_TOKEN_KEY).search(key) is not None and _compiled(_TOKEN).match(value) is not None


def mask_settings(settings: Mapping[str, object]) -> tuple[dict[str, object], list[str]]:
    """(the same without secrets, the places `a.b[0]` where one was)."""
    places: list[str] = []
    return {key: _settled(key, value, key, places) for key, value in settings.items()}, places


def _settled(key: str, value: object, place: str, places: list[str]) -> object:
    if isinstance(value, Mapping):
        return {str(name): _settled(str(name), inner, f"{place}.{name}", places) for name, inner in value.items()}
    if isinstance(value, list):
        return [_settled(key, inner, f"{place}[{index}]", places) for index, inner in enumerate(value)]
    shown = MASK if secret_value(key, value) else mask(value) if isinstance(value, str) else value
    if shown != value:
        places.append(place)
    return shown
