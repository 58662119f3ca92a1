"""Who may loosen the policy, what a layer can do, and a site's own rules."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest
import yaml
from tests.unit.policy.plans import asks, live

from slurm_agent_tools.errors import ConfigError, StorageError
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.request import Evidence, Finding
from slurm_agent_tools.policy import policy_files, site_rules
from slurm_agent_tools.policy.document import ORDER, SETTABLE
from slurm_agent_tools.policy.evaluate import RULES, decide
from slurm_agent_tools.policy.for_others import schema_text
from slurm_agent_tools.policy.loading import Base, LoadedPolicy, load, shipped
from slurm_agent_tools.policy.plan import PlannedRequest

GIB = 2**30
OPAQUE = Finding(
    "opaque-code", "runs text that cannot be read", Evidence("scripts/train.sh", 2, 'eval "$X"'), "approve"
)


def base(text: str, *layers: str) -> LoadedPolicy:
    found = [(f"policies/{number}.yaml", layer.encode()) for number, layer in enumerate(layers)]
    return load(shipped(), found, base=Base("site", "/etc/policy.yaml", text.encode()))


def layered(*layers: str) -> LoadedPolicy:
    return load(shipped(), [(f"policies/{number}.yaml", layer.encode()) for number, layer in enumerate(layers)])


def plan(**facts: object) -> PlannedRequest:
    made = asks("#SBATCH --partition=gpu", 'eval "$X"', partition="gpu", findings=(OPAQUE,), live=live(), gpus=1)
    numbers = Resources(partition="gpu", gpus=1, cpus=1, nodes=1, memory_bytes=8 * GIB, time_limit_seconds=3600)
    return replace(
        made,
        resources=numbers,
        user="ada",
        today=date(2027, 1, 15),
        **facts,  # type: ignore[arg-type]
    )


def outcome(loaded: LoadedPolicy, rule: str, made: PlannedRequest | None = None, *, complete: bool = False) -> str:
    decision = decide(made or plan(), loaded, decision_id="d", complete=complete)
    return next(result.outcome for result in decision.rules if result.id == rule)


# --- layers -------------------------------------------------------------------------------------------------------


def test_every_rule_says_what_it_may_be_set_to():
    assert set(SETTABLE) == {rule.id for rule in RULES}
    assert all(set(levels) <= set(ORDER) and "deny" in levels for levels in SETTABLE.values())


@pytest.mark.proves("only-the-base-loosens")
def test_a_site_file_may_loosen_and_a_layer_over_it_may_not():
    loose = base("limits: {memory_per_gpu: {free: 64G, justify: 64G}}", "limits: {memory_per_gpu: {free: 80G}}")
    assert loose.policy.limits.memory_per_gpu.free == 64 * GIB
    assert [note for note in loose.notes if "cannot be loosened" in note]
    assert loose.layers == ("shipped", "site /etc/policy.yaml", "policies/0.yaml")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("submissions: on\n", None),
        ("rules: {opaque-code: warn}", "rules.opaque-code"),
        ("rules: {device-index: off}", "rules.device-index"),
        ("exceptions: [{rule: opaque-code, reason: because I say so, until: 2030-01-01}]", "exceptions"),
        ("approval_channels: [terminal]", None),
        ("allowed_signers: [eve ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA]", "allowed_signers"),
    ],
)
def test_a_layer_that_wishes_to_loosen_is_noted_and_changes_nothing(text: str, place: str | None):
    loaded = layered(text)
    assert outcome(loaded, "opaque-code") == "approve"
    assert loaded.policy.allowed_signers == ()
    assert [place in note for note in loaded.notes] == ([] if place is None else [True])


@pytest.mark.parametrize(
    ("text", "free", "justify", "notes"),
    [
        ("free: 100G", 16, 24, 2),
        ("justify: 8G", 8, 8, 0),
        ("free: 8G", 8, 24, 0),
        ("justify: 100G", 16, 24, 1),
        ("free: 20G, justify: 22G", 16, 22, 1),
    ],
)
def test_one_end_of_a_band_may_be_stated_alone(text: str, free: int, justify: int, notes: int):
    loaded = layered(f"limits: {{memory_per_gpu: {{{text}}}}}")
    bands = loaded.policy.limits.memory_per_gpu
    assert (bands.free, bands.justify, len(loaded.notes)) == (free * GIB, justify * GIB, notes), loaded.notes


def test_off_wins_whoever_says_it():
    for loaded in (layered("submissions: off"), layered("submissions: 'off'", "submissions: on")):
        assert loaded.policy.submissions == "off"
        assert outcome(loaded, "budget") == "deny"
    assert base("submissions: off", "submissions: on").policy.submissions == "off"


def test_a_layer_raises_a_rule_and_never_lowers_it():
    loaded = layered("rules: {opaque-code: deny}", "rules: {opaque-code: approve}")
    assert outcome(loaded, "opaque-code") == "deny"
    assert outcome(base("rules: {opaque-code: warn}", "rules: {opaque-code: approve}"), "opaque-code") == "approve"
    assert outcome(base("rules: {opaque-code: deny}", "rules: {opaque-code: approve}"), "opaque-code") == "deny"


def test_a_base_sets_a_level_below_the_rules_own():
    assert outcome(base("rules: {opaque-code: warn}"), "opaque-code") == "warn"
    assert outcome(base("rules: {device-index: off}"), "device-index") == "pass"
    justify = base("rules: {opaque-code: justify}")
    assert outcome(justify, "opaque-code") == "justify"
    assert outcome(justify, "opaque-code", plan(justification="the site's own module loader")) == "pass"


def test_a_reason_is_not_enough_where_the_policy_wants_a_person():
    made = asks("#SBATCH --mem-per-gpu=20G", gpus=1, memory_per_gpu=20 * GIB, justification="does not fit in 16G")
    made = replace(made, resources=Resources(gpus=1, memory_per_gpu_bytes=20 * GIB))
    assert outcome(load(shipped()), "memory-per-gpu", made) == "pass"
    assert outcome(layered("rules: {memory-per-gpu: approve}"), "memory-per-gpu", made) == "approve"


def test_a_reason_is_not_offered_where_it_is_not_enough():
    made = asks("#SBATCH --mem-per-gpu=20G", gpus=1, memory_per_gpu=20 * GIB)
    made = replace(made, resources=Resources(gpus=1, memory_per_gpu_bytes=20 * GIB))
    for loaded, offered in ((load(shipped()), True), (layered("rules: {memory-per-gpu: deny}"), False)):
        decision = decide(made, loaded, decision_id="d")
        (remedy,) = [result.remedy or "" for result in decision.rules if result.id == "memory-per-gpu"]
        assert ("justification" in remedy) is ("JUSTIFIED" in remedy) is offered
        assert "#SBATCH --mem-per-gpu=16G" in remedy


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rules: {opaque: deny}", "there is no rule 'opaque'"),
        ("rules: {path: warn}", "path can be deny, not warn"),
        ("rules: {opaque-code: maybe}", "Input should be"),
        ("exceptions: [{rule: path, reason: because I say so, until: 2030-01-01}]", "it has no exceptions"),
        ("exceptions: [{rule: gpus, reason: short, until: 2030-01-01}]", "at least 8 characters"),
        ("exceptions: [{rule: gpus, reason: because I say so}]", "Field required"),
        ("approval_channels: [mail]", "Input should be"),
        ("site_rules: [{id: gpus, when: 'true', message: m, remedy: r}]", "is the name of a rule that is built in"),
    ],
)
def test_what_cannot_be_set_is_an_error_that_names_it(text: str, words: str):
    with pytest.raises(ConfigError) as caught:
        base(text)
    assert words in caught.value.message


# --- exceptions ---------------------------------------------------------------------------------------------------

AGREED = "{rule: opaque-code, reason: agreed with the group, until: 2027-01-31%s}"


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("", "warn"),
        (", users: [ada]", "warn"),
        (", users: [eve]", "approve"),
        (", projects: [/home/ada/*]", "warn"),
        (", projects: [/home/eve/*]", "approve"),
        (", scripts: [scripts/*]", "warn"),
        (", scripts: [other/*]", "approve"),
        (", partitions: [gpu]", "warn"),
        (", partitions: [cpu]", "approve"),
        (", users: [ada], partitions: [cpu]", "approve"),
    ],
)
def test_an_exception_counts_within_its_scope(scope: str, expected: str):
    assert outcome(base(f"exceptions: [{AGREED % scope}]"), "opaque-code") == expected


def test_an_exception_ends_with_its_day():
    loaded = base(f"exceptions: [{AGREED % ''}]")
    assert outcome(loaded, "opaque-code", replace(plan(), today=date(2027, 1, 31))) == "warn"
    assert outcome(loaded, "opaque-code", replace(plan(), today=date(2027, 2, 1))) == "approve"
    assert outcome(loaded, "opaque-code", replace(plan(), today=None)) == "approve"


# --- a site's own rules -------------------------------------------------------------------------------------------

SITE = "site_rules: [{id: small-and-long, when: '%s', message: Too much for too long., remedy: Ask for less.%s}]"


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ('job.gpus > 2 && job.time_limit > duration("24h")', "pass"),
        ('job.gpus >= 1 && job.time_limit >= duration("1h")', "deny"),
        ('job.partition == "gpu" && "partition" in job.options', "deny"),
        ("job.memory_mb > 8191", "deny"),
        ('script.findings.exists(f, f == "opaque-code")', "deny"),
        ('caller.user in ["ada", "eve"]', "deny"),
        ("queue.active_jobs > 3", "pass"),
        ("1 / job.array_tasks > 5 || 1 / (job.array_tasks - 1) > 0", "deny"),
        ('job.options[7] == "x"', "deny"),
        ('script.text.contains("eval")', "deny"),
    ],
)
def test_a_sites_rule_speaks_where_its_condition_holds_or_fails(when: str, expected: str):
    assert outcome(base(SITE % (when, "")), "small-and-long") == expected


def test_a_sites_rule_may_come_from_a_layer_and_says_its_own_words():
    decision = decide(plan(), layered(SITE % ("job.gpus > 0", ", level: warn")), decision_id="d")
    (result,) = [result for result in decision.rules if result.id == "small-and-long"]
    assert (result.outcome, result.message, result.remedy) == ("warn", "Too much for too long.", "Ask for less.")
    assert result.observed == "job.gpus=1"


def test_a_fact_that_is_not_known_denies_a_submission_and_is_left_open_in_a_check():
    loaded = base(SITE % ("queue.active_jobs > 3", ""))
    made = replace(plan(), live=None)
    assert outcome(loaded, "small-and-long", made) == "not_evaluated"
    assert outcome(loaded, "small-and-long", made, complete=True) == "deny"


@pytest.mark.parametrize(
    ("when", "words"),
    [
        ("job.gpu > 2", "undeclared reference to 'job.gpu'"),
        ("job.gpus", "gives INT, not true or false"),
        ("job.gpus > ", "Syntax error"),
        ("job.partition > 3", "found no matching overload"),
    ],
)
def test_a_rule_with_a_mistake_is_refused_when_the_policy_is_loaded(when: str, words: str):
    with pytest.raises(ConfigError) as caught:
        layered(SITE % (when, ""))
    assert words in caught.value.message
    assert caught.value.field == "site_rules.small-and-long.when"


def test_without_the_library_a_policy_with_an_expression_does_not_load(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "cel_expr_python", None)
    with pytest.raises(ConfigError, match="needs the CEL library"):
        layered(SITE % ("job.gpus > 0", ""))
    assert load(shipped()).expressions == ()


def test_every_published_fact_is_given_for_a_full_plan():
    made = plan(justification="because of the paper")
    made = replace(made, resources=replace(made.resources, memory_per_gpu_bytes=8 * GIB))
    assert set(site_rules.facts(made)) == set(site_rules.FACTS)
    assert site_rules.facts(replace(made, resources=Resources(time_limit_seconds=-1)))["job.time_limit"] > timedelta(
        9999
    )


# --- files --------------------------------------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(policy_files, "SITE", tmp_path / "etc/policy.yaml")
    (tmp_path / "home").mkdir()
    (tmp_path / "project").mkdir()
    return tmp_path


LOOSE = b"limits: {gpus: {free: 64, justify: 64}}\n"


@pytest.mark.proves("only-the-base-loosens")
def test_a_trusted_file_counts_until_a_byte_of_it_changes(home: Path):
    path = home / "loose.yaml"
    path.write_bytes(LOOSE)
    assert policy_files.load_for(home / "project", path).policy.limits.gpus.free == 4, "named by the settings only"
    content, _ = policy_files.trustworthy(path)
    policy_files.trust(path, content)
    assert policy_files.load_for(home / "project", None).policy.limits.gpus.free == 64
    path.write_bytes(LOOSE + b"# changed\n")
    loaded = policy_files.load_for(home / "project", None)
    assert loaded.policy.limits.gpus.free == 4
    assert "has changed since it was trusted" in loaded.notes[0]
    path.unlink()
    assert "cannot be read" in policy_files.load_for(home / "project", None).notes[0]
    assert policy_files.distrust()
    assert policy_files.load_for(home / "project", None).notes == ()
    assert not policy_files.distrust()


@pytest.mark.proves("on-disk-before-the-answer")
def test_a_full_disk_leaves_the_trust_that_was_there_and_no_half_file(home: Path, monkeypatch: pytest.MonkeyPatch):
    policy_files.trust(home / "loose.yaml", LOOSE)
    before = policy_files.trust_record().read_bytes()

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="No space left"):
        policy_files.trust(home / "other.yaml", LOOSE)
    assert policy_files.trust_record().read_bytes() == before
    assert list(policy_files.trust_record().parent.iterdir()) == [policy_files.trust_record()]


def test_a_trust_of_another_machine_counts_for_nothing(home: Path):
    path = home / "loose.yaml"
    path.write_bytes(LOOSE)
    policy_files.trust(path, LOOSE)
    record = json.loads(policy_files.trust_record().read_text())
    policy_files.trust_record().write_text(json.dumps({**record, "host": "elsewhere"}))
    loaded = policy_files.load_for(home / "project", None)
    assert loaded.policy.limits.gpus.free == 4
    assert "not on this machine" in loaded.notes[0]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"path": 3}'])
def test_a_record_of_trust_that_cannot_be_read_is_an_error(home: Path, text: str):
    policy_files.trust_record().parent.mkdir(parents=True)
    policy_files.trust_record().write_text(text)
    with pytest.raises(ConfigError):
        policy_files.load_for(home / "project", None)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can own a site's file")
def test_a_sites_file_decides_alone_and_must_be_roots(home: Path, monkeypatch: pytest.MonkeyPatch):
    etc = Path("/root/slurm-agent-tools-test") if Path("/root").is_dir() else home
    etc.mkdir(exist_ok=True)
    try:
        monkeypatch.setattr(policy_files, "SITE", etc / "policy.yaml")
        policy_files.SITE.write_bytes(LOOSE)
        loaded = policy_files.load_for(home / "project", None)
        assert loaded.policy.limits.gpus.free == 64
        assert loaded.layers[1].startswith("site ")
        with pytest.raises(ConfigError, match="cannot be trusted here"):
            policy_files.trustworthy(home / "loose.yaml")
        policy_files.trust(home / "loose.yaml", LOOSE)
        assert "decides here; ignored" in policy_files.load_for(home / "project", None).notes[0]
        policy_files.SITE.chmod(0o666)
        with pytest.raises(ConfigError, match="changed by others than root"):
            policy_files.load_for(home / "project", None)
        os.chown(policy_files.SITE, 65534, 65534)
        policy_files.SITE.chmod(0o644)
        with pytest.raises(ConfigError, match="changed by others than root"):
            policy_files.load_for(home / "project", None)
    finally:
        policy_files.SITE.unlink(missing_ok=True)
        etc.rmdir()


def test_a_projects_own_files_tighten_and_the_settings_file_too(home: Path):
    (home / "project/policies").mkdir()
    (home / "project/policies/project.yaml").write_text("limits: {max_concurrent_jobs: 2}\n")
    named = home / "mine.yaml"
    named.write_text("limits: {max_concurrent_jobs: 1}\nsubmissions: off\n")
    loaded = policy_files.load_for(home / "project", named)
    assert loaded.policy.limits.max_concurrent_jobs == 1
    assert loaded.policy.submissions == "off"
    assert loaded.layers == ("shipped", "policies/project.yaml", str(named))
    named.write_text("limits: [\n")
    with pytest.raises(ConfigError, match="line 2"):
        policy_files.load_for(home / "project", named)


# --- the schema ---------------------------------------------------------------------------------------------------


def test_the_committed_schema_is_the_published_one():
    root = Path(__file__).parents[3]
    assert (root / "policies/policy.schema.json").read_text() == schema_text()
    assert (
        (root / "policies/default.yaml").read_text().startswith("# yaml-language-server: $schema=policy.schema.json\n")
    )


def test_the_schema_takes_the_shipped_policy_and_refuses_a_typing_error():
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(schema_text())
    jsonschema.validate(yaml.safe_load(shipped()), schema)
    jsonschema.validate({"limits": {"memory_per_gpu": {"free": "8G"}}, "submissions": False}, schema)
    for wrong in ({"limit": {}}, {"rules": {"path": "warn"}}, {"limits": {"memory_per_gpu": {"free": 8}}}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)
