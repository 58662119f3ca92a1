"""What a ticket allows of a judged request, and its proof."""

from __future__ import annotations

import hashlib
import hmac
from contextlib import nullcontext
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models import submission_ticket
from slurm_agent_tools.models.job import LONGEST_RUN_ID, SUBMISSION_PREFIX, comment_for
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.request import JobRequest
from slurm_agent_tools.models.submission_ticket import LARGEST_SIGNED_SCRIPT, Ceilings, parse_ceilings, parse_claim
from slurm_agent_tools.policy import tickets
from slurm_agent_tools.scripts.directive_lines import words_to_directives
from slurm_agent_tools.scripts.effective_request import effective

KEY, OLD = b"k" * 32, b"o" * 64


def asked(*words: str) -> JobRequest:
    return effective(words_to_directives(list(words), "argument"))


def allowed(*words: str, **site: int) -> Ceilings:
    return tickets.ceilings(asked(*words), uid=1001, expires=2_000_000_000, account="lab", **site)


def anywhere(*words: str, **site: int) -> Ceilings:
    """The most that it takes, also where Slurm chooses how many nodes there are, for which there is no ticket."""
    return tickets.worst_placement(asked(*words), tickets.node_of_site(**site), uid=1001, expires=2_000_000_000)


def test_ceilings_are_those_of_the_worst_placement_in_the_controllers_units():
    made = allowed(
        "--partition=gpu,big", "--time=01:30:30", "--nodes=2", "--gpus-per-node=2", "--mem=48G", "--qos=high"
    )
    assert made == Ceilings(
        uid=1001, expires=2_000_000_000, time_limit=91, memory_per_node=48 * 1024, memory_per_gpu=24 * 1024, gpus=4,
        cpus=2, nodes=2, partitions=("gpu", "big"), qos="high", account="lab",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "cpus"),
    [
        ("--nodes=2 --ntasks=2 --gpus=4 --cpus-per-gpu=8", 48),  # 26.05 gave 24 on each
        ("--nodes=3 --ntasks=3 --gpus=6 --cpus-per-gpu=4", 48),
        ("--nodes=1 --gpus=4 --cpus-per-gpu=8", 32),
        ("--nodes=2 --gpus-per-node=2 --cpus-per-gpu=8", 32),
        ("--nodes=5 --gpus=8 --cpus-per-gpu=1", 20),  # of four on a node
    ],
)
def test_cpus_of_gpus_that_lie_unevenly_are_those_of_the_fullest_node_on_each(words: str, cpus: int):
    assert allowed("--time=5", "--mem=1G", *words.split(), most_gpus_per_node=4).cpus == cpus


def test_licenses_reservation_types_of_gpus_and_other_gres_are_bound_in_the_plugins_words():
    made = allowed(
        "--time=5",
        "--mem=1G",
        "--partition=gpu",
        "--licenses=matlab:2,ansys",
        "--reservation=lab",
        "--gpus=A100:1,h100",
        "--nodes=1",
    )
    assert (made.licenses, made.reservation, made.gres) == ("matlab:2,ansys", "lab", ("gpu:a100", "gpu:h100"))
    words = ("--gres=gpu:h100:2,nvme:1", "--tres-per-task=cpu=2,gres/gpu:h100=1,license/matlab=1")
    assert allowed("--time=5", "--mem=1G", *words).gres == ("gpu:h100", "nvme:1", "license/matlab:1")
    assert allowed("--time=5", "--mem=1G", "--gpus-per-node=2").gres == ()


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("--gpus=h100:4", "--gpus-per-node=a100:4"), "gpus"),
        (("--gpus-per-task=h100:4", "--ntasks=1", "--gres=gpu:a100:4"), "gpus"),
        (("--gpus=2", "--gres=gpu:a100:2"), "gpus"),
        (("--gres=gpu:3", "--nodelist=feature{a100}"), "nodelist"),
    ],
)
def test_for_gpus_of_two_types_by_two_options_and_for_nodes_by_a_function_there_is_no_ticket(words, field):
    with pytest.raises(InputError) as caught:
        allowed("--time=5", "--mem=1G", *words)
    assert caught.value.field == field
    same = ("--nodes=2", "--gpus=a100:4", "--gpus-per-node=a100:2", "--gres=gpu:a100:2,nvme:1")
    assert allowed("--time=5", "--mem=1G", *same).gpus == 4


