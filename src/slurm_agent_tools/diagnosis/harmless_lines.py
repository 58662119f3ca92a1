"""Lines that sound like a failure and are none: warnings, information, what a program says it got over."""

from __future__ import annotations

import re
from functools import lru_cache

# Python's and compilers' warnings, log levels, glog's W and I. NCCL calls its errors WARN.
_LEVEL = re.compile(
    r"(?<![=\w])(?:\w*Warning|(?<!NCCL )WARN(?:ING)?|INFO|DEBUG|NOTICE)\b|(?i:\b(?:warning|info|hint):)"
    r"|^\[?[WI]\d{4}\b|\[[WI] |(?:: |^)[WI] (?:tensorflow|external)/|^\W{0,2}\[(?i:skip(?:ped|ping)?|warn|note)\] "
)

_EXCEPTION = re.compile(r"[\w.]*(?:Error|Exception)\b")

_GOT_OVER = re.compile(
    r"\b(?:ignor(?:ed|ing)|skipp(?:ed|ing)|re-?trying|will re-?try|execution is retried|falling back|will try again"
    r"|trying (?:again|another|next|\d)|\w{2,20}ing .{1,40} instead(?=[.!]?\s*$)"
    r"|entering retry loop|attempt (\d+)(?:/| of )(?!\1\b)\d+"
    r"|continuing (?:without|with|anyway|in)"
    r"|, (?:so )?(?:using|downloading|creating|building|generating|assuming|defaulting)\b"
    r"|(?:using|running) .{1,40} instead|(?:start|train)ing from (?:scratch|the beginning)"
    r"|computing it|going to /tmp instead"
    r"|not a failure|optional)\b",
    re.IGNORECASE | re.ASCII,
)

# What programs print as errors on every other node, whatever becomes of them.
_USUAL = re.compile(
    r"Unable to register cu(?:DNN|FFT|BLAS) factory|TF-TRT|libnvinfer|X11 connection rejected|Inappropriate ioctl"
    r"|cannot change locale|setlocale|No value for \$TERM|Fontconfig error|libGL error"
    r"|cannot (?:open|connect to) (?:X )?display|unable to find any relevant network interfaces"
    r"|No OpenFabrics connection schemes|libnuma: |failed to open libhwloc|mesg: |stty: "
    r"|slurmstepd\S{0,80}: error: (?:_is_a_lwp|jobacct_gather_|xcgroup_|task_g_set_affinity"
    r"|.{0,80}(?:/proc/\d|/sys/fs/cgroup|/cgroup/))"
    r"|Address family not supported by protocol|GPU will not be used"
    r"|test(?:s|_\w+)? (?!did not ).{0,40}(?:passed|PASSED|ok\b)|/ error messages$|\(FOAM_SIGFPE\)"
    r"|\(_pin_memory_loop\)|\] (?:error while decoding|concealing \d)|pip's dependency resolver does not currently"
    r"|[Ee]rror evaluating the log probability at the initial"
    r"|\b(?:Setting up X11|(?:error|exit|return) codes: |this does not indicate an error\b|pyxis: could not remove "
    r"|assert \(!closed\) failed$|(?:[Ii]nstall|[Rr]egister|[Ee]nabl|[Tt]rap)\w* .{0,60}\bSIG[A-Z]{3,4}\d?\b"
    r"|Libfabric library call\b|behave unpredictably \(and/or abort\)|G4Exception\b|connect ENOENT \S{1,80}/vscode-"
    r"|sent help message help-\S+ / (?!mpi_errors_are_fatal)"
    r"|failed to (?:set times|preserve (?:ownership|times|mode))\b"
    r"|PMIX ERROR: \S{1,40} in file \S{0,80}(?:gds_|dstore_)|Task completed > TaskHandler\["
    r"|Delay kernel timed out: measured|will result in indexing errors\b|Operation was cancelled$"
    r"|time step continuity errors : )",
    re.ASCII,
)

