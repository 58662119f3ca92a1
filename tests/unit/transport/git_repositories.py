"""Repositories that are made for tests, and programs that they and their user's settings name for git to start."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-c", "protocol.file.allow=always", "-C", str(folder), *words],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def committed(folder: Path) -> Path:
    (folder / "train.py").write_text("print(1)\n")
    (folder / "model.bin").write_text("weights\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def evil(repository: Path) -> tuple[str, Path]:
    """A program in the repository, and the file that it leaves behind when it is run."""
    proof = repository.parent / "was-run.txt"
    program = repository / "evil.sh"
    program.write_text(f'#!/bin/sh\necho "$0 $*" >> {proof}\ncat\n')
    program.chmod(0o755)
    return str(program), proof


def touched(repository: Path, weights: str = "WEIGHTS\n") -> None:
    """As long as before, and newer: git has to compare the contents, through the filter where there is one."""
    (repository / "model.bin").write_text(weights)
    later = time.time() + 5
    os.utime(repository / "train.py", (later, later))


def by_filter(repository: Path, run: str, home: Path) -> None:
    git(repository, "config", "filter.evil.clean", run)
    (repository / ".gitattributes").write_text("* filter=evil\n")


def by_filter_process(repository: Path, run: str, home: Path) -> None:
    git(repository, "config", "filter.evil.process", run)
    git(repository, "config", "filter.evil.required", "true")
    (repository / ".git/info").mkdir(exist_ok=True)
    (repository / ".git/info/attributes").write_text("* filter=evil\n")


def by_lfs_extension(repository: Path, run: str, home: Path) -> None:
    """The user's own filter runs what the repository calls an extension of it, as git-lfs does."""
    lfs = home / "bin/git-lfs"
    lfs.write_text("#!/bin/sh\nexec $(git config lfs.extension.evil.clean)\n")
    lfs.chmod(0o755)
    git(repository, "config", "--global", "filter.lfs.clean", "git-lfs clean -- %f")
    git(repository, "config", "lfs.extension.evil.clean", run)
    (repository / ".gitattributes").write_text("*.bin filter=lfs\n")


def by_included_file(repository: Path, run: str, home: Path) -> None:
    (repository / "more.cfg").write_text(f'[filter "evil"]\nclean = {run}\n[core]\nfsmonitor = {run}\n')
    git(repository, "config", f"includeIf.gitdir:{repository}/.path", str(repository / "more.cfg"))
    (repository / ".gitattributes").write_text("* filter=evil\n")


def by_user_include(repository: Path, run: str, home: Path) -> None:
    """The user's own settings include a file of the folder in which their projects lie."""
    (repository / "more.cfg").write_text(f'[filter "evil"]\nclean = {run}\n')
    git(repository, "config", "--global", f"includeIf.gitdir:{repository}/.path", str(repository / "more.cfg"))
    (repository / ".gitattributes").write_text("* filter=evil\n")


def by_work_tree_settings(repository: Path, run: str, home: Path) -> None:
    git(repository, "config", "extensions.worktreeConfig", "true")
    git(repository, "config", "--worktree", "filter.evil.clean", run)
    git(repository, "config", "--worktree", "core.fsmonitor", run)
    (repository / ".gitattributes").write_text("* filter=evil\n")


def by_monitor(repository: Path, run: str, home: Path) -> None:
    git(repository, "config", "core.fsmonitor", run)


def by_hooks(repository: Path, run: str, home: Path) -> None:
    git(repository, "config", "core.hooksPath", str(repository / "hooks"))
    for folder in (repository / "hooks", repository / ".git/hooks"):
        folder.mkdir(exist_ok=True)
        for name in (
            "post-index-change",
            "fsmonitor-watchman",
            "query-watchman",
            "reference-transaction",
            "pre-auto-gc",
        ):
            shutil.copy(run, folder / name)


