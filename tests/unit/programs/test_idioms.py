"""Everyday idioms that look like a trick, each beside the trick that it must not be taken for."""

from __future__ import annotations

import pytest
from tests.unit.scripts.project import project, read, rules

AGAIN, SUB, CVD, NUM, DARK, INT = (
    "auto-retry", "direct-submission", "cuda-visible-devices", "device-index", "opaque-code", "interactive",
)  # fmt: skip

WRITES = "cat > rank.sh <<'EOF'\n#!/bin/bash\necho rank\n{}\nEOF\nchmod +x rank.sh\n"
WRAPPER = WRITES.format('exec "$@"')
SHIFTED = WRITES.format('echo "$1"\nshift\nexec $@')
RUN = 'run() { log "$1"; shift; timeout 1h "$@" || exit; }\n'
FLAG = "DRY=false\nwhile getopts no: o; do case $o in n) DRY=true;; o) OUT=$OPTARG;; esac; done\n"
R_TEXT = "Rscript - \"$OUT\" <<'R'\n{}\nR"

ALLOWED = [
    # work in the body of a loop that asks
    "until python is_converged.py state.json; do ./advance --steps 1000; n=$((n+1)); done",
    "until ./converged; do ./advance; sleep 1; done",
    "while ! grep -q done log; do ./advance; done",
    "until ./next; do ./adapt mesh.in; done",
    # waiting for a server
    "hq server start & until hq job list &>/dev/null; do sleep 1; done",
    "hq server start & until hq job list; do sleep 1; done",
    "until ray status > /dev/null 2>&1; do sleep 2; done",
    "while ! docker info >/dev/null 2>&1; do sleep 1; done",
    "while ! ./poll_ready.sh; do sleep 5; done",
    "for i in 1 2 3; do docker info &>/dev/null && break; sleep 1; done",
    "while true; do if ray status &>/dev/null; then break; fi; sleep 1; done",
    "while ! python -c 'import socket; socket.create_connection((\"n\", 80))' 2>/dev/null; do sleep 1; done",
    # the arguments of `bash -c`
    'srun bash -c \'"$0" --rank "$SLURM_PROCID" "$@"\' ./bin/collect cases/*',
    "srun bash -c 'exec \"$@\"' _ ./a.out",
    "ls cases | xargs -n 1 bash -c 'tail -n 1 \"cases/$0/log\"'",
    # flags
    FLAG + 'f() { if $DRY; then echo "$1"; fi; }\nf a\nf b',
    "x=$(cat y); F=false; for a in 1 2; do F=true; done; if ! $F; then echo no; fi",
    # texts for other languages
    R_TEXT.format('d <- read.csv("a.csv"); system("ls"); print(system.time(f(d)))'),
    "R --no-save <<R\nd <- read.csv('$FILE')\nR",
    'julia --project -t 4 <<\'J\'\nusing CUDA\nrun(`ls`)\nENV["A"] = "1"\nJ',
    "perl -w <<'P'\n$ENV{FOO} = 1;\nprint eval { f() };\nP",
    "gnuplot <<< \"plot 'a'\"",
    "sed s/X/1/ plot.gp | gnuplot",
    # GNU parallel's replacement strings
    "ls | parallel -j 4 'zcat {} | head > sub/{/}'",
    "parallel 'gzip < {1} > {1/.}.{#}.{%}.gz; ls {//} {.} {/.}' ::: a b",
    # rank wrappers
    WRAPPER + "srun --cpu-bind=cores ./rank.sh ./hybrid.x input.nml",
    WRAPPER + "srun bash rank.sh ./x\nsrun bash rank.sh ./y",
    SHIFTED + 'srun ./rank.sh "$name" ./x',
    RUN + 'run "$sample" bwa mem "$ref"\nrun "$sample" samtools sort',
    # getopt
    'P=$(getopt -o i:o: --long in:,out: -n "$(basename "$0")" -- "$@") || exit 2\neval set -- "$P"',
    'eval set -- "$(getopt -o a -- "$@")"',
    'P=`getopt --options ab -- "$@"`; eval "set -- $P"',
    # downloads and uploads, which are tried again
    "until huggingface-cli download org/model; do sleep 5; done",
    "while ! hf download org/model --local-dir m; do sleep 3; done",
    "for i in 1 2 3; do aws s3 sync s3://a b && break; sleep 5; done",
    "until apptainer pull x.sif docker://x; do sleep 5; done",
    "for i in 1 2 3; do gsutil cp gs://a b && break; done",
    "until python scripts/download_data.py --all; do sleep 60; done",
    "until gdown 1x; do sleep 5; done",
    "until python3 -c 'from huggingface_hub import snapshot_download as get; get(\"org/model\")'; do sleep 5; done",
    "until python -c 'import nltk; nltk.download(\"punkt\")'; do sleep 5; done",
    "until oras pull registry/x; do sleep 5; done",
    "for i in 1 2 3; do gh release download v1 && break; done",
    "retry -t 3 wget http://host/data.tar",
    "for i in {1..20}; do if hf upload a b; then break; else sleep 5; fi; done",
    # watching
    "while true; do top -b -n 1 >> top.log; sleep 600; done &\npython train.py",
    "while true; do ./log_usage.sh; sleep 60; done &\npython train.py",
    "while true; do vmstat; iostat; sleep 9; done &\n./a.out",
    # keys of arrays
    "declare -A M=([/a/b]=/c [x y]=1)\necho ${M[/a/b]}",
    'declare -A M\nM[a.b/c]=1; M[http://x]=2\nfor k in "${!M[@]}"; do echo ${M[$k]}; done',
    # lists of hosts
    "H=''\nfor h in $(scontrol show hostnames $SLURM_NODELIST); do H=\"$H -host $h\"; done\nmpirun $H ./a.out",
    'for h in $(scontrol show hostnames); do H="$H $h"; done\nmpirun --host $H ./a.out',
    'for h in $(scontrol show hostnames); do H="${H:+$H,}$h:4"; done\nx=$(cat y); mpirun -host $H ./a.out',
    "x=$(cat y); H=$(scontrol show hostnames | sort -u | paste -sd, -); mpirun $H ./a.out",
    "x=$(cat y); H=$(srun hostname | sort | tr '\\n' ','); mpirun $H ./a.out",
    # looking for sbatch
    "if command -v sbatch >/dev/null; then echo yes; fi",
    "command -v sbatch squeue srun",
    # zsh
    "#!/bin/zsh\nrepeat 3 ./a.out",
    'foreach() { for one in "$@"; do echo "$one"; done; }\nforeach a b',
    "hq --server-dir run alloc list",
    "#!/bin/zsh\nsetopt extended_glob\nfor f in *.txt(N); do echo ${f:t}; done\npython train.py ${(j:,:)files}",
    "#!/usr/bin/env zsh\nif (( $+commands[sbatch] )); then echo yes; fi\nnoglob ./a.out *",
]

