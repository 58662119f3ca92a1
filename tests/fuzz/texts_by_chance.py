"""Texts of settings, policies, configurations and scripts that nobody would write: large, deep, repeated, half broken."""

from __future__ import annotations

import random
from collections.abc import Callable

TEXTS = {
    "settings": """[ ] { } = . , # " ' \"\"\" ''' \\n \\n \\n 0x 1 1.5 true nan 1e999 2001-01-01 slurm clusters lab http host
        bin_dir read_timeout policy log_level "info" rates currency gpu_hour memory timeout \\u0000 \\ud800 é projects""",
    "policy": """: : - [ ] { } , # " ' | > & * ! !!int !!bool !!timestamp !!binary << ? \\n \\n \\n \\n limits rules gpus free
        justify 16G 24:00:00 1:1:1 name version defaults write folders exceptions until 2026-01-01 protected allowed_signers
        site_rules expression budgets off warn deny submissions on true ~ --- ... %TAG \\x00 \\uD83D é""",
    "configs": """: : - [ ] { } , # " ' | > & * ! !!int !!float !!set !!omap << ? \\n \\n \\n \\n = . [[ ]] slurm gpus memory
        time 12:00:00 lr 0.1 1e-4 seed data_dir path checkpoint nan inf 0x1f 0o17 null true ~ --- model epochs env name
        output_dir ${x} \\uD83D é 2001-01-01""",
    "scripts": """: : = . , [ ] { } ( ) ; & | < > << <<- $ $( ` " ' \\ # ! && || \\n \\n \\n \\n #!/bin/bash #SBATCH --gpus=1 --mem=1G
        for in do done while until if then fi case esac function python srun sbatch bash -c eval exec cat EOF x $x ${x}
        ${x:-y} tasks stages cmd cmds rule shell: run: scripts task def import all: \\t {{x}} process script: \\x00 é""",
}  # fmt: skip

SIGNS = {kind: text.split() for kind, text in TEXTS.items()}

FRONT = {
    "settings": [b""], "policy": [b""], "configs": [b".yaml\0", b".toml\0", b".json\0"],
    "scripts": [b"\0", b"\0", b"\0", b"npm\0", b"pixi\0", b"task\0", b"dvc\0", b"just\0", b"snakemake\0", b"make\0", b"inv\0",
                b"nextflow\0"],
}  # fmt: skip

_CONFIG = (
    b"model: {name: resnet, depth: 50}\ndata_dir: data/x\nseeds: [1, 2, 3]\nslurm:\n  gpus: 2\n  time: '2:00:00'\n"
)
SAMPLES = {
    "settings": [(b'log_level = "info"\npolicy = "policies/a.yaml"\n[slurm]\nread_timeout = 3\n[rates]\ncurrency = "EUR"\n'
                 b'[rates.gpu_hour]\na100 = 1.5\n[clusters.lab]\nidle_seconds = 60\n[http]\nper_minute = 60\n')],
    "policy": [b"name: x\nversion: '2'\nlimits:\n  max_concurrent_jobs: 2\n  gpus: {free: 1, justify: 2}\nrules: {gpus: deny}\n"],
    "configs": [b".yaml\0" + _CONFIG, b".yaml\0base: &b {lr: 0.1}\nrun:\n  <<: *b\n" + _CONFIG,
                b'.toml\0seed = 1\n[model]\nname = "a"\n[[runs]]\nlr = 0.1\n[slurm]\ngpus = 1\n',
                b'.json\0{"seed": 1, "model": {"name": "a", "sizes": [1, 2.5, null]}, "slurm": {"gpus": 1}}'],
    "scripts": [b'\0#!/bin/bash\n#SBATCH --gpus=1 --time=1:00:00\nfor x in a b; do python train.py "$x"; done\n',
                b'npm\0{"scripts": {"all": "python train.py"}}', b"task\0tasks:\n  all: {cmds: [python train.py]}\n",
                b'pixi\0[tasks]\nall = "python train.py"\n', b"make\0all: x\n\tpython train.py $(A)\nA := 1\n"],
}  # fmt: skip
"""What people write; a few of its pieces are changed."""

LARGEST = {"settings": 300_000, "policy": 300_000, "configs": 5 * 2**20, "scripts": 2**20}