# The same where it begins a line: a search would ask for each of them at each of a line's characters.
_USUAL_BEGINNING = re.compile(
    r"-- |\+{1,6} \S|(?:could not|cannot|can't|unable to|failed to) (?:remove|delete|unlink)\b.{0,300}No such file"
    r"|\[W .{10,40}\] Trial \d+ failed with |(?:/\S{1,200}/)?libcuda\.\S{1,20}: cannot open shared object|xauth: "
    r"|scancel: error: Kill job error|other system errors; your job"
    r"|(?:Unable to|Cannot|Could not) open log ?file\W{1,3}Permission denied|  Error: No data available \(61\)"
    r"| {2}Error: {2,12}.{1,60} \(errno \d+\)$|(?:mkdir|ln): .{1,300}: File exists$"
    r"|fatal: (?:not a git repository|[Nn]o names found, cannot describe)|hwloc/linux: |SLF4J: "
    r"|Picked up \w*JAVA_\w*OPTIONS: |ALSA lib |X Error of failed|\((?:note: )?file .{1,300} not found\)$"
    r"|\s+error \[nextflow\.exception\.\w+\]: |Unable to init server: |Failed to detect a default CUDA arch"
    r"|Error caught was: No module named|Could not load symbol cublas|(?:lbfgs|liblinear) failed to converge\b"
    r"|Failed to (?:initialize|properly shut ?down) NVML: N/A|(?:chmod|chgrp|chown): .{1,300}Operation not permitted"
    r"|Unable to find image .{1,200} locally$|A system call failed during shared memory initialization"
    r"|\[NbConvertApp\] ERROR \| unhandled iopub msg|Exception ignored (?:in|on|while)\b"
    r"|(?:mail|sendmail|postdrop): |slurmstepd: error: (?:Unable to create TMPDIR|Setting TMPDIR to)\b"
    r"| {1,12}\d{1,12}(?:/\d{1,12})?(?: {1,12}\d{1,9}\.\d{3}){4} |GROMACS reminds you: "
    r"|(?:Chain \d+:? +)?(?:Exception: )+.{1,300}\(in '.{1,300}\bline \d+"
    r"|wandb: (?:ERROR|WARNING)? ?.{0,120}(?:<Response \[5\d\d\]>|\b5\d\d encountered\b|context deadline exceeded)",
    re.ASCII,
)

# The name of an exception within a sentence that is about it, and does not say that it was raised.
_MENTIONED = re.compile(
    r"\b(?:than|on|and|or|any|no|not|if|as|for|without|unless|except|catch\w{0,4}|handl\w{1,4}|avoid\w{0,3}"
    r"|prevent\w{0,3}|suppress\w{0,3}|expect\w{0,3}) (?:an? )?[A-Z]\w{0,60}(?:Error|Exception)\b"
    r"(?![:(\]]|\s*$| (?:was|is|has|occurred|raised|thrown)\b)"
)

# A row of data: a record or a list in the notation of Python or JSON, or columns. Tried at no other place of a line.
_ROW = re.compile(r"^(?:\s*(?:[\[{(]{1,4}\s{0,4}[\"']|[\"']).{60,}[\"'\]}),]\s*$|(?:[^\t]*\t){4}|\d+,\")", re.DOTALL)

# ... that a program's log is written in.
_STRUCTURED = re.compile(
    r"[\"'](?:level|levelname|severity|msg|message|error|exception|stack|status|event)[\"']\s{0,4}:"
    r"|\breturned non-zero exit status \d",
    re.IGNORECASE,
)

_PROSE = 80  # characters of a sentence that is no message of a program

_LITTLE = re.compile(
    r"\b(?:the|of|and|that|was|were|in|to|a|an|is|are|by|on|for|with|as|it|its|be|been|have|has|had|this|these|those"
    r"|which|who|from|or|at|their|they|his|her|he|she|we|our|would|but|no|any|other|some|among|said|not|than|after)\b",
    re.IGNORECASE,
)

_MANY, _SHARE = 6, 0.25  # little words of a sentence, and of all its words

_MESSAGE = re.compile(
    r"\b(?:ERROR|FATAL|CRITICAL|PANIC|Error|Fatal)\b|[A-Za-z](?:Error|Exception)\b"
    r"|(?i:\b(?:error|fatal|exception|failed|failure|abort\w{0,3})\s{0,2}[:!(])"
    r"|^\W{0,4}(?:[a-z0-9/.~]\S{0,79}: |\[.{1,40}\] ){1,3}(?=\S)"
    r"|^\s{0,4}(?i:error|fatal|exception|abort\w*|failed|cannot|could not)\b|^[EF]\d{4} |\.\w{1,4}:\d+\]"
)

# Warnings that are all that a library says of what may have ended the program.
_GRAVE = re.compile(
    r"\bCurrent allocation summary follows"
    r"|\bplexec One of MPI processes was aborted|\bserver socket has failed to bind\b"
)

_LOOKING = re.compile(
    r"(?:find|ls|rm|rmdir|du|df|which|grep|stat|touch|kill|pkill|wc): "
    r"|(?:\S{0,200}/)?\.(?:bash\w{0,10}|profile|[ckz]?shrc|tcshrc|zshenv): line \d+: "
    r"|/etc/(?:profile|bash)\S{0,80}: line \d+: "
    r"|curl: \(7\) .{0,40}\b(?:127\.0\.0\.1|localhost)\b"
    r"|(?:-?bash|sh): (?:\S{1,200}: line \d+: )?\S{0,200}/\.\S{1,100}: No such file"
)

_SMALL = re.compile(
    r"(?:\S*/)?(?:cp|mv|mkdir|cd|ln|cat|tar|rsync|curl|wget|scp|chmod|head|tail|sed|source|bash|sh"
    r"|gzip|gunzip|zcat|bzip2|xz|zip|unzip|sort|awk|gawk|cut|paste|touch|tee|dos2unix|realpath|readlink): "
    r"|\S{1,200}: (?:line \d+: |[Cc]ommand not found\.?$)"
    r"|\S{1,200}: ?(?:(?:Zeile|ligne|l\Snea|linea|riga|linha|regel|linia|wiersz|строка|行|줄) ?\d+|第 ?\d+ ?行) ?: ?"
)

