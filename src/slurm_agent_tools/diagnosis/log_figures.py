"""Lines and numbers that a log shows, whatever the job's fate."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence

from slurm_agent_tools.diagnosis.excerpt import LogText, split_rank
from slurm_agent_tools.diagnosis.harmless_lines import harmless, prose
from slurm_agent_tools.diagnosis.python_tracebacks import tracebacks
from slurm_agent_tools.diagnosis.signatures import matching
from slurm_agent_tools.models.shapes import EvidenceLine

_LIMIT = 100

_SHORT = 28  # characters: hardly a message

_WARNING = re.compile(r"(?<![=\w])(?:\w*Warning|WARN(?:ING)?)\b|\bwarning:|\[W |^W\d{4}\b", re.IGNORECASE)

_ERROR = re.compile(
    r"\b(?:error|errors|(?-i:\w+Error)|\w*Exception|exception|fatal|critical|traceback|panic|aborted|failed|failure)\b"
    r"|\b(?:killed|segfault|core dumped|cannot|permission denied|terminate called|assertion|panicked|forrtl: severe)\b"
    r"|^(?-i:(?:[a-z_]\w{0,40}\.){1,8}\w{0,40}(?:Broken|Killed|Exceeded|Timeout|Expired|Fail|Unavailable|Missing)\w{0,40})"
    r": \S"
    r"|\binvalid argument$|\bvery serious problems\b|\bg?make(?:\[\d+\])?: \*\*\*|\bmissing output file\(s\)"
    r"|^(?-i:E): (?=[A-Z])|^(?:fehler in|erreur dans|errore in|error en)\b",
    re.IGNORECASE,
)

# Said of errors that did not happen, and of figures that are called error.
_NO_ERROR = re.compile(
    r"\b(?:(?:no|zero|without(?: any)?)\s{1,4}(?:\w+ )?|0\s{1,4}(?:\w+ ){0,3})"
    r"(?:errors?|failures?|failed|exceptions?)\b"
    r"|\b(?:errors?|exceptions?|failures?|failed|aborted|killed)\b(?: \w+)?['\"]?\s{0,9}[=:]\s{0,9}"
    r"(?:['\"]?(?:0\b(?!\.)|none|null|nil|false|off|no|ignore|coerce|raise|replace|strict)"
    r"(?=['\"]?\s{0,4}(?:$|[,;)\]}|]))|\[\]|\{\})"
    r"|\berrors?\s{0,4}[=:]\s{0,4}[\d.]+(?:e-?\d+)?%?\s*$"
    r"|\b(?:\w+ )?errors?\b(?: \([^()]{1,20}\))?\s{0,4}(?:is |was |of )?[=:~|<>]{0,2}\s{0,4}[-+]?\d*\.\d"
    r"|^\W{0,3}[^|]{1,80}\|\s{0,60}(?:0|none|n/a)\s{0,60}(?:\|\s*)?$|\b0 \(0[.0]*\s?%\)[^.;]{0,60}\bfail\w*"
    r"|\b(?:failed|errors?|failures?|aborted|killed)=0\b(?!\.)|\berror: -(?=;)|\bERROR SUMMARY: 0\b.*"
    r"|\bcritical (?:temperature|path|point|value|current|density|exponent|mass|region|section|pressure|angle)s?\b"
    r"|\b(?:abort\w*|failures?|panic|fatal|exception|error) (?:criteri(?:on|a)|threshold|mode|probabilit(?:y|ies)|rate"
    r"|limit|condition|mask|injection|polic(?:y|ies)|budget|counts?|bands?)\b(?! (?:exceeded|reached))"
    r"|\berrors? (?:on|over) (?:the )?(?:train|test|valid|dev|eval|held)\w*"
    r"|\berrors? in the (?:model|data|fit|estimate)\b"
    r"|\berrors? (?:to|being) (?:minimi[sz]e|optimi[sz]e|reduce)\w*|\berrors? of the\b|<class '[\w.]{1,120}'>"
    r"|^\s{0,40}errors?\s{0,4}=\s{1,40}-?\d*\.\d+\s*$"
    r"|\berror (?:less|smaller|below|within|rate|bars?|check\w*|handl\w*|bound|margin|estimat\w*"
    r"|norm|tolerance|threshold|analysis|function"
    r"|file|log|output|stream|model|correction|profile|term|messages? (?:are|will))s?\b"
    r"|\b(?:become|into|as) errors\b|--\w{0,20}-?errors?\b|\berrors?[._]\w{2,4}\b|[/.]errors?\b"
    r"|\bstd(?:\.|andard) error"
    r"|\b(?:relative|absolute|squared|standard|std\.?|rounding|residual|percentage|mean|avg|average|best|lowest|allowed|max(?:imum)?|min(?:imum)?|rms"
    r"|l1|l2|train\w*|val\w*|test|prediction|reconstruction|approximation|energy|force|total|final|estimated|numerical"
    r"|truncation|discreti[sz]ation|fitting|calibration"
    r"|reprojection|position|phase|sampling|statistical|type I{1,2}) errors?\b"
    r"|\b(?P<done>\d+) of (?P=done), failed: \d+|\berror\s{1,9}messages encountered\s{0,9}=\s{0,20}0\b"
    r"|\(\d[\d.]{0,5}% failed\)|\bkilled:? \d+\b",
    re.IGNORECASE,
)

# Words that make a name one of a figure; a name is cut at these signs to find them.
_FIGURES = frozenset(
    {
        "loss", "nll", "perplexity", "ppl", "accuracy", "acc", "top1", "top5", "f1", "auc", "auroc", "bleu", "rouge",
        "rouge1", "rouge2", "rougel", "precision", "recall", "iou", "miou", "map", "mae", "mse", "rmse", "r2", "psnr",
        "ssim", "wer", "cer", "dice", "reward", "return", "lr", "epoch", "step", "iteration", "iter", "throughput",
    }
)  # fmt: skip

_RATES = ("/s", "/sec", "per_second", "per_sec", "_norm")

_PAIRS = frozenset({"learning rate", "grad norm", "gradient norm", "global step"})

_NUMBER = r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf(?:inity)?)(?![\w:-]|\.\d)"

_STATED = re.compile(
    r"(?<![\w./@-])(?P<name>(?:[a-z][\w/@.-]{0,40} )?[a-z][\w/@.-]{0,40})[\"']?\s{0,9}[:=]\s{0,9}"
    rf"[\"'\[(]?(?:tensor\()?(?P<value>{_NUMBER})",
    re.IGNORECASE,
)

_COUNTED = re.compile(
    r"\b(?P<name>epoch|step|iteration|iter)\b\s{0,4}[:=]?\s{0,4}\[?(?P<value>\d+)\s{0,4}/\s{0,4}\d", re.IGNORECASE
)

_SPLITS = frozenset(
    {
        "train",
        "training",
        "val",
        "valid",
        "validation",
        "test",
        "eval",
        "best",
        "mean",
        "avg",
        "average",
        "final",
        "total",
    }
)

# What launchers and shells say of a process that failed, without why.
_OUTER = re.compile(
    r"(?:srun|slurmstepd|mpirun|mpiexec|prterun)\S{0,80}: |Execution halted|Calls: |\S*: line \d+: +\d+ |-{10}|={10}"
    r"|\[\S{1,80}\] (?:\*\*\* (?:Process received signal|End of error message)|Signal(?: code)?: )"
    r"|Exiting because a job execution failed|make: \*\*\*|torch\.distributed\.elastic|W\d{4} |E\d{4} .*elastic"
)


def errors(texts: Sequence[LogText]) -> list[EvidenceLine]:
    """Lines that tell of an error, each text once, standard error first."""
    return errors_and_last(texts)[0]


def errors_and_last(texts: Sequence[LogText], besides: Collection[str] = ()) -> tuple[list[EvidenceLine], str | None]:
    """The same, and the message of the last one that is none of `besides`; None where there is none.

    Lines of launchers, which only say that something failed, are the last one where there are no others.
    """
    found: dict[str, EvidenceLine] = {}
    last = outer = None
    for text in stderr_first(texts):
        bodies = own_lines(text)
        known = matched(text, bodies)
        told = sorted(known | {index for index, body in enumerate(bodies) if index not in known and tells(body)})
        for index in told:
            found.setdefault(bodies[index], text.lines[index])
        own = (index for index in reversed(told) if bodies[index] not in besides and not _OUTER.match(bodies[index]))
        plain = next(own, None)
        last = last or (None if plain is None else _with_next(bodies, plain))
        outer = outer or (bodies[told[-1]].strip() if told else None)
    return list(found.values())[:_LIMIT], last or (None if besides else outer)


def warnings(texts: Sequence[LogText]) -> list[EvidenceLine]:
    """Lines that are marked as warnings, each text once."""
    found: dict[str, EvidenceLine] = {}
    for text in stderr_first(texts):
        for line in text.lines:
            body = split_rank(line.text)[1]
            if _WARNING.search(body[:200]):
                found.setdefault(body, line)
    return list(found.values())[:_LIMIT]


def _with_next(bodies: Sequence[str], index: int) -> str:
    body = bodies[index].strip()
    bare = body.endswith((":", " :")) or len(body) < _SHORT
    following = bodies[index + 1].strip() if bare and index + 1 < len(bodies) else ""
    return f"{body} {following}".strip() if following and not _OUTER.match(following) else body


def error_behind(text: LogText, positions: Collection[int]) -> bool:
    """True where another line than these, behind the first of them, tells of an error of the program's own."""
    bodies = [split_rank(line.text)[1] for line in text.lines]
    behind = (bodies[index] for index in range(min(positions), len(bodies)) if index not in positions)
    return any(tells(body) and not _OUTER.match(body) for body in behind)