def test_tasks_by_socket_may_take_a_gpu_on_each_node():
    """24.11 and 26.05 gave --gpus=1 -n6 --ntasks-per-socket=1 three nodes with a GPU each."""
    words = ("--time=5", "--mem=1G", "--gpus=1", "--ntasks=6", "--ntasks-per-socket=1")
    assert anywhere(*words).gpus == 6


def test_for_gpus_of_each_socket_there_is_no_ticket():
    with pytest.raises(InputError, match="gpus-per-socket") as caught:
        allowed("--time=5", "--mem=1G", "--gpus-per-socket=1", "--sockets-per-node=1")
    assert "--gpus-per-node" in (caught.value.hint or "")


def test_scattered_gpus_count_one_on_a_node_unless_the_site_says_how_many_a_node_has():
    words = ("--time=10", "--gpus=4", "--mem=16G", "--ntasks=2")
    assert anywhere(*words).memory_per_gpu == 16 * 1024
    assert anywhere(*words, most_gpus_per_node=2).memory_per_gpu == 8 * 1024


@pytest.mark.parametrize(
    ("words", "each"),
    [
        (("--gpus=1", "--exclusive"), 32), (("--gpus=2", "--nodes=1", "--exclusive"), 16),
        (("--gpus-per-node=4", "--exclusive"), 8), (("--exclusive",), 8),
    ],
)  # fmt: skip
def test_memory_of_whole_nodes_counts_by_the_gpus_that_are_asked_for(words: tuple[str, ...], each: int):
    """The plugin counts it so, and refused the tickets of all that a person had allowed."""
    assert allowed("--time=10", "--mem=32G", *words, most_gpus_per_node=4).memory_per_gpu == each * 1024


def test_memory_of_threads_is_that_of_whole_cores():
    words = ("--time=10", "--ntasks=1", "--cpus-per-task=3", "--mem-per-cpu=1G")
    assert allowed(*words).memory_per_node == 3 * 1024
    for partition in ((), ("--partition=cpu",)):
        assert allowed(*words, *partition, threads_per_core=2).memory_per_node == 4 * 1024


def test_cpus_that_come_with_gpus_are_in_the_ticket_whether_or_not_a_partition_is_named():
    """The plugin counted them, and refused its own site's tickets for each plain job with a GPU."""
    for partition in ((), ("--partition=gpu",)):
        made = allowed("--time=10", "--gpus=1", "--mem-per-cpu=1G", *partition, default_cpus_per_gpu=8)
        assert (made.cpus, made.memory_per_node) == (8, 8 * 1024)


def test_memory_of_all_gpus_fits_into_the_nodes_however_few_hold_them():
    for words in (("--gpus=4", "--nodes=3"), ("--gpus=7", "--nodes=2"), ("--gpus-per-node=2", "--nodes=2")):
        made = allowed("--time=10", "--mem-per-gpu=3G", *words)
        assert made.nodes * (made.memory_per_node or 0) >= made.gpus * 3 * 1024, words


def test_a_larger_least_time_is_the_time_limit():
    made = [
        allowed("--mem=1G", "--time=5", f"--time-min={least}").time_limit for least in ("4", "5", "2-00", "UNLIMITED")
    ]
    assert made == [5, 5, 2880, None]


def test_an_array_counts_by_its_tasks_and_those_at_once():
    made = allowed("--time=10", "--mem=1G", "--array=0-99:2%4")
    assert (made.array_tasks, made.array_at_once) == (50, 4)


