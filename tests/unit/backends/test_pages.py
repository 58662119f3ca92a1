"""Pages of facts: what one may say, what is told where it is wrong, and which of several counts."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from slurm_agent_tools.backends import page_templates, pages
from slurm_agent_tools.errors import ConfigError, InputError

PAGE = 'kind: slurm\npartitions:\n  - name: gpu\n    purpose: production\n    time_limit: "24h"\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(pages, "SITE", tmp_path / "etc" / "backends")
    return tmp_path / "home" / ".config" / "slurm-agent-tools" / "backends"


def write(folder: Path, name: str, text: str = PAGE) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.yaml").write_text(text)
    return folder / f"{name}.yaml"


def problems(text: str) -> list[str]:
    return [f"{one.message} | {one.hint}" for one in pages.problems_of(text.encode(), "lab.yaml")]


@pytest.mark.parametrize("name", page_templates.TEMPLATES)
def test_every_template_is_a_page_that_is_right_as_it_stands(name: str) -> None:
    assert problems(page_templates.template(name)) == []


def test_an_unknown_template_names_those_that_there_are() -> None:
    with pytest.raises(InputError) as caught:
        page_templates.template("../init/mcp.json")
    assert "slurm, workstation, pbs, kubernetes, cloud" in caught.value.hint


def test_a_page_is_read_with_its_units_in_seconds_and_bytes(home: Path, tmp_path: Path) -> None:
    text = (
        PAGE + '    gpus: {type: a100, per_node: 4, memory: "80G"}\n    memory_per_node: "500G"\n    max_jobs: 3\n'
        "price: {currency: EUR, gpu_hour: 0.5, priced_on: 2026-11-01, allocation_hours: 100, allocation_ends: 2027-01-31}\n"
        'usual_wait: "5m"\ncan_be_ended: true\nusers: [ada]\ncluster: lab\n'
    )  # fmt: skip
    page = pages.read_page(write(tmp_path / "backends", "lab", text), tmp_path)
    (queue,) = page.queues
    assert (queue.time_limit, queue.memory_per_node, queue.max_jobs) == (86400, 500 * 2**30, 3)
    assert queue.gpus == pages.PageGpus(type="a100", per_node=4, memory="80G")
    assert (page.price.gpu_hour, page.price.allocation_hours) == (0.5, 100.0)
    assert (page.price.priced_on, page.price.allocation_ends) == (date(2026, 11, 1), date(2027, 1, 31))
    assert (page.usual_wait, page.can_be_ended, page.users, page.cluster) == (300, True, ("ada",), "lab")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PAGE.replace("production", "fun"), ["partitions[0].purpose", "'fun'", "in line 4"]),
        (PAGE.replace('"24h"', "24:00:00"), ["partitions[0].time_limit", "in quotes", "86400", "in line 5"]),
        (PAGE.replace('"24h"', '"soon"'), ["partitions[0].time_limit", "not a time limit", "in line 5"]),
        (PAGE.replace('"24h"', '"UNLIMITED"'), ["partitions[0].time_limit", "leave the line out"]),
        (PAGE + "    gpu: 4\n", ["partitions[0].gpu", "belongs to no page", "in line 6"]),
        (PAGE + "price: {gpu_hour: 1.0}\n", ["price", "currency is needed", "in line 6"]),
        (PAGE + "price: {gpu_hour: -1.0, currency: EUR}\n", ["price.gpu_hour", "-1.0"]),
        (PAGE + "    max_jobs: many\n", ["partitions[0].max_jobs", "'many'"]),
        (PAGE + "  - {name: gpu, purpose: long}\n", ["partitions", "gpu more than once", "in line 2"]),
        (PAGE.replace("kind: slurm", "kind: lsf"), ["kind", "'lsf'", "in line 1"]),
        ("kind: slurm\n", ["partitions is required"]),
        ("kind: slurm\npartitions: []\n", ["partitions", "at least 1", "in line 2"]),
        ("- a\n", ["the page is not a mapping"]),
        ("kind: slurm\nkind: pbs\n", ["occurs twice", "line 2"]),
        ("a: [\n", ["cannot be read", "line 2"]),
        ("", ["is empty"]),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_field_value_and_line(text: str, said: list[str]) -> None:
    (told,) = problems(text)
    for words in said:
        assert words in told
    assert "lab.yaml" in told


def test_everything_that_is_wrong_is_told_at_once_and_nothing_twice() -> None:
    text = PAGE.replace("production", "fun").replace('"24h"', "24")
    assert [one.split(":")[0] for one in problems(text)] == ["partitions[0].purpose", "partitions[0].time_limit"]


def test_pages_of_the_user_count_first_then_the_sites_then_the_projects(home: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    mine = write(home, "lab")
    sites = [write(pages.SITE, name) for name in ("lab", "two")]
    own = [write(project / "backends", name) for name in ("lab", "two", "three")]
    found = {one.name: one for one in pages.found_pages(project)}
    assert list(found) == ["lab", "three", "two"]
    assert (found["lab"].path, found["lab"].hidden) == (str(mine), (str(sites[0]), str(own[0])))
    assert (found["two"].path, found["two"].hidden) == (str(sites[1]), (str(own[1]),))
    assert (found["three"].path, found["three"].hidden) == (str(own[2]), ())


def test_the_price_of_a_gpu_hour_is_the_queues_own_or_that_of_the_page_in_one_currency() -> None:
    def page(price: dict[str, object], cluster: str | None = None) -> pages.BackendPage:
        queues = [{"name": "free", "purpose": "testing", "gpu_hour": 0}, {"name": "long", "purpose": "long"}]
        facts = {"kind": "slurm", "cluster": cluster, "partitions": queues, "price": price}
        return pages.BackendPage.model_validate(facts)

    dear = pages.FoundPage("lab", "", page({"currency": "EUR", "gpu_hour": 2}))
    assert pages.gpu_prices([dear], "lab") == pages.GpuPrices({"free": 0, "long": 2}, "EUR")
    assert pages.gpu_prices([dear], "lab", "USD") == pages.GpuPrices({"free": None, "long": None}, "USD")
    other = pages.FoundPage("lab", "", page({"currency": "EUR", "gpu_hour": 2}, cluster="other"))
    assert pages.gpu_prices([other], "lab") == pages.GpuPrices()


def test_without_any_folder_there_is_no_page(home: Path, tmp_path: Path) -> None:
    assert pages.found_pages(tmp_path) == []


def test_a_page_that_is_wrong_is_an_error_and_never_skipped(home: Path, tmp_path: Path) -> None:
    write(tmp_path / "backends", "fine")
    write(tmp_path / "backends", "lab", PAGE + "notes: 3\n")
    with pytest.raises(ConfigError, match="notes"):
        pages.found_pages(tmp_path)


@pytest.mark.parametrize("name", ["Lab", "my lab", "-x", "ü", "a" * 64])
def test_a_name_is_small_letters_digits_and_dashes(home: Path, tmp_path: Path, name: str) -> None:
    write(tmp_path / "backends", name)
    with pytest.raises(ConfigError, match="is no name of a backend"):
        pages.found_pages(tmp_path)


def test_a_link_that_leaves_the_project_is_not_followed(home: Path, tmp_path: Path) -> None:
    outside = write(tmp_path / "outside", "lab")
    folder = tmp_path / "project" / "backends"
    folder.mkdir(parents=True)
    (folder / "lab.yaml").symlink_to(outside)
    with pytest.raises(ConfigError, match="leads out of"):
        pages.found_pages(tmp_path / "project")


def test_a_page_of_people_that_others_may_change_is_an_error(home: Path, tmp_path: Path) -> None:
    write(home, "lab").chmod(0o666)
    with pytest.raises(ConfigError, match="could be changed by others"):
        pages.found_pages(tmp_path / "project")


def test_more_pages_than_anybody_reads_are_an_error(home: Path, tmp_path: Path) -> None:
    for number in range(65):
        write(tmp_path / "backends", f"b{number}")
    with pytest.raises(ConfigError, match="more than 64 pages"):
        pages.found_pages(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PAGE.replace("gpu", r'"gpu\n#PBS -q fast"'), ["partitions[0].name", "has to be one line"]),
        (PAGE + 'title: "a\\u202eb"\n', ["title", "has a character that cannot be printed"]),
        (PAGE + 'notes: ["a\\eb"]\n', ["notes[0]", "has a character that cannot be printed"]),
        (PAGE + 'users: ["ada\\n"]\n', ["users[0]", "has to be one line"]),
    ],
)
def test_what_a_page_says_can_be_printed_and_names_are_one_line(text: str, said: list[str]) -> None:
    (told,) = problems(text)
    assert all(words in told for words in said)


def test_notes_may_have_several_lines() -> None:
    assert problems(PAGE + "notes:\n  - |\n    one\n    two\n") == []


def test_a_folder_of_pages_that_cannot_be_looked_into_is_an_error_and_never_skipped(home: Path, tmp_path: Path) -> None:
    home.parent.mkdir(parents=True)
    home.write_text("no folder")
    with pytest.raises(ConfigError, match="cannot be read"):
        pages.found_pages(tmp_path / "project")


def test_a_page_with_the_other_ending_is_an_error_that_names_the_right_one(home: Path, tmp_path: Path) -> None:
    write(tmp_path / "backends", "lab").rename(tmp_path / "backends" / "lab.yml")
    with pytest.raises(ConfigError) as caught:
        pages.found_pages(tmp_path)
    assert caught.value.hint == "Name it lab.yaml."