def tells(body: str) -> bool:
    """True for a line that tells of an error, of a known kind or not."""
    if _ERROR.search(body) is None or harmless(body) or prose(body):
        return False
    return _ERROR.search(_NO_ERROR.sub(" ", body)) is not None


def own_lines(text: LogText) -> list[str]:
    """The lines without a rank's prefix; empty those that a traceback only quotes, or shows of what was ignored."""
    quoted = tracebacks(text)[1] if any("Traceback (" in line.text for line in text.lines) else frozenset[int]()
    return ["" if index in quoted else split_rank(line.text)[1] for index, line in enumerate(text.lines)]


def matched(text: LogText, bodies: Sequence[str]) -> set[int]:
    """Which of a text's own lines a signature matches.

    All lines are asked as they are, as for the diagnosis: the same question is answered once.
    """
    return {index for index, _, _ in matching([split_rank(line.text)[1] for line in text.lines]) if bodies[index]}


def stderr_first(texts: Sequence[LogText]) -> list[LogText]:
    """The texts with standard error before standard output."""
    return sorted(texts, key=lambda text: text.kind != "stderr")


def metrics(texts: Sequence[LogText]) -> dict[str, float]:
    """The last value of each figure that a line states as `name: number` or `name=number`, and of `epoch 3/10`.

    Names are in small letters with `_` for blanks. A figure whose last value is not a number is left out.
    """
    found: dict[str, float] = {}
    for text in texts:
        for line in text.lines:
            for match in (*_STATED.finditer(line.text), *_COUNTED.finditer(line.text)):
                name = _name(match["name"].lower())
                if name is not None:
                    found[name] = float(match["value"])
    return {name: value for name, value in found.items() if math.isfinite(value)}


def _name(text: str) -> str | None:
    """The figure's name, or None for the name of something else; a split before it belongs to it."""
    before, _, last = text.rpartition(" ")
    known = text in _PAIRS or last.endswith(_RATES) or bool(set(re.split(r"[_/.@-]", last)) & _FIGURES)
    if not known:
        return None
    return f"{before}_{last}" if before and (before in _SPLITS or text in _PAIRS) else last
