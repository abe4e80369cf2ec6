"""What an agent prints: streamed by lines, with its last JSON object found, whatever else it prints."""

import time
from typing import Any

import pytest

from tests.unit.test_context import TASK
from windlass.services.actors.agent.output import Output, last_object_in
from windlass.services.actors.subprocess.lines import LONGEST_LINE
from windlass.services.actors.subprocess.tail import STDERR_BYTES
from windlass.services.actors.worker.context.context import Context
from windlass.shared.errors import ResultTooDeep, ResultTooLarge


def output_of(*chunks: bytes, largest: int = 1000) -> tuple[Output, list[Any]]:
    """And what was said, piece by piece: text of stdout, text of stderr with its stream, or progress."""
    said: list[Any] = []

    def listen(context: Context) -> None:
        report = context.take_report()
        assert report is not None
        for event in report.events:
            data = event["data"]
            if event["type"] == "progress":
                said.append((data["progress"]["percent"], data["progress"]["message"]))
            else:
                said.append((data["stream"], data["text"]) if "stream" in data else data["text"])

    output = Output(Context(TASK, "worker-1", on_report=listen), largest_result_bytes=largest)
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
    began = time.thread_time()
    assert last_object_in('\n{"a": "' + '\n{"a": 1, "b": [' * 50_000) is None
    assert time.thread_time() - began < 10


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
    long.finish()
    assert long.as_result() == {"stdout": ("x" * 122) + "end", "stdout_cut_off": True}


def test_an_object_larger_than_can_be_kept_is_an_error_and_not_taken_for_text() -> None:
    output, _ = output_of(b'{"a": "' + b"x" * 5000 + b'"}\n')
    with pytest.raises(ResultTooLarge, match="1,000 bytes"):
        output.last_object()


def test_an_object_too_deep_to_be_read_is_an_error_and_nothing_earlier_is_taken_for_it() -> None:
    output, _ = output_of(b'{"a": 1}\n' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"\n", largest=1_000_000)
    with pytest.raises(ResultTooDeep, match="printed last"):
        output.last_object()


def test_remarks_are_progress_and_neither_output_nor_result() -> None:
    output, said = output_of(
        b'{"a": 1}\nbegin\n{"progress": {"percent": 5, "message": "Reading"}}\ngo on\n',
        b'{"progress": {"percent": 50.5}}\n',
        b'{"usage": {"prompt_tokens": 3}}\n  {"progress": {"message": "Writing"}}\r\n{"progress": {"percent": 100}}',
    )
    output.finish()
    assert said == [
        (5, "Reading"),
        '{"a": 1}\nbegin\ngo on\n',
        (50.5, "Reading"),
        (50.5, "Writing"),
        (100, "Writing"),
    ]
    assert output.last_object() == {"a": 1}


def test_usage_is_added_up_and_what_cannot_be_right_is_left_out_and_noted(caplog: pytest.LogCaptureFixture) -> None:
    context = Context(TASK, "worker-1", on_report=lambda _: None)
    output = Output(context, largest_result_bytes=1000)
    output.take_stdout(b'{"usage": {"prompt_tokens": 3, "cost_usd": 0.1}}\n')
    output.take_stdout(b'{"usage": {"prompt_tokens": -4, "cost_usd": 0.2}}\n')
    output.take_stdout(b'{"usage": {"completion_tokens": "many", "tokens": 1}}\n')
    output.finish()
    report = context.take_report()
    assert report is not None
    assert (report.usage, report.events) == ({"cost_usd": 0.3, "prompt_tokens": 3}, [])
    assert [record.getMessage().partition("should be: ")[2] for record in caplog.records] == [
        "prompt_tokens is not between 0 and 1,000,000,000,000,000",
        "completion_tokens is no number; 'tokens' is none of cost_usd, prompt_tokens, completion_tokens",
    ]


def test_without_an_object_remarks_are_no_part_of_the_result() -> None:
    output, _ = output_of(b'hello\n{"progress": {}}\n{"usage": {}}\n')
    assert output.last_object() is None
    assert output.as_result() == {"stdout": "hello\n"}


@pytest.mark.parametrize(
    "line",
    [
        '{"progress": {"percent": 5}, "more": 1}\n',
        '{"progress": "half"}\n',
        '{"progress": {"percent": "5"}}\n',
        '{"progress": {"percent": true}}\n',
        '{"progress": {"percent": 101}}\n',
        '{"progress": {"percent": NaN}}\n',
        '{"progress": {"message": 5}}\n',
        '{"progress": {"percent": 5, "eta": 9}}\n',
        '{"progress": {"percent": 5}} and words\n',
        'so: {"progress": {"percent": 5}}\n',
        'a\u2028{"progress": {"percent": 5}}\n',
        '{"progress":\n',
        '{"usage": 7}\n',
    ],
)
def test_a_line_that_is_nearly_a_remark_is_output(line: str) -> None:
    _, said = output_of(line.encode())
    assert said == [line]


def test_a_remark_is_heard_though_it_comes_in_pieces_and_a_long_message_is_cut() -> None:
    _, said = output_of(b'{"prog', b'ress": {"mess', b'age": "' + b"x" * 5000 + b'"}}\n')
    assert said == [(None, "x" * 500)]


def test_lines_on_stderr_are_output_that_says_so() -> None:
    output, said = output_of()
    output.take_stderr(b"one\ntw")
    output.take_stderr(b'o\n{"progress": {}}\nrest\0')
    output.finish()
    assert said == [("stderr", "one\n"), ("stderr", 'two\n{"progress": {}}\n'), ("stderr", "rest\ufffd")]


def test_of_stderr_the_end_is_kept() -> None:
    output, _ = output_of()
    for _ in range(100):
        output.take_stderr(b"noise " * 1000)
    output.take_stderr(b"the end")
    assert output.stderr().endswith("the end")
    assert len(output.stderr()) == STDERR_BYTES