def _sign(words: list[str], chance: random.Random) -> str:
    word = chance.choice(words)
    return word.encode().decode("unicode_escape") if word.startswith("\\") and len(word) > 1 else word


def _some(words: list[str], chance: random.Random, most: int) -> str:
    between = chance.choice(["", "", " ", "\n"])
    return between.join(_sign(words, chance) for _ in range(chance.randint(1, most)))


def _repeated(words: list[str], chance: random.Random, size: int) -> str:
    """One piece again and again: nested, listed, or as one long word."""
    piece = _some(words, chance, 6)
    return piece * (chance.choice([10, 60, 1000, 20_000, size]) // len(piece) + 1)


def _counted(words: list[str], chance: random.Random, size: int) -> str:
    """One piece with another number each time."""
    piece, much = _some(words, chance, 4), chance.choice([100, 5000, 60_000])
    step = chance.choice([1, 2**61 - 1])
    return "".join(f"{piece}{number * step}" for number in range(min(much, size // (len(piece) + 8))))


def _nested(words: list[str], chance: random.Random, size: int) -> str:
    opened, closed = _some(words, chance, 3), _some(words, chance, 3)
    depth = min(chance.choice([20, 49, 60, 500, 20_000]), size // (len(opened) + len(closed)))
    return opened * depth + _some(words, chance, 3) + closed * depth


def _long(words: list[str], chance: random.Random, size: int) -> str:
    """One sign for as long as may be, between pieces."""
    sign = chance.choice(
        [
            " ",
            "\n",
            "\t",
            "a",
            "1",
            "(",
            "'",
            '"',
            "\\",
            "#",
            "$",
            "`",
            "é",
            "0:",
            "a.",
            "a ",
            "- ",
            "[]",
            "\n ",
            "x=",
            "{}",
            "a|",
        ]
    )
    much = chance.choice([100, 5000, 100_000, size])
    return _some(words, chance, 4) + sign * (much // len(sign)) + _some(words, chance, 4)


def _indented(words: list[str], chance: random.Random, size: int) -> str:
    piece, much = _some(words, chance, 3).replace("\n", ""), chance.choice([30, 49, 60, 1000])
    lines = [" " * depth + piece for depth in range(much)]
    return "\n".join(lines)[:size]


MAKERS: list[Callable[[list[str], random.Random, int], str]] = [
    lambda words, chance, size: _some(words, chance, min(400, size)), _repeated, _counted, _nested, _long, _indented
]  # fmt: skip


def _changed(kind: str, chance: random.Random, size: int) -> bytes:
    data = bytearray(chance.choice(SAMPLES[kind]))
    front = data.find(b"\0") + 1
    for _ in range(chance.randint(1, 4)):
        at, length = chance.randint(front, len(data)), chance.choice([0, 1, 5, 20])
        piece = data[at : at + length]
        sign = _sign(SIGNS[kind], chance).encode("utf-8", "surrogatepass")
        much = chance.choice([1, 2, 50, 5000])
        data[at : at + length] = chance.choice([b"", piece * much, sign, sign * much, piece[::-1], piece + b"\n"])
    return bytes(data[: size + 10])


def made(kind: str, number: int, *, largest: int | None = None) -> bytes:
    """The text of a number, the same each time; `largest`: bytes, at most what the reader takes and a little more."""
    chance = random.Random(f"{kind}{number}")  # noqa: S311 - nothing is kept secret with it
    size = min(largest or LARGEST[kind], LARGEST[kind])
    if chance.random() < 0.5:
        return _changed(kind, chance, size)
    words, left, parts = SIGNS[kind], size, list[str]()
    for _ in range(chance.randint(1, 4)):
        parts.append(chance.choice(MAKERS)(words, chance, max(left, 1)))
        left -= len(parts[-1])
        if left <= 0:
            break
    head = "#!/bin/bash\n" if kind == "scripts" and chance.random() < 0.8 else ""
    text = (head + "\n".join(parts)).encode("utf-8", "surrogatepass")[: size + chance.randint(0, 10)]
    if chance.random() < 0.05:
        text += bytes([chance.randint(128, 255)])
    return chance.choice(FRONT[kind]) + text
