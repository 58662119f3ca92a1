from __future__ import annotations

import tracemalloc

import pytest

from slurm_agent_tools.programs.languages.python_program import read_python

CVD, NUM, SUB, AGAIN, DARK = "cuda-visible-devices", "device-index", "direct-submission", "auto-retry", "opaque-code"

FOUND = [
    (CVD, "os.environ['CUDA_VISIBLE_DEVICES'] = '0'"),
    (CVD, "os.environ['CUDA_VISIBLE' + '_DEVICES'] = '0'"),
    (CVD, "k = 'CUDA_VISIBLE_DEVICES'\nos.environ[k] = '0'"),
    (CVD, "p = 'CUDA'\nos.environ[f'{p}_VISIBLE_DEVICES'] = '0'"),
    (CVD, "os.environ['_'.join(['CUDA', 'VISIBLE', 'DEVICES'])] = '0'"),
    (CVD, "os.environ.setdefault('HIP_VISIBLE_DEVICES', '0')"),
    (CVD, "os.putenv('CUDA_VISIBLE_DEVICES', '0')"),
    (CVD, "os.environ.update({'CUDA_VISIBLE_DEVICES': '0'})"),
    (CVD, "os.environ.update(CUDA_VISIBLE_DEVICES='0')"),
    (CVD, "os.environ |= {'CUDA_VISIBLE_DEVICES': '0'}"),
    (CVD, "e = {**os.environ, 'CUDA_VISIBLE_DEVICES': '0'}"),
    (CVD, "e = dict(os.environ, CUDA_VISIBLE_DEVICES='0')"),
    (CVD, "subprocess.run(['a'], env={'CUDA_VISIBLE_DEVICES': '0'})"),
    (NUM, "torch.device('cuda:0')"),
    (NUM, "torch.device('cuda', 1)"),
    (NUM, "d = f'cuda:{0}'"),
    (NUM, "model.to('cuda:1')"),
    (NUM, "d = 'cuda:0' if torch.cuda.is_available() else 'cpu'"),
    (NUM, "model.cuda(1)"),
    (NUM, "model.cuda(device=1)"),
    (NUM, "torch.cuda.set_device(0)"),
    (NUM, "with torch.cuda.device(1): pass"),
    (NUM, "nn.DataParallel(m, device_ids=[0, 1])"),
    (NUM, "with tf.device('/GPU:0'): pass"),
    (SUB, "import submitit"),
    (SUB, "from dask_jobqueue import SLURMCluster"),
    (SUB, "import pyslurm"),
    (AGAIN, "SLURMEnvironment(auto_requeue=True)"),
    (AGAIN, "FailureConfig(max_failures=3)"),
    (CVD, "os.environ['SECIVED_ELBISIV_ADUC'[::-1]] = '0'"),
    (CVD, "os.environ['%s_VISIBLE_DEVICES' % 'CUDA'] = '0'"),
    (CVD, "os.environ['{}_VISIBLE_DEVICES'.format('CUDA')] = '0'"),
    (CVD, "os.environ[bytes.fromhex('435544415f56495349424c455f44455649434553').decode()] = '0'"),
    (CVD, "for k, v in (('CUDA_VISIBLE_DEVICES', '0'), ('A', 'b')):\n    os.environ[k] = v"),
    (CVD, "s = {'CUDA_VISIBLE_DEVICES': '0'}\nos.environ.update(s)"),
    (CVD, "os.environ['CUDA_VISIBLE_DEVICES'] = os.environ['CUDA_VISIBLE_DEVICES'].split(',')[0]"),
    (CVD, "operator.setitem(os.environ, 'CUDA_VISIBLE_DEVICES', '0')"),
    (NUM, "model.to('cuda:{}'.format(1))"),
    (NUM, "model.to('cuda:%d' % 1)"),
    (NUM, "d = jax.devices('gpu')[1]"),
    (NUM, "g = tf.config.list_physical_devices('GPU')\ntf.config.set_visible_devices(g[1], 'GPU')"),
    (NUM, "pl.Trainer(devices=[1])"),
    (NUM, "p.add_argument('--device', default='cuda:1')"),
    (SUB, "from plumbum.cmd import sbatch\nsbatch('x.sh')"),
    (SUB, "importlib.import_module('submitit')"),
    (SUB, "cmd = ['sbatch', '-p', 'gpu']\ngo(cmd + ['x.sh'])"),
    (SUB, "requests.post('http://c:6820/slurm/v0.0.39/job/submit', json=j)"),
    (AGAIN, "for attempt in range(5):\n    try:\n        train()\n    except Exception:\n        continue"),
    (AGAIN, "while True:\n    try:\n        train()\n        break\n    except Exception as e:\n        print(e)"),
    (AGAIN, "while subprocess.call(['python', 't.py']) != 0:\n    pass"),
    (AGAIN, "for i in range(3):\n    r = subprocess.run(['python', 't.py'])\n    if r.returncode == 0:\n        break"),
    (AGAIN, "try:\n    train(64)\nexcept RuntimeError:\n    train(32)"),
    (AGAIN, "def main():\n    try:\n        train()\n    except Exception:\n        main()"),
    (AGAIN, "@retry(stop=stop_after_attempt(3))\ndef train():\n    pass"),
    (AGAIN, "tenacity.retry(stop=3)(train.main)()"),
    (DARK, "exec(base64.b64decode(x))"),
    (DARK, "def ("),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "text"), FOUND, ids=[text for _, text in FOUND])