def by_lazy_fetch(repository: Path, run: str, home: Path) -> None:
    """A repository of which parts are elsewhere fetches what is missing, by the programs that it names."""
    shutil.rmtree(repository / ".git/objects")
    (repository / ".git/objects/pack").mkdir(parents=True)
    for name, value in {
        "core.repositoryFormatVersion": "1", "extensions.partialClone": "origin", "remote.origin.promisor": "true",
        "remote.origin.url": "ssh://nowhere.example/x", "core.sshCommand": run, "credential.helper": f"!{run}",
        "remote.origin.uploadpack": run, "core.gitProxy": run, "core.askPass": run,
    }.items():  # fmt: skip
        git(repository, "config", name, value)


def by_lazy_fetch_from_a_folder(repository: Path, run: str, home: Path) -> None:
    by_lazy_fetch(repository, run, home)
    git(repository, "config", "remote.origin.url", f"file://{repository}")


def by_lazy_fetch_of_its_own_kind(repository: Path, run: str, home: Path) -> None:
    by_lazy_fetch(repository, run, home)
    git(repository, "config", "remote.origin.url", f"ext::{run}")
    git(repository, "config", "protocol.ext.allow", "always")


def by_texts_and_pagers(repository: Path, run: str, home: Path) -> None:
    (repository / ".gitattributes").write_text("* diff=evil merge=evil\n")
    for name in ("diff.evil.textconv", "diff.evil.command", "diff.external", "core.pager", "pager.status", "pager.config",
                 "pager.rev-parse", "core.editor", "merge.evil.driver", "gpg.program", "core.alternateRefsCommand",
                 "uploadpack.packObjectsHook", "alias.status", "alias.config", "sequence.editor", "trace2.eventTarget",
                 "column.ui", "man.viewer", "interactive.diffFilter", "submodule.recurse"):  # fmt: skip
        git(repository, "config", name, f"!{run}" if name.startswith("alias") else run)


def by_submodule(repository: Path, run: str, home: Path) -> None:
    inner = repository.parent / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    committed(inner)
    git(repository, "submodule", "--quiet", "add", str(inner), "sub")
    git(repository, "commit", "-q", "-m", "with a submodule")
    git(repository / "sub", "config", "core.fsmonitor", run)
    git(repository / "sub", "config", "filter.evil.clean", run)
    (repository / "sub/.gitattributes").write_text("* filter=evil\n")
    git(repository, "config", "submodule.sub.update", f"!{run}")
    git(repository, "config", "diff.ignoreSubmodules", "none")
    git(repository, "config", "status.submoduleSummary", "true")
    touched(repository / "sub")


def by_a_folder_elsewhere(repository: Path, run: str, home: Path) -> None:
    """`.git` is a file that names a folder with settings of its own."""
    by_monitor(repository, run, home)
    by_filter(repository, run, home)
    shutil.move(repository / ".git", repository / "elsewhere")
    (repository / ".git").write_text("gitdir: elsewhere\n")


def by_a_bare_layout(repository: Path, run: str, home: Path) -> None:
    """The project's own folder looks as the inside of a repository."""
    by_monitor(repository, run, home)
    git(repository, "config", "core.worktree", str(repository))
    git(repository, "config", "core.bare", "false")
    for entry in list((repository / ".git").iterdir()):
        shutil.move(entry, repository / entry.name)
    (repository / ".git").rmdir()


def by_path(repository: Path, run: str, home: Path) -> None:
    """A folder of the project is on the user's PATH, as that of an environment that was made there."""
    (repository / "venv/bin").mkdir(parents=True)
    for name in ("git", "git-status", "git-check-attr"):
        shutil.copy(run, repository / "venv/bin" / name)
    os.environ["PATH"] = f"{repository}/venv/bin{os.pathsep}{os.environ['PATH']}"  # set back by `user`


def by_relative_path(repository: Path, run: str, home: Path) -> None:
    shutil.copy(run, repository / "git")
    os.chdir(repository)  # set back by the test
    os.environ["PATH"] = f".{os.pathsep}{os.pathsep}{os.environ['PATH']}"


ATTACKS = [
    by_filter, by_filter_process, by_lfs_extension, by_included_file, by_user_include, by_work_tree_settings, by_monitor,
    by_hooks, by_lazy_fetch, by_lazy_fetch_from_a_folder, by_lazy_fetch_of_its_own_kind, by_texts_and_pagers, by_submodule,
    by_a_folder_elsewhere, by_a_bare_layout, by_path, by_relative_path,
]  # fmt: skip
