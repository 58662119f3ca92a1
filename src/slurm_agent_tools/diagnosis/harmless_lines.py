"""Lines that sound like a failure and are none: warnings, information, what a program says it got over."""

from __future__ import annotations

import re
from functools import lru_cache

# Python's and compilers' warnings, log levels, glog's W and I. NCCL calls its errors WARN.
_LEVEL = re.compile(
    r"(?<![=\w])(?:\w*Warning|(?<!NCCL )WARN(?:ING)?|INFO|DEBUG|NOTICE)\b|(?i:\b(?:warning|info|hint):)"
    r"|^\[?[WI]\d{4}\b|\[[WI] |: [WI] (?:tensorflow|external)/"
)

_EXCEPTION = re.compile(r"[\w.]*(?:Error|Exception)\b")

_GOT_OVER = re.compile(
    r"\b(?:ignor(?:ed|ing)|skipp(?:ed|ing)|re-?trying|will re-?try|execution is retried|falling back|will try again"
    r"|trying (?:again|another|next|\d)|entering retry loop|attempt (\d+)(?:/| of )(?!\1\b)\d+"
    r"|continuing (?:without|with|anyway)|(?:using|running) .{1,40} instead|starting from scratch|going to /tmp instead"
    r"|not a failure|optional)\b",
    re.IGNORECASE | re.ASCII,
)

# What programs print as errors on every other node, whatever becomes of them.
_USUAL = re.compile(
    r"Unable to register cu(?:DNN|FFT|BLAS) factory|TF-TRT|libnvinfer|\bSetting up X11|X11 connection rejected"
    r"|Inappropriate ioctl|cannot change locale|setlocale|No value for \$TERM|Fontconfig error|libGL error"
    r"|cannot (?:open|connect to) (?:X )?display|unable to find any relevant network interfaces"
    r"|No OpenFabrics connection schemes|libnuma: |failed to open libhwloc|mesg: |stty: "
    r"|slurmstepd\S{0,80}: error: (?:_is_a_lwp|.{0,80}(?:/proc/\d|/sys/fs/cgroup|/cgroup/))"
    r"|\b(?:error|exit|return) codes: |Address family not supported by protocol|^-- |GPU will not be used"
    r"|test(?:s|_\w+)? .{0,40}(?:passed|PASSED|ok\b)",
    re.ASCII,
)

# Warnings that are all that a library says of what may have ended the program.
_GRAVE = re.compile(r"\bCurrent allocation summary follows|\bserver socket has failed to bind\b")

_LOOKING = re.compile(r"(?:find|ls|rm|rmdir|du|df|which|grep|stat|touch|kill|pkill|wc): ")

_SMALL = re.compile(
    r"(?:\S*/)?(?:cp|mv|mkdir|cd|ln|cat|tar|rsync|chmod|head|tail|sed|source|bash|sh): |\S{1,200}: line \d+: "
)

_MARKED = 200  # characters at a line's start in which its level stands


@lru_cache(maxsize=16)  # each signature asks for the same line
def harmless(line: str) -> bool:
    """True for a line that is marked as a warning or as information, and for `passing` ones."""
    marked = _marked(line) and _GRAVE.search(line) is None
    return (marked and _EXCEPTION.match(line) is None) or passing(line)


def grave(line: str) -> bool:
    """True for a line that is marked as a warning and still counts, where nothing else is there."""
    return _marked(line) and _GRAVE.search(line) is not None


def _marked(line: str) -> bool:
    return _LEVEL.search(line[:_MARKED]) is not None


def passing(line: str) -> bool:
    """True for a line that says that the program went on, or that is printed whether or not anything failed."""
    return _USUAL.search(line) is not None or (_GOT_OVER.search(line) is not None and _EXCEPTION.match(line) is None)


def probing(line: str) -> bool:
    """True for what tools say that only look around or clean up; scripts seldom end for it."""
    return _LOOKING.match(line) is not None


def of_the_shell(line: str) -> bool:
    """True for what the shell and its small tools say; a script goes on behind it unless it has `set -e`."""
    return probing(line) or _SMALL.match(line) is not None
