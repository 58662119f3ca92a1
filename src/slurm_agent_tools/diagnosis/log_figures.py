"""Lines and numbers that a log shows, whatever the job's fate."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from slurm_agent_tools.diagnosis.excerpt import LogText, split_rank
from slurm_agent_tools.diagnosis.harmless_lines import harmless
from slurm_agent_tools.diagnosis.signatures import matching
from slurm_agent_tools.models.shapes import EvidenceLine

_LIMIT = 100

_WARNING = re.compile(r"(?<![=\w])(?:\w*Warning|WARN(?:ING)?)\b|\bwarning:|\[W |^W\d{4}\b", re.IGNORECASE)

_ERROR = re.compile(
    r"\b(?:error|errors|\w+Error|\w*Exception|exception|fatal|critical|traceback|panic|aborted|failed|failure)\b"
    r"|\b(?:killed|segfault|core dumped|cannot|permission denied)\b",
    re.IGNORECASE,
)

# Said of errors that did not happen, and of figures that are called error.
_NO_ERROR = re.compile(
    r"\b(?:no|0|zero|without(?: any)?)\s{1,4}(?:errors?|failures?|failed)\b"
    r"|\b(?:errors?|failures?|failed)\s{0,4}[=:]\s{0,4}(?:0\b|none\b|false\b|[\d.]+(?:e-?\d+)?%?\s*$)"
    r"|\berror (?:rate|bars?|checking|handling|bound|margin)\b",
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

_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}

# What a program says it could not get: numpy, PyTorch (bytes), R.
_NOT_GRANTED = re.compile(
    r"Unable to allocate (?P<size>[\d.]+) (?P<unit>[KMGT])iB"
    r"|cannot allocate vector of size (?P<r>[\d.]+) (?P<runit>[KMGT])b"
    r"|DefaultCPUAllocator: .{0,200}you tried to allocate (?P<bytes>\d+) bytes"
)

# Slurm's sampled limit: KiB used.
_IN_USE = re.compile(
    r"(?:slurmstepd|slurmd)\S{0,80}: .{0,200}exceeded (?:job |step )?memory limit \((?P<used>\d+) > \d+\)",
    re.IGNORECASE,
)


def errors(texts: Sequence[LogText]) -> list[EvidenceLine]:
    """Lines that tell of an error, each text once, standard error first."""
    return _collect(texts, _error_lines)


def warnings(texts: Sequence[LogText]) -> list[EvidenceLine]:
    """Lines that are marked as warnings, each text once."""
    return _collect(texts, lambda lines: {i for i, line in enumerate(lines) if _WARNING.search(line[:200])})


def _error_lines(lines: Sequence[str]) -> set[int]:
    found = {index for index, _, _ in matching(lines)}
    plain = (i for i, line in enumerate(lines) if _ERROR.search(line) and not _NO_ERROR.search(line))
    return found | {index for index in plain if not harmless(lines[index])}


def _collect(texts: Sequence[LogText], choose: Callable[[Sequence[str]], set[int]]) -> list[EvidenceLine]:
    found: dict[str, EvidenceLine] = {}
    for text in stderr_first(texts):
        bodies = [split_rank(line.text)[1] for line in text.lines]
        for index in sorted(choose(bodies)):
            found.setdefault(bodies[index], text.lines[index])
    return list(found.values())[:_LIMIT]


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


def memory_in_use(texts: Sequence[LogText]) -> int:
    """Bytes that Slurm said in the log were in use when it ended the job; 0 where it said nothing."""
    matches = (_IN_USE.search(line.text) for text in texts for line in text.lines)
    return max((int(match["used"]) * 2**10 for match in matches if match is not None), default=0)


def memory_not_granted(texts: Sequence[LogText]) -> int:
    """Bytes of the last allocation that failed; 0 where the log tells of none."""
    size = 0
    for match in (_NOT_GRANTED.search(line.text) for text in texts for line in text.lines):
        if match is not None and match["bytes"]:
            size = int(match["bytes"])
        elif match is not None:
            size = round(float(match["size"] or match["r"]) * _UNITS[match["unit"] or match["runit"]])
    return size