REFUSED = [
    (AGAIN, "until hf jobs run train; do sleep 5; done"),
    (AGAIN, "until aws batch submit; do sleep 5; done"),
    (AGAIN, "until python download_and_train.py; do sleep 5; done"),
    (AGAIN, "until python -c 'download()'; do sleep 5; done"),
    (AGAIN, "while true; do python train_monitor.py; sleep 5; done"),
    (AGAIN, "while true; do ./log_usage.sh; done"),
    (AGAIN, "while [ 1 ]; do python train.py; sleep 5; done"),
    (AGAIN, "while ((1)); do python train.py; sleep 5; done"),
    (SUB, "declare -A M=([/a/b]=/c)\nsbatch x.sh"),
    (SUB, "declare -A M\nM[/a]=$(sbatch x.sh)"),
    (SUB, 'for h in $(scontrol show hostnames); do H="$H -host $h"; done\nmpirun $H sbatch x.sh'),
    (SUB, "H=''\nfor h in $(scontrol show hostnames); do H=\"$H sbatch $h\"; done\n$H x.sh"),
    (DARK, 'x=$(cat y); for h in $(cat hosts); do H="$H $h"; done\nmpirun $H ./a.out'),
    (DARK, "H=$(scontrol show hostnames | tr a-z x); $H x"),
    (DARK, "$(date +sbatch) x.sh"),
    (SUB, "#!/bin/zsh\nsbatch x.sh"),
    (SUB, "#!/bin/zsh\n=sbatch x.sh"),
    (SUB, "#!/bin/zsh\nnoglob sbatch x.sh"),
    (SUB, "#!/bin/zsh\nrepeat 3 sbatch x.sh"),
    (CVD, "#!/bin/zsh\nfor f in *(N); do export CUDA_VISIBLE_DEVICES=0; done"),
    (DARK, "#!/bin/zsh\nfor f (a b c) echo $f"),
    (DARK, "#!/bin/zsh\nforeach f (a b)\n  ./fit $f && break\nend"),
    (DARK, "#!/bin/zsh\nrepeat 5 { ./fit && break }"),
    (DARK, "#!/bin/zsh\nwhile (( n++ < 5 )) { ./fit && break }"),
    (DARK, "#!/bin/zsh\nuntil ./fit { sleep 9 }"),
    (AGAIN, "while sleep 5; do python train.py; done"),
    (AGAIN, "retry -t 3 -- python train.py"),
    (AGAIN, "until python -c 'import torch; from huggingface_hub import snapshot_download; fit()'; do sleep 9; done"),
    (SUB, "hq --server-dir run alloc add pbs --time-limit 1h"),
    (SUB, "hq server start &\nhq alloc add slurm --time-limit 1h -- --partition=gpu"),
    (SUB, "ipcluster start --engines=slurm"),
    (SUB, "sinteractive -c 4"),
    (AGAIN, "until python train.py; do sleep 60; done"),
    (AGAIN, "until ./run.sh > /dev/null; do sleep 5; done"),
    (AGAIN, "until python train.py status > /dev/null; do sleep 5; done"),
    (AGAIN, "until srun ./x status > /dev/null; do sleep 5; done"),
    (AGAIN, "until ./solver a.in; do rm -f core; ./cleanup.sh; done"),
    (AGAIN, "until python train.py; do ./pick_checkpoint; done"),
    (AGAIN, "until ./solver; do ./prepare; sleep 60; done"),
    (AGAIN, "until ./solver; do ./solver --restart; done"),
    (AGAIN, "./train & until ./train --status; do sleep 5; done"),
    (AGAIN, "until ./train_check.sh; do sleep 5; done"),
    (AGAIN, "until python -c 'import socket, train; train.go()' 2>/dev/null; do sleep 1; done"),
    (AGAIN, "until python -c 'import urllib, os; os.system(\"x\")'; do sleep 1; done"),
    (AGAIN, 'bash -c \'"$0" again\' "$0"'),
    (SUB, 'srun bash -c \'"$0" "$@"\' sbatch x.sh'),
    (SUB, 'set -- a=true b=sbatch\nvalue=("${@#*=}")\n"${value[1]}" x.sh'),
    (SUB, 'made=(sbatch.exe ls.exe)\nvalue=("${made[@]%.exe}")\n"${value[0]}" x.sh'),
    (SUB, "srun bash -c 'exec \"$@\"' _ sbatch x.sh"),
    (DARK, "find . -name x -exec bash -c '\"$@\"' _ {} \\;"),
    (DARK, "ls | xargs bash -c '\"$0\" x'"),
    (SUB, "cmd=true; if x; then cmd=sbatch; fi; $cmd job2.sh"),
    (DARK, "cmd=true; cmd=false; read cmd; $cmd x"),
    (DARK, "x=$(y); cmd=true; cmd=false; printf -v cmd %s sbatch; $cmd x"),
    (DARK, "x=$(y); cmd=s; cmd=sb; cmd+=atch; $cmd x"),
    (SUB, R_TEXT.format('system("sbatch job2.sh")')),
    (CVD, R_TEXT.format('Sys.setenv(CUDA_VISIBLE_DEVICES = "0")')),
    (CVD, 'julia <<\'J\'\nENV["CUDA_VISIBLE_DEVICES"] = "0"\nJ'),
    (NUM, "julia <<'J'\nd = \"cuda:1\"\nJ"),
    (SUB, "R --no-save <<'R'\nsystem('sbatch x')\nR"),
    (SUB, "perl - <<'P'\nprint `sbatch x`;\nP"),
    (DARK, R_TEXT.format('system(paste0("sb", "atch x"))')),
    (DARK, 'perl - <<\'P\'\nsystem("sb"."atch x");\nP'),
    (DARK, "perl - <<'P'\nmy $c = 'sb' . 'atch'; `$c x`;\nP"),
    (DARK, "ruby <<'R'\nsystem cmd\nR"),
    (DARK, "perl - <<'P'\n$ENV{'CUDA_VIS'.'IBLE_DEVICES'} = 0;\nP"),
    (DARK, "curl http://x/y | perl -w"),
    (SUB, "ls | parallel 'sbatch {/}'"),
    (DARK, "parallel '{/} x' ::: a"),
    (CVD, "parallel 'CUDA_VISIBLE_DEVICES={%} python {/}' ::: a"),
    (SUB, WRAPPER + "srun ./rank.sh ./x\nsrun ./rank.sh sbatch x.sh"),
    (SUB, SHIFTED + "srun bash rank.sh label sbatch x.sh"),
    (DARK, WRAPPER + 'srun ./rank.sh "$1" ./x'),
    (DARK, WRAPPER + "ls | xargs -I{} ./rank.sh {}"),
    (DARK, "cat > rank.sh <<EOF\nexec $1\nEOF\nsh rank.sh ls"),
    (SUB, RUN + 'run "$sample" sbatch x.sh'),
    (SUB, 'run() { [ "$1" = -q ] && shift; "$@"; }; run -q sbatch x.sh'),
    (INT, 'run() { srun "$@"; }; run --pty bash'),
    (SUB, 'a() { timeout 1 "$@"; }; b() { date; a "$@"; }; b sbatch x.sh'),
    (SUB, 'q() { local tool=$1; shift; "$tool" "$@"; }; q sbatch --mem=4G next.sh'),
    (SUB, 'q() { local n=$1 tool=$2; shift 2; timeout 1h "$tool" "$@"; }; q name sbatch next.sh'),
    (DARK, 'run() { timeout 1h "$@"; }'),
    (DARK, 'shift; "$@"'),
    (DARK, 'P=$(getopt -o a -- "$@"); P=$(cat x); eval set -- "$P"'),
    (DARK, 'P=$(getopt -u -o a -- "$@"); eval set -- "$P"'),
    (DARK, 'P=$(getopt -o a -- "$@"; cat x); eval set -- "$P"'),
    (DARK, 'getopt() { cat x; }; P=$(getopt -o a -- "$@"); eval set -- "$P"'),
    (DARK, 'P=$(getopt -o a -- "$@"); eval "$P"'),
    (DARK, 'P=$(getopt -o a -- "$@"); eval "set -- $P; $(cat x)"'),
    (DARK, 'P=$(getopt -o a -- "$@"); read P < x; eval "set -- $P"'),
]


