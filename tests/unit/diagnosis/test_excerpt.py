from __future__ import annotations

from slurm_agent_tools.diagnosis.excerpt import MAX_LINE, clean, read_text, split_rank


def test_a_progress_bar_leaves_its_last_state_and_what_was_printed_over_it():
    data = b"\r 10%|#    | 1/10\r 20%|##   | 2/10\r100%|#####| 10/10\nRuntimeError: x\r 30%|###  | 3/10\ndone\r\n"

    assert clean(data) == ["100%|#####| 10/10", "RuntimeError: x", " 30%|###  | 3/10", "done"]


def test_terminal_escapes_and_controls_are_taken_out():
    data = b"\x1b[31mError\x1b[0m: \x1b]0;title\x07bad\x07 \x1b(B\x1b[2Kend\x00\nplain\ttab\x7f\n"

    assert clean(data) == ["Error: bad end", "plain\ttab"]


def test_text_that_reorders_a_screen_is_taken_out():
    assert clean("safe\u202egnp.exe\u2066 x".encode()) == ["safegnp.exe x"]


def test_other_encodings_and_binary_junk_do_not_break_a_line():
    assert clean("Größe fehlt".encode("latin-1")) == ["Gr\ufffd\ufffde fehlt"]
    assert clean(b"before\n" + bytes(range(128, 256)) * 4 + b"\nafter") == [
        "before",
        "[512 bytes of binary data]",
        "after",
    ]
    assert clean(b"\0" * 50) == ["[50 bytes of binary data]"]


def test_a_line_is_bounded_and_keeps_both_ends():
    (line,) = clean(b"Error: " + b"a" * 50_000 + b" the end")

    assert len(line) <= MAX_LINE
    assert line.startswith("Error: aaa")
    assert line.endswith("a the end")
    assert "characters ..." in line


def test_lines_are_numbered_as_in_the_file_and_blank_ones_are_left_out():
    data = b"one\n\nthree\nfour"
    text = read_text("x.out", "stdout", data, b"", len(data))

    assert [(line.line, line.text) for line in text.lines] == [(1, "one"), (3, "three"), (4, "four")]


def test_head_and_tail_that_touch_are_one_text():
    text = read_text("x.out", "stdout", b"one\ntw", b"o\nthree\n", 14)

    assert [(line.line, line.text) for line in text.lines] == [(1, "one"), (2, "two"), (3, "three")]


def test_head_and_tail_that_overlap_are_read_once():
    data = b"one\ntwo\nthree\n"
    text = read_text("x.out", "stdout", data[:9], data[4:], len(data))

    assert [line.text for line in text.lines] == ["one", "two", "three"]


def test_between_head_and_tail_cut_lines_go_and_numbers_are_not_known():
    text = read_text("x.out", "stdout", b"one\ntwo\nthr", b"lf a line\nlast\n", 1000)

    assert [(line.line, line.text) for line in text.lines] == [
        (1, "one"),
        (2, "two"),
        (0, "[... 988 bytes were not read ...]"),
        (0, "last"),
    ]


def test_prefixes_of_ranks_are_told_from_times():
    assert split_rank("[rank3]: ValueError") == ("[rank3]:", "ValueError")
    assert split_rank("12: ValueError") == ("12:", "ValueError")
    assert split_rank("[1,3]<stderr>:ValueError") == ("[1,3]<stderr>:", "ValueError")
    assert split_rank("(RayWorker pid=812) ValueError") == ("(RayWorker pid=812)", "ValueError")
    assert split_rank("12:30:01 ValueError") == ("", "12:30:01 ValueError")
    assert split_rank("[default0]:[rank12]:[E817 x") == ("[default0]:[rank12]:", "[E817 x")
    assert split_rank("(VllmWorker rank=0 pid=39) ValueError") == ("(VllmWorker rank=0 pid=39)", "ValueError")
    assert split_rank("(train pid=7, ip=10.0.0.2) ValueError") == ("(train pid=7, ip=10.0.0.2)", "ValueError")
    assert split_rank("(W pid=7) [Stage-0] ERROR 03-12 08:22:28 [a.py:8] x") == ("(W pid=7) [Stage-0] ERROR", "x")
    assert split_rank("ERROR 03-12 08:22:28 engine.py:8] x")[1] == "x"
    assert split_rank("slurmstepd: error: pyxis:     mkdir: no") == ("slurmstepd: error: pyxis:", "mkdir: no")
    assert split_rank("slurmstepd: error: pyxis: no") == ("", "slurmstepd: error: pyxis: no")
    assert split_rank("INFO 03-12 08:22:28 [a.py:8] x")[0] == ""
