"""What the files of a policy may be, who may have written them, and what is said where they are not that."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from slurm_agent_tools.errors import ConfigError, StorageError
from slurm_agent_tools.policy import policy_files
from slurm_agent_tools.policy.loading import MAX_BYTES, Base, LoadedPolicy, load, read, shipped


def base(text: str, *layers: str) -> LoadedPolicy:
    files = [(f"policies/{number}.yaml", layer.encode()) for number, layer in enumerate(layers)]
    return load(shipped(), files, base=Base("site", "/etc/policy.yaml", text.encode()))


# --- files --------------------------------------------------------------------------------------------------------


def test_a_policy_file_may_be_as_long_as_the_limit():
    text = b"name: x\n"
    longest = text + b"#" * (MAX_BYTES - len(text))
    assert read("a.yaml", longest).data == {"name": "x"}
    with pytest.raises(ConfigError) as caught:
        read("a.yaml", longest + b"#")
    assert (caught.value.field, caught.value.value) == ("a.yaml", MAX_BYTES + 1)
    assert read("a.yaml", b"").data == {}


@pytest.mark.parametrize(
    ("text", "field", "value", "words"),
    [
        ("limits: {max_concurrent_jobs: 0}\n", "limits.max_concurrent_jobs", 0, "line 1"),
        ("version: '1'\nlimits:\n  gpus: {free: 4, justify: x}\n", "limits.gpus.justify", "x", "line 3"),
        ("nonsense: 1\n", "nonsense", 1, "is not a field of a policy (/etc/policy.yaml, line 1)"),
        ("defaults: {memory: 16}\n", "defaults.memory", 16, "with its unit"),
        ("exceptions: [{rule: gpus, reason: agreed upon, until: 5}]\n", "exceptions.0.until", 5, "write a date"),
    ],
)
def test_a_value_that_cannot_be_is_an_error_with_its_field_value_and_line(text, field, value, words):
    with pytest.raises(ConfigError) as caught:
        base(text)
    assert (caught.value.field, caught.value.value) == (field, value)
    assert words in caught.value.message
    assert f"Correct `{field}`" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ada cert-authority ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA", "cert-authority is not supported"),
        ("ada ssh-dss AAAA", "nor a kind of key"),
        ("ada ssh-ed25519 AAAA", "is not of that kind"),
    ],
)
def test_a_signer_who_could_never_sign_is_an_error_when_the_policy_is_read(line: str, words: str):
    with pytest.raises(ConfigError) as caught:
        base(f"allowed_signers:\n  - {line}\n")
    assert caught.value.field == "allowed_signers"
    assert words in caught.value.message
    assert line in caught.value.message


@pytest.mark.proves("site-counts-signatures")
@pytest.mark.parametrize(
    ("stated", "noted"),
    [
        ("", []),
        ("approval_channels: [passkey]\n", []),
        ("approval_channels: [signed]\n", []),
        ("approval_channels: [elicitation, terminal, signed]\n", ["elicitation", "terminal"]),
        ("approval_channels: [terminal]\n", ["terminal"]),
    ],
)
def test_a_sites_policy_counts_no_yes_that_a_job_of_the_user_can_give(stated: str, noted: list[str]):
    loaded = base(stated, "limits: {max_concurrent_jobs: 1}\n")
    named = stated.partition("[")[2].strip("]\n").split(", ") if stated else ["signed", "passkey"]
    assert loaded.policy.approval_channels == tuple(way for way in named if way in {"signed", "passkey"})
    ignored = [note for note in loaded.notes if "approval_channels" in note]
    assert [note.split(" does not count ")[1].split()[0] for note in ignored] == noted
    assert loaded.worth("signed") == "a signature by a key that the site lists"
    assert loaded.worth("passkey") == "a passkey that the site lists"
    assert "convenience" in loaded.worth("terminal")


@pytest.mark.proves("site-counts-signatures")
def test_no_layer_brings_back_a_way_that_the_site_does_not_count():
    loaded = base("version: site\n", "approval_channels: [terminal, signed]\n")
    assert loaded.policy.approval_channels == ("signed",)
    assert any("`approval_channels` cannot be loosened by adding terminal" in note for note in loaded.notes)


def test_where_no_site_decides_every_way_counts_and_is_called_what_it_is_worth():
    for loaded in (load(shipped()), load(shipped(), base=Base("trusted", "/home/ada/p.yaml", b"version: mine\n"))):
        assert loaded.policy.approval_channels == ("elicitation", "terminal", "signed", "passkey")
        assert "every program of this user" in loaded.worth("signed")


@pytest.mark.parametrize(("text", "kind"), [(b"- a\n", "list"), (b"just words\n", "str"), (b"7\n", "int")])
def test_a_file_that_is_no_mapping_is_an_error_that_names_it_and_what_it_is(text: bytes, kind: str):
    with pytest.raises(ConfigError) as caught:
        read("a.yaml", text)
    assert (caught.value.field, caught.value.value) == ("a.yaml", kind)
    assert "field: value" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("text", "fine"),
    [
        ("limits: {gpu_hours_per_job: 0.5}", True), ("limits: {gpu_hours_per_job: 0}", False),
        ("limits: {gpu_hours_per_job: yes}", False), ("limits: {gpu_hours_per_job: '1'}", False),
        ("limits: {gpus: {free: 0, justify: 0}}", True), ("limits: {gpus: {free: -1, justify: 0}}", False),
        ("limits: {gpus: {free: '1', justify: 2}}", False),
        ("limits: {max_concurrent_jobs: 1}", True), ("limits: {max_concurrent_jobs: 0}", False),
        ("limits: {max_concurrent_jobs: 1.0}", False),
        ("limits: {memory_per_gpu: {free: 1K, justify: 1K}}", True), ("limits: {memory_per_gpu: {free: '0', justify: 1K}}", False),
        ("defaults: {time_limit: '00:01'}", True), ("defaults: {time_limit: '0'}", False), ("defaults: {time_limit: UNLIMITED}", False),
        ("approval_seconds: 1", True), ("approval_seconds: 0", False),
        ("justification_min_characters: 1", True), ("justification_min_characters: 0", False),
        ("protected: [a]", True), ("protected: ['']", False), ("protected: [1]", False),
        ("log_folders: [/a]", True), ("log_folders: [a]", False), ("log_folders: [/a/../b]", False),
        ("write: {save_result: {folders: [a]}}", True), ("write: {save_result: {folders: [/a]}}", False),
        ("write: {save_result: {folders: [../a]}}", False),
    ],
)  # fmt: skip
def test_a_value_of_a_policy_is_of_its_kind_from_its_smallest_on(text: str, fine: bool):
    if fine:
        assert base(text).policy is not None
        return
    with pytest.raises(ConfigError):
        base(text)


def test_layers_floor_the_rules_at_the_harshest_of_them():
    loaded = load(shipped(), [("a", b"rules: {opaque-code: deny}"), ("b", b"rules: {opaque-code: approve}")])
    assert (loaded.floors, loaded.notes) == ({"opaque-code": "deny"}, ())
    loose = load(shipped(), [("a", b"rules: {device-index: off, duplicate: warn, opaque-code: warn}")])
    assert loose.floors == {}
    assert len(loose.notes) == 3
    over = base("rules: {opaque-code: warn}", "rules: {opaque-code: warn}")
    assert (over.floors, over.notes) == ({"opaque-code": "warn"}, ())


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(policy_files, "SITE", tmp_path / "etc/policy.yaml")
    for name in ("home", "project", "etc"):
        (tmp_path / name).mkdir()
    return tmp_path


def test_trust_is_written_for_its_owner_alone(home: Path):
    policy_files.trust(home / "a.yaml", b"x")
    record = policy_files.trust_record()
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (record, record.parent, record.parent.parent)]
    assert modes == [0o600, 0o700, 0o700]


def test_trust_that_cannot_be_written_is_an_error_with_its_place_and_a_mend(home: Path):
    (home / "home/.config").write_text("no folder")
    with pytest.raises(StorageError, match="cannot write") as caught:
        policy_files.trust(home / "a.yaml", b"x")
    assert str(policy_files.trust_record()) in caught.value.message
    assert "folder's owner" in (caught.value.hint or "")


def test_a_trusted_policy_is_the_shipped_one_with_the_file_as_its_base(home: Path):
    path = home / "a.yaml"
    path.write_bytes(b"limits: {gpus: {free: 64, justify: 64}}\n")
    content, loaded = policy_files.trustworthy(path)
    assert (content, loaded.policy.limits.gpus.free) == (path.read_bytes(), 64)
    assert loaded.layers == ("shipped", f"trusted {path}")


def told_of(home: Path, text: str) -> list[str]:
    """What the person sees who is to trust a file with this text."""
    path = home / "a.yaml"
    path.write_text(text)
    return list(policy_files.changed_from_shipped(policy_files.trustworthy(path)[1]))


def test_what_a_file_would_loosen_is_told_in_words(home: Path):
    text = (
        "limits: {gpus: {free: 64, justify: 64}, max_pending_jobs: 3}\nrules: {opaque-code: warn}\n"
        "exceptions: [{rule: gpus, reason: agreed upon, until: 2027-01-31}]\n"
    )
    told = told_of(home, text)
    assert [line.split(":")[0] for line in told[:-2]] == ["limits.gpus", "limits.max_pending_jobs"]
    assert told[1].endswith("none -> 3")
    assert told[-2:] == ["rules.opaque-code: warn", "exception: gpus until 2027-01-31"]
    assert policy_files.changed_from_shipped(load(shipped())) == []


def test_whatever_else_a_file_changes_is_told_too_and_nothing_that_it_leaves_as_it_was(home: Path):
    """Whoever trusts a file has to see that it lets untried jobs through, or options that were refused."""
    now = load(shipped()).policy
    options = ", ".join([*now.allowed_options, "uid"])
    told = told_of(
        home,
        f"smoke_first: {{cpu_hours: null, smoke_time_limit: '01:00:00'}}\nfiles_differ: warn\n"
        f"allowed_options: [{options}]\nprotected: []\nsubmissions: on\nname: other\n",
    )
    assert told == [
        f"smoke_first.cpu_hours: {now.smoke_first.cpu_hours} -> no limit",
        "smoke_first.smoke_time_limit: 00:30:00 -> 01:00:00",
        "allowed_options: + uid",
        "files_differ: deny -> warn",
        f"protected: {', '.join(f'- {one}' for one in now.protected)}",
    ]


@pytest.mark.parametrize(
    ("made", "problem"),
    [(lambda path: path.write_text("{"), "is not a record of trust"), (lambda path: path.mkdir(), "is not a record of trust")],
)  # fmt: skip
def test_a_broken_record_of_trust_names_its_place_and_a_mend(home: Path, made, problem: str):
    record = policy_files.trust_record()
    record.parent.mkdir(parents=True)
    made(record)
    with pytest.raises(ConfigError) as caught:
        policy_files.load_for(home / "project", None)
    assert (caught.value.field, caught.value.value) == ("policy", str(record))
    assert problem in caught.value.message
    assert "policy trust FILE" in (caught.value.hint or "")


def test_a_project_may_have_as_many_files_of_policy_as_the_limit_and_no_more(home: Path):
    folder = home / "project/policies"
    folder.mkdir()
    for number in range(64):
        (folder / f"{number:02}.yaml").write_text(f"limits: {{max_pending_jobs: {100 - number}}}\n")
    assert policy_files.load_for(home / "project", None).policy.limits.max_pending_jobs == 37
    (folder / "more.yaml").write_text("name: x\n")
    with pytest.raises(ConfigError) as caught:
        policy_files.load_for(home / "project", None)
    assert (caught.value.field, caught.value.value) == ("policy", str(folder))
    assert "more than 64 files" in caught.value.message
    assert "into one file" in (caught.value.hint or "")


def test_a_file_of_the_settings_that_is_not_there_is_an_error(home: Path):
    with pytest.raises(ConfigError) as caught:
        policy_files.load_for(home / "project", home / "none.yaml")
    assert (caught.value.field, caught.value.value) == ("policy", str(home / "none.yaml"))
    assert "cannot be read: No such file" in caught.value.message
    assert "Mend or remove" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("owners", "fine"),
    [([(0, 0o100644), (0, 0o40755)], True), ([(0, 0o100644), (0, 0o40775)], False), ([(0, 0o100646), (0, 0o40755)], False),
     ([(5, 0o100644), (0, 0o40755)], False), ([(0, 0o100644), (5, 0o40755)], False), ([(None, 0o644)], False), ([(0, None)], False)],
)  # fmt: skip
def test_a_sites_file_and_its_folder_are_roots_alone(owners: Sequence[tuple[int | None, int | None]], fine: bool):
    if fine:
        policy_files.of_root_alone(owners, "/etc/x")
        return
    with pytest.raises(ConfigError) as caught:
        policy_files.of_root_alone(owners, "/etc/x")
    assert (caught.value.field, caught.value.value) == ("policy", "/etc/x")
    assert "chown root" in (caught.value.hint or "")


def test_a_sites_file_is_looked_at_with_its_folder_and_links_count_by_their_owner(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    def owned(mode: int, folder: int = 0o40755, uid: int = 0):
        def told(path: Path) -> SimpleNamespace:
            return SimpleNamespace(st_uid=uid, st_mode=mode if path == policy_files.SITE else folder)

        policy_files.SITE.write_bytes(b"limits: {gpus: {free: 64, justify: 64}}\n")
        monkeypatch.setattr(Path, "lstat", told)

    owned(stat.S_IFLNK | 0o777)
    assert policy_files.load_for(home / "project", None).policy.limits.gpus.free == 64
    for mode, folder, uid in ((0o100666, 0o40755, 0), (0o100644, 0o40777, 0), (0o100644, 0o40755, 7)):
        owned(mode, folder, uid)
        with pytest.raises(ConfigError, match="changed by others than root"):
            policy_files.load_for(home / "project", None)


@pytest.mark.parametrize("part", ["p.yaml", "", ".."], ids=["its file", "its folder", "a folder above"])
def test_a_link_of_roots_to_what_others_can_write_is_no_sites_file(
    home: Path, monkeypatch: pytest.MonkeyPatch, part: str
):
    real = home / "above/real/p.yaml"
    real.parent.mkdir(parents=True)
    real.write_bytes(b"limits: {gpus: {free: 64, justify: 64}}\n")
    policy_files.SITE.symlink_to(real)
    open_to_all = Path(os.path.normpath(real.parent / part))

    def told(path: Path) -> SimpleNamespace:
        kind = stat.S_IFLNK if path == policy_files.SITE else stat.S_IFREG
        return SimpleNamespace(st_uid=0, st_mode=kind | (0o777 if path == open_to_all else 0o755))

    monkeypatch.setattr(Path, "lstat", told)
    with pytest.raises(ConfigError, match="changed by others than root"):
        policy_files.load_for(home / "project", None)
    open_to_all = None
    assert policy_files.load_for(home / "project", None).policy.limits.gpus.free == 64


def test_a_dangling_link_in_the_place_of_the_sites_file_is_an_error(home: Path, monkeypatch: pytest.MonkeyPatch):
    policy_files.SITE.symlink_to(home / "nothing")
    monkeypatch.setattr(Path, "lstat", lambda _: SimpleNamespace(st_uid=0, st_mode=stat.S_IFLNK))
    with pytest.raises(ConfigError, match="cannot be read"):
        policy_files.load_for(home / "project", None)


def test_a_sites_file_that_cannot_be_looked_at_is_an_error(home: Path, monkeypatch: pytest.MonkeyPatch):
    def refused(path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "lstat", refused)
    with pytest.raises(ConfigError) as caught:
        policy_files.load_for(home / "project", None)
    assert (caught.value.field, caught.value.value) == ("policy", str(policy_files.SITE))
    assert "cannot be read: Permission denied" in caught.value.message
    assert "administrator" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("limits: {max_concurent_jobs: 2}", "Did you mean `max_concurrent_jobs`?"),
        ("limitz: {max_concurrent_jobs: 2}", "Did you mean `limits`?"),
        ("zebra: 1", "Correct `zebra`"),
    ],
)
def test_a_misspelt_field_is_told_what_was_meant(text: str, hint: str):
    with pytest.raises(ConfigError) as caught:
        load(shipped(), base=Base("site", "/etc/p.yaml", text.encode()))
    assert caught.value.hint.startswith(hint)