def test_a_trick_in_python_is_found(rule: str, text: str):
    assert rule in {found[0] for found in read_python(text).findings}


CLEAN = [
    "print(os.environ['CUDA_VISIBLE_DEVICES'])",
    "n = os.environ.get('CUDA_VISIBLE_DEVICES', '').count(',')",
    "del os.environ['CUDA_VISIBLE_DEVICES']",
    "os.environ.pop('CUDA_VISIBLE_DEVICES', None)",
    "os.environ['OMP_NUM_THREADS'] = '4'",
    "model.to('cuda')",
    "model.cuda()",
    "torch.cuda.set_device(local_rank)",
    "torch.device(f'cuda:{local_rank}')",
    "nn.parallel.DistributedDataParallel(m, device_ids=[local_rank])",
    "if device == 'cuda:0': pass",
    "print('cuda:0')",
    "SLURMEnvironment(auto_requeue=False)",
    "'''never use cuda:0 or sbatch'''",
    "subprocess.run(['ls', '-l'])",
    "x.split('a:1')",
    "info = {'CUDA_VISIBLE_DEVICES': os.environ.get('CUDA_VISIBLE_DEVICES')}",
    "print(jax.devices()[0].device_kind)",
    "p.add_argument('--note', help='sbatch run.sh')",
    "tools = ['sbatch', 'squeue', 'sinfo']",
    "for path in paths:\n    try:\n        process(path)\n    except OSError:\n        continue",
    "for epoch in range(9):\n    try:\n        train_epoch(epoch)\n    except KeyboardInterrupt:\n        break",
    "for _ in range(9):\n    try:\n        requests.get(url)\n        break\n    except OSError:\n        time.sleep(1)",
    "for n in ('a', 'b'):\n    r = subprocess.run(['sh', n])\n    if r.returncode != 0:\n        break",
    "@retry(stop=stop_after_attempt(3))\ndef fetch_run(u):\n    return urlopen(u)",
    "while True:\n    x = step(x)\n    if x < 1:\n        break",
]  # fmt: skip


@pytest.mark.parametrize("text", CLEAN)
def test_everyday_python_passes(text: str):
    assert not read_python(text).findings


