"""Files that a script comes to in a roundabout way: a computed folder, a folder that is a program, another encoding."""

from __future__ import annotations

import pytest
from tests.unit.scripts.project import ROOT, MemoryFiles, project, read, rules

INNER = "#!/bin/bash\nsbatch next.sh\n"
SUBMITS = 'import os\nos.system("sbatch next.sh")\n'
SUB, DARK = {"direct-submission"}, {"opaque-code"}


@pytest.mark.parametrize(
    "way",
    [
        "cd $ROOT/sub; ./inner.sh",
        'cd "$SLURM_SUBMIT_DIR/sub" && ./inner.sh',
        'cd "$(dirname "$0")/sub"\nbash inner.sh',
        "(pushd ${BASE}/sub; source inner.sh)",
        "cd sub && ./inner.sh",
        "srun --ntasks=2 --chdir=$ROOT/sub ./inner.sh",
        "srun -D sub ./inner.sh",
        "env -C sub ./inner.sh",
    ],
)
async def test_a_file_in_a_folder_with_a_computed_start_is_read(way: str):
    assert rules(await read(way, project(sub___inner__sh=INNER))) == SUB


@pytest.mark.parametrize("launch", ["mpirun $H ./inner.sh", "mpiexec -n 4 $H bash inner.sh"])
async def test_a_program_behind_a_list_of_hosts_is_read(launch: str):
    hosts = "H=$(scontrol show hostnames | paste -sd, -)\n"

    assert rules(await read(hosts + launch, project(inner__sh=INNER))) == SUB


async def test_a_folder_that_is_all_computed_names_no_file():
    assert rules(await read("cd $ROOT; cd $(mktemp -d); ./inner.sh", project(sub___inner__sh=INNER))) == set()


@pytest.mark.parametrize("way", ["python3 app", "python app/", "srun python ./app --x", "python ."])
async def test_a_folder_that_python_runs_is_read(way: str):
    files = MemoryFiles({f"{ROOT}/app/__main__.py": SUBMITS.encode(), f"{ROOT}/__main__.py": SUBMITS.encode()})

    assert rules(await read(way, files)) == SUB


@pytest.mark.parametrize("way", ["python app.pyz", "python model.pyc", "bash tool.bin"])
async def test_a_program_that_is_no_text_is_told(way: str):
    name = way.split()[1]

    assert rules(await read(way, MemoryFiles({f"{ROOT}/{name}": b"\x00\x01PK"}))) == DARK


@pytest.mark.parametrize("module", ["random", "json", "subprocess", "logging"])
@pytest.mark.parametrize("place", ["{}.py", "{}/__init__.py"])
async def test_a_file_that_stands_in_the_place_of_pythons_own_module_is_read(module: str, place: str):
    files = MemoryFiles(
        {f"{ROOT}/src/t.py": f"import {module}\n".encode(), f"{ROOT}/src/{place.format(module)}": SUBMITS.encode()}
    )

    assert rules(await read("python src/t.py", files)) == SUB


@pytest.mark.parametrize(
    ("way", "place"),
    [
        ("python -m src.t", "json.py"),
        ("PYTHONPATH=lib python src/t.py", "lib/json.py"),
        ("export PYTHONPATH=$PWD/lib:$PYTHONPATH\npython src/t.py", "lib/json.py"),
    ],
)
async def test_a_folder_in_which_python_looks_first_may_hold_a_module_in_the_place_of_its_own(way: str, place: str):
    files = MemoryFiles({f"{ROOT}/src/t.py": b"import json\n", f"{ROOT}/{place}": SUBMITS.encode()})

    assert rules(await read(way, files)) == SUB
    assert rules(await read("python src/t.py", files)) == set()


async def test_a_module_that_python_has_loaded_already_or_that_lies_elsewhere_stands_in_no_place():
    files = project(t__py="import os, sys, json\n", os__py=SUBMITS, sys__py=SUBMITS, src___json__py=SUBMITS)

    assert rules(await read("python t.py", files)) == set()


@pytest.mark.parametrize(
    "first",
    ["# coding: utf-7", "# -*- coding: unicode_escape -*-", "#!/usr/bin/env python3\n# vim: set fileencoding=utf-7 :",
     "# coding: pyxl", "#\r# coding=raw-unicode-escape"],
)  # fmt: skip
async def test_python_in_an_encoding_that_hides_its_text_is_told(first: str):
    reading = await read("python t.py", project(t__py=f"{first}\n# +AAo-import os\n"))

    assert rules(reading) == DARK
    assert "encoding" in reading.findings[0].what


@pytest.mark.parametrize("name", ["utf-8", "latin-1", "iso-8859-15", "cp1252", "gbk", "us-ascii", "UTF8"])
async def test_python_in_an_encoding_that_is_known_is_read(name: str):
    head = f"# -*- coding: {name} -*-\n"

    assert rules(await read("python t.py", project(t__py=head + "print(1)\n"))) == set()
    assert rules(await read("python t.py", project(t__py=head + SUBMITS))) == SUB


async def test_words_about_coding_further_down_choose_no_encoding():
    assert rules(await read("python t.py", project(t__py="x = 1\n# coding: utf-7\nprint(x)\n"))) == set()


async def test_an_imported_module_in_another_encoding_is_told():
    files = project(t__py="import helper\n", helper__py="# coding: utf-7\nx = 1\n")

    assert rules(await read("python t.py", files)) == DARK


RUNS = "#!/bin/bash\npython3 $PROG\n"


@pytest.mark.parametrize(
    "way",
    [
        "export PROG=evil.py\nbash t.sh",
        "PROG=evil.py bash t.sh",
        "PROG=evil.py\nexport PROG\nsrun ./t.sh",
        "set -a\nPROG=evil.py\n./t.sh",
        "PROG=evil.py\nsource t.sh",
        "export PROG=evil.py\nbash outer.sh",
        "export PROG=evil.py\nbash -c 'python3 $PROG'",
        "export PROG=good.py\nbash t.sh\nexport PROG=evil.py\nbash t.sh",
        "export PROG=good.py\nPROG=evil.py bash t.sh",
        "#SBATCH --export=ALL,PROG=evil.py\npython3 $PROG",
    ],
)
async def test_a_program_that_a_variable_names_from_outside_is_read(way: str):
    files = project(t__sh=RUNS, outer__sh="bash t.sh\n", evil__py=SUBMITS, good__py="print(1)\n")

    assert rules(await read(way, files)) == SUB


@pytest.mark.parametrize("set_outside", ["", "export PROG=good.py\n"])
async def test_what_is_run_where_the_variable_is_not_handed_on_is_read_as_well(set_outside: str):
    files = project(t__sh="python3 ${PROG:-evil.py}\n", evil__py=SUBMITS, good__py="print(1)\n")

    assert rules(await read(f"{set_outside}bash t.sh", files)) == SUB


async def test_what_is_found_with_and_without_a_variable_is_told_once():
    files = project(t__sh="sbatch $JOB.sh\npython3 $PROG\n", good__py="print(1)\n")
    script = await read("export PROG=good.py JOB=next\nbash t.sh", files)

    assert len([found for found in script.findings if found.rule == "direct-submission"]) == 1
    assert "good.py" in script.files


async def test_a_variable_with_very_many_values_is_anything():
    values = "\n".join(f"export PROG=good{number}.py" for number in range(40))
    script = await read(f"{values}\nbash t.sh", project(t__sh="$PROG\n"))

    assert rules(script) == DARK