def test_what_a_person_allowed_without_a_limit_has_none():
    made = allowed("--time=UNLIMITED", "--mem=0", "--exclusive")
    assert (made.time_limit, made.memory_per_node, made.whole_nodes) == (None, None, True)


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (asked("--mem=1G"), "time_limit"),
        (asked("--time=10"), "memory"),
        (asked("--time=10", "--mem-per-gpu=3G", "--gpus=2", "--nodes=4"), "mem-per-gpu"),
        (asked("--time=10", "--mem-per-gpu=3G", "--gpus=2", "--nodes=2", "--ntasks-per-gpu=2"), "mem-per-gpu"),
        (replace(asked("--time=10", "--mem=1G"), components=2), "script"),
        (asked("--time=10", "--mem=1G", "--gres=shard:2"), "gres"),
    ],
)
def test_no_ticket_is_for_what_cannot_be_bounded(request_: JobRequest, field: str):
    with pytest.raises(InputError, match=field):
        tickets.ceilings(request_, uid=1, expires=2)


@given(st.binary(min_size=32, max_size=200), st.binary(max_size=50))
def test_a_signed_ticket_is_the_claim_and_its_rfc_2104_proof(key: bytes, script: bytes):
    ticket = tickets.new_ticket(allowed("--time=1", "--mem=1G"), script)
    text = submission_ticket.signed(ticket, key)
    claim, _, proof = text.rpartition(".")
    assert parse_claim(claim) == ticket
    assert proof == hmac.new(key, claim.encode(), hashlib.sha256).hexdigest()
    assert submission_ticket.verify(text, [OLD, key]) == ticket
    assert " " not in text


@given(st.integers(0, 400), st.sampled_from("0123456789abcdef.%,=-"))
def test_a_signed_ticket_with_another_letter_anywhere_is_refused(place: int, letter: str):
    ticket = tickets.new_ticket(allowed("--time=1", "--mem=1G"), b"")
    text = submission_ticket.signed(replace(ticket, nonce="ab" * 16), KEY)
    place %= len(text)
    other = text[:place] + letter + text[place + 1 :]
    if other == text:
        assert submission_ticket.verify(other, [KEY])
    else:
        with pytest.raises(ValueError, match="not signed"):
            submission_ticket.verify(other, [KEY])


def test_two_keys_count_while_a_site_changes_them_and_a_short_one_never():
    ticket = tickets.new_ticket(allowed("--time=1", "--mem=1G"), None)
    assert submission_ticket.verify(submission_ticket.signed(ticket, OLD), [KEY, OLD]) == ticket
    for keys in ([KEY], []):
        with pytest.raises(ValueError, match="not signed"):
            submission_ticket.verify(submission_ticket.signed(ticket, OLD), keys)
    with pytest.raises(ValueError, match="shorter"):
        submission_ticket.signed(ticket, b"short")


def test_every_ticket_has_its_own_number():
    made = {tickets.new_ticket(allowed("--time=1", "--mem=1G"), b"").nonce for _ in range(100)}
    assert len(made) == 100
    assert submission_ticket.comment_word("abc") == "ticket=abc"


def test_a_script_that_the_controller_would_hash_too_long_gets_no_signed_ticket():
    submission_ticket.check_signable(b"#" * LARGEST_SIGNED_SCRIPT)
    with pytest.raises(InputError, match="script"):
        submission_ticket.check_signable(b"#" * (LARGEST_SIGNED_SCRIPT + 1))


def test_whole_nodes_are_allowed_where_they_were_asked_for():
    assert allowed("--time=10", "--mem=1G", "--exclusive").whole_nodes
    assert not allowed("--time=10", "--mem=1G").whole_nodes


@pytest.mark.parametrize("word", ["--exclusive=user", "--exclusive=mcs", "--exclusive=topo"])
def test_no_ticket_is_for_nodes_that_are_shared_with_some(word: str):
    """A ticket says whole nodes or none: one for `user`, read as a GPU and a CPU, let in --exclusive, with 8 and 96."""
    with pytest.raises(InputError, match="exclusive"):
        allowed("--time=10", "--mem=1G", word)


