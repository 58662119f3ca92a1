from __future__ import annotations

import pytest

from slurm_agent_tools.jobscript.python import read_python

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


def test_lines_count_from_where_the_text_begins():
    (found,) = read_python("\n\nmodel.cuda(1)", first_line=10).findings

    assert found[3] == 12