# An environment of conda's or Python's own that was not activated: programs mostly go on in another one.
_NOT_ACTIVATED = re.compile(
    r"(?i)\bconda init\b|\bCannot activate, prefix does not exist\b|\bEnvironment(?:Name|Location)NotFound\b"
    r"|\bNo module named 'conda'|\b__conda_exe: command not found"
    r"|to use 'conda activate'|\bactivate: (?:No such file|Permission denied)"
    r"|\bCould not find conda environment: |\binitialize your shell before using\b"
)

# A folder that was not entered: what came of it is said later, if anything did.
_NOT_ENTERED = re.compile(r": line \d+: cd: ")

# What conda prints behind its word that a shell was not set up for it.
_CONDA_HELP = re.compile(
    r"\s*(?:$|- \w{1,12}$|\$ (?:conda|mamba|micromamba) |To initialize |Currently supported shells|See 'conda init"
    r"|IMPORTANT: You may need|Run `|You can list all discoverable|and then close and restart)"
)

# ROOT goes on behind all that it calls an error; what ends it is called fatal, or a break.
_OF_ROOT = re.compile(r"Error in <T\w{1,60}(?:::~?\w{1,60})?>: ")

_MONITOR = re.compile(r"NVIDIA-SMI has failed|Failed to initialize NVML")

_OFTEN = 300  # characters of a line of which is remembered whether it is passing: a log has thousands, most are short

_MARKED = 200  # characters at a line's start in which its level stands


def harmless(line: str) -> bool:
    """True for a line that is marked as a warning or as information, and for `passing` ones."""
    return marked_harmless(line) or passing(line)


def marked_harmless(line: str) -> bool:
    """True for a line that is marked as a warning or as information, and is neither `grave` nor an exception's."""
    return _marked(line) and _GRAVE.search(line) is None and _EXCEPTION.match(line) is None


def grave(line: str) -> bool:
    """True for a line that is marked as a warning and still counts, where nothing else is there."""
    return _marked(line) and _GRAVE.search(line) is not None


def _marked(line: str) -> bool:
    return _level(line[:_MARKED])


@lru_cache(maxsize=8192)  # each signature that a line concerns asks for it
def _level(head: str) -> bool:
    return _LEVEL.search(head) is not None


def passing(line: str) -> bool:
    """True for a line that says that the program went on, or that is printed whether or not anything failed.

    So do rows of data, and sentences about an exception.
    """
    return _short_passing(line) if len(line) <= _OFTEN else _long_passing(line)


def _passing(line: str) -> bool:
    if _usual(line) or (_ROW.match(line) is not None and _STRUCTURED.search(line) is None):
        return True
    return _EXCEPTION.match(line) is None and (
        _GOT_OVER.search(line) is not None or _MENTIONED.search(line) is not None
    )


def _usual(line: str) -> bool:
    return _USUAL_BEGINNING.match(line) is not None or _USUAL.search(line) is not None


# Signatures, and those who look for errors, go through the same lines one after the other.
_short_passing = lru_cache(maxsize=8192)(_passing)

_long_passing = lru_cache(maxsize=16)(_passing)


def prose(line: str) -> bool:
    """True for a long sentence of a natural language: seldom what a program says of its own failure."""
    if len(line) < _PROSE or _MESSAGE.search(line) is not None:
        return False
    little = len(_LITTLE.findall(line))
    return little >= _MANY and little >= _SHARE * len(line.split())


def hinting(line: str) -> bool:
    """True for a mere hint: prose, warnings, ROOT's errors, and a request or a GPU that a program goes on without."""
    if " thrown while requesting " in line or "failed call to cuInit" in line:
        return True
    return prose(line) or harmless(line) or _OF_ROOT.match(line) is not None


def helping(line: str) -> bool:
    """True for a blank line, and for the help that conda prints with a message of its own."""
    return _CONDA_HELP.match(line) is not None


def probing(line: str) -> bool:
    """True for what tools say that only look around or clean up; scripts seldom end for it."""
    return _LOOKING.match(line) is not None


def of_a_monitor(line: str) -> bool:
    """True for what the tools say that only show a node's GPUs."""
    return _MONITOR.match(line) is not None


def of_the_shell(line: str) -> bool:
    """True for what the shell and its small tools say; a script goes on behind it unless it has `set -e`."""
    return probing(line) or _SMALL.match(line) is not None


def not_activated(line: str) -> bool:
    """True for what is said where an environment was not activated; programs often run without it, or in another."""
    return _NOT_ACTIVATED.search(line) is not None


def not_entered(line: str) -> bool:
    """True for what the shell says of a folder that it could not change to; what fails for it fails later."""
    return _NOT_ENTERED.search(line) is not None