@pytest.mark.parametrize("words", [("--sockets-per-node=2",), ("--cores-per-socket=4",)])
def test_no_ticket_is_for_a_layout_that_overcommit_makes_cpus_of(words: tuple[str, ...]):
    with pytest.raises(InputError, match="larger than it shows"):
        allowed("--time=10", "--mem=1G", *words)


def test_no_ticket_is_for_threads_that_bring_cpus():
    """The plugin counts them, and a ticket was given and refused."""
    for words, fine in ((("--threads-per-core=2",), False), (("--threads-per-core=2", "-c2"), True),
                        (("--threads-per-core=1",), True), (("--threads-per-core=2", "-N2", "-n2"), False)):  # fmt: skip
        with nullcontext() if fine else pytest.raises(InputError, match="threads-per-core"):
            allowed("--time=10", "--mem=1G", *words)


def test_a_ticket_covers_what_was_counted_where_memory_makes_cpus():
    made = allowed("--time=10", "--nodes=1", "-n3", "-c4", "--mem-per-cpu=2G")
    counted = Resources(cpus=36, memory_per_node_bytes=24588 * 2**20)
    assert (made.memory_per_node, made.cpus) == (24576, 12)
    assert (made.covering(counted).memory_per_node, made.covering(counted).cpus) == (24588, 36)
    assert made.covering(Resources()) == made
    large = replace(counted, memory_per_node_bytes=2**40)
    assert made.covering(large).memory_per_node == 24576 + 35  # a MB of each CPU is not reached
    assert replace(made, memory_per_node=None).covering(counted).memory_per_node is None


@pytest.mark.parametrize(("export", "fine"), [("ALL", True), ("all", True), ("ALL,SEED=7", False), ("NONE", False)])
def test_no_ticket_is_for_variables_in_export(export: str, fine: bool):
    """sbatch has the login's own files run for them, which the plugin refuses: a ticket was given for nothing."""
    with nullcontext() if fine else pytest.raises(InputError, match="export"):
        allowed("--time=1", "--mem=1G", f"--export={export}")


def test_the_longest_ticket_has_room_in_a_comment_behind_a_token_and_a_run_id():
    before = comment_for(f"{SUBMISSION_PREFIX}{'0' * 16}", "r" * LONGEST_RUN_ID)
    word = submission_ticket.comment_word("x" * submission_ticket.LONGEST_SIGNED_TICKET)
    assert len(f"{before} {word}") <= 1024


def test_a_ticket_that_names_too_much_is_not_signed():
    for option, value in (
        ("partition", ",".join(["p" * 20] * 50)),
        ("licenses", "matlab:1," * 100),
        ("reservation", "r" * 900),
    ):
        many = tickets.new_ticket(allowed("--time=1", "--mem=1G", "--partition=cpu", f"--{option}={value}"), None)
        with pytest.raises(InputError, match=f"^{option}") as told:
            submission_ticket.signed(many, KEY)
        assert told.value.field == option


def test_a_list_of_qos_is_allowed_name_by_name_and_no_name_is_none():
    made = allowed("--time=5", "--mem=1G", "--qos=high,night")
    assert "qos=high:night," in made.text
    assert parse_ceilings(made.text) == made
    assert tickets.ceilings(asked("--time=5", "--mem=1G"), uid=1, expires=2, account="").account is None


def test_default_cpus_of_gpus_are_those_of_a_job_that_names_none():
    assert allowed("--time=5", "--mem-per-cpu=1G", "--gpus=1", default_cpus_per_gpu=8).memory_per_gpu == 8 * 1024
    assert allowed("--time=5", "--mem-per-cpu=1G", "--gpus=1", "--cpus-per-gpu=2", default_cpus_per_gpu=8).cpus == 2
    assert allowed("--time=5", "--mem-per-cpu=1G", "--gpus=1", "-c2", default_cpus_per_gpu=8).cpus == 2