@pytest.mark.parametrize("body", ALLOWED)
async def test_an_everyday_idiom_is_no_finding(body):
    assert rules(await read(body)) == set()


@pytest.mark.parametrize(("rule", "body"), REFUSED)
async def test_a_trick_beside_an_idiom_is_found(rule, body):
    assert rule in rules(await read(body))


ACTIVATE = """if [ -n "${ZSH_VERSION:+x}" ]; then
    SCRIPT_PATH="${(%):-%x}"
elif [ -n "${KSH_VERSION:+x}" ]; then
    SCRIPT_PATH="${.sh.file}"
fi
VIRTUAL_ENV=/home/ada/project/venv
export VIRTUAL_ENV
"""


@pytest.mark.parametrize("line", ["source venv/bin/activate", ". ./venv/bin/activate"])
async def test_the_lines_for_other_shells_in_an_activate_script_are_no_finding(line):
    files = project(venv___bin___activate=ACTIVATE)
    assert rules(await read(line, files)) == set()
    assert files.asked


@pytest.mark.parametrize(
    ("rule", "more"), [(CVD, "export CUDA_VISIBLE_DEVICES=0"), (SUB, "sbatch x.sh"), (SUB, "$(sbatch x.sh)")]
)
async def test_an_activate_script_that_does_more_is_read(rule, more):
    files = project(venv___bin___activate=ACTIVATE + more)
    assert rule in rules(await read("source venv/bin/activate", files))


async def test_a_file_that_cannot_be_parsed_is_named_with_its_line():
    files = project(lib__sh="echo one\nif then\n")
    (finding,) = (await read("#!/bin/bash\n\n\nsource lib.sh", files)).findings
    assert (finding.rule, finding.evidence.file, finding.evidence.line) == (DARK, "lib.sh", 2)
    assert finding.what.startswith("it runs lib.sh, which cannot be parsed as a shell script: line 2: ")


async def test_a_whole_script_for_another_interpreter_needs_a_look_and_is_named():
    (finding,) = (await read("#!/usr/bin/env Rscript\nprint(1)")).findings
    assert (finding.rule, finding.level) == (DARK, "approve")
    assert "Rscript" in finding.what


async def test_a_text_that_puts_a_command_together_names_its_interpreter():
    (finding,) = (await read(R_TEXT.format("d <- 1\nsystem(cmd)"))).findings
    assert "Rscript" in finding.what
    assert finding.evidence.text == "system(cmd)"