@pytest.mark.parametrize(
    "text",
    [
        "os.system('sbatch x.sh')",
        "subprocess.run(['sbatch', 'x.sh'])",
        "subprocess.run(f'sbatch {name}', shell=True)",
        "subprocess.Popen('sbatch {}'.format(name).split())",
        "c = 'sbatch'\nsubprocess.run([c, name])",
        "os.execvp('sbatch', ['sbatch', 'x.sh'])",
        "asyncio.create_subprocess_exec('sbatch', 'x.sh')",
    ],
)
def test_a_command_that_python_starts_is_handed_to_the_shells_reader(text: str):
    (inner,) = read_python(text).texts

    assert inner.language == "shell"
    assert inner.text.startswith("sbatch")


@pytest.mark.parametrize(
    "text",
    [
        "start(f'sbatch {name}')",
        "sh('cd jobs && sbatch x.sh')",
        "from subprocess import run as go\ngo(['sbatch', 'x.sh'])",
        "c = ['sbatch', 'x.sh']\nc += ['y']\nsubprocess.run(c)",
        "getattr(os, 'system')('sbatch x.sh')",
        "subprocess.run([shutil.which('sbatch'), 'x.sh'])",
    ],
)
def test_a_submission_is_found_whatever_leads_to_it(text: str):
    program = read_python(text)

    assert any("sbatch" in inner.text for inner in program.texts) or SUB in {found[0] for found in program.findings}


def test_modules_that_may_be_the_projects_are_named():
    program = read_python("import a.b, os\nfrom .c import d\nfrom e import f")

    assert [file.path for file in program.files] == ["a.b", ".c", ".c.d", "e", "e.f"]
    assert {file.how for file in program.files} == {"import"}


def test_what_runs_only_as_a_program_is_left_out_of_a_module():
    text = "if __name__ == '__main__':\n    torch.device('cuda:1')"

    assert not read_python(text, imported=True).findings
    assert read_python(text).findings


def test_a_handed_on_setting_is_worth_a_word_only():
    ((rule, _, level, _),) = read_python("env['CUDA_VISIBLE_DEVICES'] = os.environ['CUDA_VISIBLE_DEVICES']").findings

    assert (rule, level) == (CVD, "warn")


@pytest.mark.parametrize(
    "text",
    [
        "x = '" + "a" * 5000 + "'\n" + "".join(f"x{n} = x.replace('a', x)\n" for n in range(50)),
        "x = '{:{}}'.format('a', '999999999')",
        "x = '%999999999s' % 'a'",
        "x = 'ab'.join([" + "'c'," * 3000 + "])",
    ],
    ids=["replace", "format", "percent", "join"],
)
def test_a_constant_that_would_be_huge_is_not_made(text: str):
    assert not read_python(text).findings


def test_lines_count_from_where_the_text_begins():
    (found,) = read_python("\n\nmodel.cuda(1)", first_line=10).findings

    assert found[3] == 12


@pytest.mark.parametrize("text", ["a = 1if x else 2", 's = "\\d"'])
def test_what_python_would_warn_of_in_a_text_of_others_is_not_printed(text, recwarn):
    read_python(text)

    assert recwarn.list == []


@pytest.mark.parametrize(
    "text",
    ["import a{}", "from a{} import b", "import c, a{}", "if 1: import a{}", "import a{}  # b"],
)
@pytest.mark.parametrize("part", [".a", " . a", ".\\\na", ".\\\ra", ".ä"])
def test_a_name_of_an_import_that_python_joins_part_by_part_is_refused_before_it_is_parsed(text: str, part: str):
    """Thirty thousand parts took 1.4 GB, in the one process that all users ask."""
    assert not [rule for rule, *_ in read_python(text.format(part * 100)).findings if rule == DARK]
    tracemalloc.start()
    try:
        found = read_python(text.format(part * 10_000)).findings
        assert tracemalloc.get_traced_memory()[1] < 16 * 2**20
    finally:
        tracemalloc.stop()
    assert [(rule, what) for rule, what, *_ in found] == [(DARK, "this Python text cannot be parsed")]


def test_a_long_chain_of_attributes_is_no_name_of_an_import():
    assert [rule for rule, *_ in read_python(f"x = a{'.b' * 100}\nos.system('sbatch a.sh')").findings] == []
