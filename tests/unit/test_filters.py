"""The filters of a list are declared once, and everybody has the same."""

from argparse import ArgumentParser
from typing import get_args, get_type_hints

import pytest
from pydantic import TypeAdapter, ValidationError

from windlass import Filter as ClientFilter
from windlass.client.options import Lane as ClientLane
from windlass.client.task import Status
from windlass.services.cli.commands.arguments import READ_AS, SPOKEN, add_filters, chosen_filter, flag_of
from windlass.shared.filters import FILTERS, Filter, description_of
from windlass.shared.states import Lane, State
from windlass.shared.store.reading.listing import WITH_ORDER, WITHOUT_ORDER


def test_the_client_has_the_filters_of_the_api() -> None:
    assert list(ClientFilter.__annotations__) == list(FILTERS)


def test_the_client_has_the_words_of_the_api() -> None:
    assert get_args(Status) == tuple(State)
    assert get_args(ClientLane) == tuple(Lane)


def test_what_may_be_repeated_in_the_client_is_a_list_in_the_api() -> None:
    hints = get_type_hints(ClientFilter)
    assert {name for name, hint in hints.items() if "Sequence" in str(hint)} == {
        name for name, hint in FILTERS.items() if str(hint).startswith("list")
    }


def test_the_command_line_has_the_filters_of_the_client() -> None:
    parser = ArgumentParser()
    add_filters(parser)
    assert {each.dest for each in parser._actions} - {"help"} == set(ClientFilter.__annotations__)
    assert {*READ_AS, *SPOKEN} <= set(ClientFilter.__annotations__), "a filter that is gone"


def test_a_filter_that_nobody_described_to_the_command_line_is_a_text_there() -> None:
    assert flag_of("workflow_run_id") == "--workflow-run"
    assert flag_of("some_new_filter_id") == "--some-new-filter"


def test_the_command_line_finds_dead_letters_of_one_kind() -> None:
    parser = ArgumentParser()
    add_filters(parser)
    assert chosen_filter(parser.parse_args(["--fingerprint", "TimeoutError: …"])) == {"fingerprint": "TimeoutError: …"}


def test_the_store_knows_of_each_filter_how_its_index_gives_the_tasks() -> None:
    bounds = {"status", "created_after", "created_before"}
    assert WITH_ORDER | WITHOUT_ORDER | bounds == set(FILTERS)


def test_a_filter_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValidationError, match="sttus"):
        TypeAdapter(Filter).validate_python({"sttus": ["dead"]})


def test_the_reference_says_what_a_name_does_not() -> None:
    assert description_of("q")
    assert description_of("provider") is None
