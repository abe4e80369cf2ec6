"""What an agent prints: streamed by lines, with its last JSON object found, whatever else it prints."""

import time

import pytest

from windlass.services.actors.agent.output import LONGEST_LINE, STDERR_BYTES, Output, last_object_in
from windlass.shared.errors import ResultTooLarge


def output_of(*chunks: bytes, largest: int = 1000) -> tuple[Output, list[str]]:
    said: list[str] = []
    output = Output(said.append, largest_result_bytes=largest)
    for chunk in chunks:
        output.take_stdout(chunk)
    return output, said


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}\n', {"a": 1}),
        ('thinking\n{"a": 1}\n{"b": 2}\nbye\n', {"b": 2}),
        ('{\n  "a": {\n    "b": [1, 2]\n  }\n}\n', {"a": {"b": [1, 2]}}),
        ('{"a": 1}\n{broken\n', {"a": 1}),
        ('{"a": 1} and more on the line', {"a": 1}),
        ('see {"a": 1}\n', None),
        ("[1, 2]\n", None),
        ('{"a": NaN}\n', None),
        ("{" * 100_000, None),
        ("", None),
        ("}", None),
    ],
)
def test_the_last_object_that_begins_a_line(text: str, found: object) -> None:
    assert last_object_in(text) == found


def test_text_full_of_beginnings_is_given_up_in_time() -> None:
    began = time.monotonic()
    assert last_object_in('\n{"a": "' + '\n{"a": 1, "b": [' * 50_000) is None
    assert time.monotonic() - began < 10


def test_whole_lines_are_passed_on_and_the_rest_waits_for_its_end() -> None:
    output, said = output_of(b"one\ntwo\nthr", b"ee\nfo")
    assert said == ["one\ntwo\n", "three\n"]
    output.finish()
    assert said[-1] == "fo"


def test_a_character_that_is_cut_in_two_is_put_together_again() -> None:
    _, said = output_of("ä".encode()[:1], "ä".encode()[1:] + b"\n")
    assert said == ["ä\n"]


def test_a_line_without_end_is_passed_on_in_pieces() -> None:
    _, said = output_of(b"x" * (LONGEST_LINE + 1), b"y\n")
    assert said == ["x" * (LONGEST_LINE + 1), "y\n"]


def test_what_postgres_cannot_keep_is_replaced() -> None:
    _, said = output_of(b"a\0b\xff\n")
    assert said == ["a\ufffdb\ufffd\n"]


def test_without_an_object_the_text_is_the_result_and_of_a_long_one_the_end() -> None:
    assert output_of(b"hello\n")[0].as_result() == {"stdout": "hello\n"}
    long, _ = output_of(b"x" * 5000 + b"end")
    assert long.as_result() == {"stdout": ("x" * 122) + "end", "stdout_cut_off": True}


def test_an_object_larger_than_can_be_kept_is_an_error_and_not_taken_for_text() -> None:
    output, _ = output_of(b'{"a": "' + b"x" * 5000 + b'"}\n')
    with pytest.raises(ResultTooLarge, match="1,000 bytes"):
        output.last_object()


def test_of_stderr_the_end_is_kept() -> None:
    output, _ = output_of()
    for _ in range(100):
        output.take_stderr(b"noise " * 1000)
    output.take_stderr(b"the end")
    assert output.stderr().endswith("the end")
    assert len(output.stderr()) == STDERR_BYTES
