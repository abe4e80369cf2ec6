"""Actors are found by module, file, function or entry point; what cannot be had is one sentence with file and table."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from windlass.actors.payload import payload_of
from windlass.services.actors.making import make, unknown_queues
from windlass.services.actors.worker.guests import invite
from windlass.shared.actors.built_in import built_in, without_titles
from windlass.shared.actors.loading import Loaded, load
from windlass.shared.settings import Settings
from windlass.shared.toml_tables import DEFAULT_ACTORS

ACTORS = '''
from windlass import Context, actor


@actor(throws=(ValueError,), timeout_seconds=600, max_retries=1, concurrency={"key": "/account", "limit": 2})
def translate(text: str, account: str = "", *, context: Context) -> str:
    """Says it in other words."""
    return text


@actor
async def resize(url: str) -> None: ...
'''


A_CLASS = """
from windlass import actor


@actor(isolate=True, name="translate")
class Own:
    def __call__(self, text: str) -> None: ...
"""


class Place:
    """A directory with modules of the user's own, and the settings that name them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.config = directory / "windlass.toml"

    def write(self, name: str, code: str) -> str:
        path = self.directory / name
        path.write_text(code)
        return str(path)

    def settings(self, toml: str = "", **options: object) -> Settings:
        self.config.write_text(toml)
        return Settings(config=self.config, **options)  # type: ignore[arg-type]

    def load(self, toml: str = "", **options: object) -> Loaded:
        settings = self.settings(toml, **options)
        own = [name for name in settings.actors if name not in DEFAULT_ACTORS]
        return load(settings, only=[*own, "own"])

    def sentence(self, toml: str = "", **options: object) -> str:
        """The one about what cannot be had."""
        loaded = self.load(toml, **options)
        (said,) = loaded.broken.values()
        assert "\n" not in said
        return said.replace(str(self.directory), "HERE")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    path = list(sys.path)
    place = Place(tmp_path)
    place.write("our_actors.py", ACTORS)
    yield place
    sys.path[:] = path
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None) or ""
        if file.startswith(str(tmp_path)):
            del sys.modules[name]


def test_a_table_brings_the_actor_that_it_names_and_no_other(place: Place) -> None:
    loaded = place.load('[actors.translate]\nmodule = "our_actors"\n')
    (definition,) = loaded.definitions
    assert not loaded.broken
    assert (definition.name, definition.module, definition.provider) == ("translate", "our_actors", "translate")
    assert (definition.timeout_seconds, definition.max_retries, definition.throws) == (600, 1, ("ValueError",))
    assert (definition.concurrency_key, definition.concurrency_limit) == (("/account",), 2)
    assert definition.description == "Says it in other words."
    assert definition.payload_schema == {
        "type": "object",
        "additionalProperties": False,
        "properties": {"text": {"type": "string"}, "account": {"type": "string", "default": ""}},
        "required": ["text"],
    }
    assert definition.result_schema == {"type": "string"}


def test_the_table_has_the_last_word(place: Place) -> None:
    toml = '[actors.translate]\nmodule = "our_actors"\ntimeout_seconds = 7\nmax_retries = 5\nmax_age_seconds = 9\n'
    toml += 'provider = "big"\nconcurrency = {key = "/text", limit = 1}\n[providers.big]\nactors = ["translate"]\n'
    (definition,) = place.load(toml).definitions
    assert (definition.timeout_seconds, definition.max_retries, definition.max_age_seconds) == (7, 5, 9)
    assert (definition.provider, definition.concurrency_key, definition.concurrency_limit) == ("big", ("/text",), 1)


@pytest.mark.parametrize("named", ["our_actors", "HERE/our_actors.py"])
def test_all_actors_of_a_module_or_a_file_are_served_without_a_table(place: Place, named: str) -> None:
    loaded = place.load(actor_modules=(named.replace("HERE", str(place.directory)),))
    assert loaded.actors.keys() == {"translate", "resize"}
    settings = loaded.with_them()
    assert {"translate.translate", "resize.resize"} < set(settings.all_queues())
    assert settings.providers["translate"].limit is None
    assert settings.actors["translate"].concurrency is not None, "for who writes the limits of keys"


def test_a_file_s_directory_is_where_it_finds_its_neighbours(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each != str(place.directory)])
    place.write("neighbour_of_ours.py", "WORD = 'hello'")
    code = "import neighbour_of_ours\n" + ACTORS
    loaded = place.load(actor_modules=(place.write("with_neighbour.py", code),))
    assert not loaded.broken
    assert str(place.directory) in sys.path


def test_the_variable_names_modules(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDLASS_ACTORS", "our_actors, other.actors")
    assert Settings().actor_modules == ("our_actors", "other.actors")
    monkeypatch.setenv("WINDLASS_ACTORS", '{"probe": {"timeout_seconds": 5}}')
    assert Settings().actors["probe"].timeout_seconds == 5, "or it is the tables, as with all others"


def test_an_entry_point_is_loaded_if_it_is_named(place: Place) -> None:
    package = place.directory / "ours-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: ours\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[windlass.actors]\npolyglot = our_actors\nbroken = nowhere_at_all\n")
    assert place.load('[actors.translate]\nmodule = "polyglot"\n').actors.keys() == {"translate"}
    assert not place.load().actors


def test_a_function_needs_no_decorator(place: Place) -> None:
    place.write("our_app.py", "def resize(url: str, width: int = 3) -> int:\n    return width\n")
    (definition,) = place.load('[actors.shrink]\nfunction = "our_app:resize"\ntimeout_seconds = 5\n').definitions
    assert (definition.name, definition.module, definition.timeout_seconds) == ("shrink", "our_app:resize", 5)
    assert definition.payload_schema["properties"].keys() == {"url", "width"}


DRAMATIQ = """
import dramatiq
from dramatiq.brokers.stub import StubBroker

broker = StubBroker()

@dramatiq.actor(broker=broker, time_limit=90_000, max_retries=4, throws=(KeyError,))
def resize(url: str) -> str:
    return url

@dramatiq.actor(broker=broker)
async def fetch(url: str) -> str:
    return url

@dramatiq.actor(broker=broker, on_failure="resize")
def told(url: str) -> None: ...
"""


def test_a_dramatiq_actor_brings_its_options(place: Place) -> None:
    place.write("our_dramatiq.py", DRAMATIQ)
    toml = "".join(f'[actors.{name}]\nfunction = "our_dramatiq:{name}"\n' for name in ("resize", "fetch"))
    loaded = place.load(toml)
    definition = loaded.actors["resize"].definition
    assert (definition.timeout_seconds, definition.max_retries, definition.throws) == (90, 4, ("KeyError",))
    assert not loaded.actors["resize"].actor.is_async
    assert loaded.actors["fetch"].actor.is_async, "it runs on the loop of the process"
    assert "on_failure, which has no meaning here" in place.sentence('[actors.told]\nfunction = "our_dramatiq:told"\n')


TABLE = "HERE/windlass.toml: [actors.translate]"
FIELDS = "from typing import Annotated\nfrom pydantic import Field\nfrom windlass import actor\n@actor\n"


@pytest.mark.parametrize(
    ("code", "table", "sentence"),
    [
        (None, 'module = "our_actor"', f"{TABLE}: there is no module our_actor among what is installed here"),
        (None, 'module = "our_actors.sub"', f"{TABLE}: there is no module our_actors.sub among what is installed here"),
        (None, 'module = "HERE/nowhere.py"', f"{TABLE}: there is no file HERE/nowhere.py"),
        (None, 'module = "our actors"', f"{TABLE}: 'our actors' is no module's name, and a file's ends in .py"),
        ("import nowhere_at_all", 'module = "m_needs"',
         f"{TABLE}: module m_needs needs nowhere_at_all, which is not installed here (HERE/m_needs.py, line 1)"),
        ("\n1 / 0", 'module = "m_fails"',
         f"{TABLE}: module m_fails cannot be imported: ZeroDivisionError: division by zero (HERE/m_fails.py, line 2)"),
        ("def f(:", 'module = "m_syntax"', f"{TABLE}: module m_syntax cannot be imported: SyntaxError: "),
        ("raise SystemExit(3)", 'module = "m_exits"', f"{TABLE}: module m_exits cannot be imported: SystemExit: 3"),
        ("from windlass import actor\n@actor\ndef transalte(text: str) -> None: ...", 'module = "m_other"',
         f"{TABLE}: m_other declares no actor that is called translate; did you mean `transalte`?"),
        ("from windlass import actor\n@actor\ndef translate(text) -> None: ...", 'module = "m_bare"',
         f"{TABLE}: actor translate: parameter text has no annotation; give it one, as in `text: str`"),
        (f"{A_CLASS}\n    def __init__(self, settings: object) -> None: ...", 'module = "m_isolated"',
         f"{TABLE}: actor translate wants the settings, and there are none in the process of an isolated one"),
        ("from windlass import actor\n@actor(name='bulk')\ndef translate() -> None: ...", 'module = "m_reserved"',
         f"{TABLE}: module m_reserved cannot be imported: Misdeclared: the actor's name 'bulk' is reserved"),
        (FIELDS + "def translate(text: Annotated[str, Field(description='x' * 65536)]) -> None: ...",
         'module = "m_long"',
         f"{TABLE}: actor translate: its payload's schema has 65,"),
        (FIELDS + "def translate(text: Annotated[str, Field(json_schema_extra={'pattern': '(?=a)'})]) -> None: ...",
         'module = "m_look"', f"{TABLE}: actor translate: its payload's schema cannot be used: "),
        (None, 'function = "our_actors:nothing"', f"{TABLE}: our_actors has nothing that is called nothing"),
        (None, 'function = "our_actors:translate"',
         f"{TABLE}: our_actors:translate is declared by @actor already; give its module as `module`"),
        ("WORD = 3", 'function = "m_word:WORD"', f"{TABLE}: m_word:WORD is no function"),
        (None, 'module = "our_actors"\nprovider = "openrouter"',
         f"{TABLE}: provider openrouter does the work of summarize alone; write actors = ["),
        (None, 'module = "our_actors"\nprovider = "opnrouter"',
         f"{TABLE}: there is no [providers.opnrouter]; did you mean `openrouter`?"),
    ],
)  # fmt: skip
def test_each_mistake_is_one_sentence(place: Place, code: str | None, table: str, sentence: str) -> None:
    if code is not None:
        place.write(table.split('"')[1].partition(":")[0] + ".py", code)
    said = place.sentence(f"[actors.translate]\n{table.replace('HERE', str(place.directory))}\n")
    assert said.startswith(sentence)


def test_what_cannot_be_had_leaves_the_others_alone(place: Place) -> None:
    toml = '[actors.translate]\nmodule = "nowhere_at_all"\n[actors.resize]\nmodule = "our_actors"\n'
    loaded = place.load(toml)
    assert loaded.actors.keys() == {"resize"}
    assert loaded.broken_queues().keys() == {"translate.translate"}
    assert "resize.resize" in loaded.with_them().all_queues()


def test_of_two_with_one_name_neither_is_served(place: Place) -> None:
    other = place.write("other_actors.py", ACTORS)
    loaded = place.load(actor_modules=("our_actors", other))
    assert not loaded.actors
    assert loaded.broken["resize"] == (
        f"WINDLASS_ACTORS: {other}: an actor that is called resize comes from our_actors, too; give one of them "
        "another name"
    )


def test_nobody_takes_the_name_of_one_that_comes_with_windlass(place: Place) -> None:
    code = "from windlass import actor\n@actor\ndef probe() -> None: ...\n"
    said = place.sentence(actor_modules=(place.write("with_probe.py", code),))
    assert said.endswith("its actor probe is called as one that comes with Windlass; give it another name")
    with pytest.raises(ValueError, match="probe comes with Windlass; give an actor of your own another name"):
        place.settings('[actors.probe]\nmodule = "our_actors"\n')


@pytest.mark.parametrize("name", ["Translate", "batch", "a_b"])
def test_a_table_s_name_is_looked_at_before_anything_is_loaded(place: Place, name: str) -> None:
    with pytest.raises(ValueError, match=r"an actor's name (must be|is reserved)"):
        place.settings(f'[actors.{name}]\nmodule = "our_actors"\n')


def test_a_file_that_is_called_as_another_module_is_told_to_be_renamed(place: Place) -> None:
    said = place.sentence(actor_modules=(place.write("json.py", ACTORS),))
    assert said.endswith("HERE/json.py cannot be imported, for another module is called json; rename the file")
    said = place.sentence(actor_modules=(place.write("our-actors.py", ACTORS),))
    assert said.endswith("our-actors.py cannot be imported under that name; call it as our_actors.py")


def test_a_table_without_code_is_somebody_s_in_the_modules(place: Place) -> None:
    said = place.sentence("[actors.transalte]\ntimeout_seconds = 3\n", actor_modules=("our_actors",))
    assert said == "HERE/windlass.toml: [actors.transalte]: neither has it a `module`, nor is it in our_actors"


def test_who_serves_none_of_them_imports_none_of_them(place: Place) -> None:
    settings = place.settings('[actors.translate]\nmodule = "nowhere_at_all"\n', actor_modules=("nowhere_either",))
    assert load(settings, only=["probe"]).actors.keys() == {"probe"}
    assert not load(settings, only=["probe"]).broken


def test_a_queue_that_nobody_serves_is_found_when_they_are_loaded(place: Place) -> None:
    toml = 'queues = ["translate.translate", "translate.big"]\n[actors.translate]\nmodule = "our_actors"\n'
    settings = place.load(toml).with_them()
    assert unknown_queues(settings) == {
        "translate.big": "WINDLASS_QUEUES names translate.big, and no provider serves it"
    }
    with pytest.raises(ValueError, match=r"translate\.translate\.DQ is Dramatiq's; what waits, and what is dead, are"):
        place.settings(f'queues = ["translate.translate.DQ"]\n{toml.partition("]")[2]}')


def test_the_queues_of_one_s_own_have_one_word(place: Place) -> None:
    settings = place.load(actor_modules=("our_actors",), queues=("probe.probe", "own")).with_them()
    assert set(settings.named_queues()) == {"probe.probe", "translate.translate", "resize.resize"}


def test_a_class_is_made_once_and_one_that_cannot_be_made_is_broken(place: Place) -> None:
    code = (
        "from windlass import actor\n@actor\nclass Good:\n    def __call__(self, word: str) -> str:\n"
        "        return word\n@actor\nclass Bad:\n    def __init__(self) -> None:\n        raise OSError('no disk')\n"
        "    def __call__(self, word: str) -> str: ...\n"
    )
    loaded = place.load(actor_modules=(place.write("classes_of_ours.py", code),))
    made = make(loaded, loaded.with_them(), served=["good", "bad"])
    assert made["good"].call("hello") == "hello"
    assert loaded.broken == {"bad": "actor bad cannot be made: OSError: no disk"}


def test_those_that_come_with_windlass_take_what_the_api_knows_of_them() -> None:
    loaded = load(Settings())
    assert not loaded.broken
    assert loaded.actors.keys() == DEFAULT_ACTORS.keys()
    for name, definition in built_in().items():
        assert without_titles(payload_of(loaded.actors[name].actor).schema()) == definition.payload_schema


MIDDLEWARE = """
import dramatiq
from dramatiq.results import Results
from dramatiq.middleware import *

class Ours(dramatiq.Middleware): ...
class Stubborn(Retries): ...
class Needy(dramatiq.Middleware):
    def __init__(self, url): ...
"""


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("Retries", "m_ware:Retries cannot work here: failures are tried again by `max_retries`"),
        ("Stubborn", "m_ware:Stubborn cannot work here: failures are tried again by `max_retries`"),
        ("Results", "m_ware:Results cannot work here: each result is kept in Postgres"),
        ("TimeLimit", "m_ware:TimeLimit cannot work here: an attempt's time is `timeout_seconds`"),
        ("Pipelines", "m_ware:Pipelines cannot work here: pipelines are not built yet"),
        ("Needy", "m_ware:Needy cannot be made: TypeError: "),
        ("Nothing", "m_ware has nothing that is called Nothing"),
        ("dramatiq", "m_ware:dramatiq is no class of Dramatiq middleware"),
    ],
)
def test_middleware_that_cannot_work_here_is_told_in_one_sentence(
    place: Place, name: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    place.write("m_ware.py", MIDDLEWARE)
    settings = place.settings(f'[worker]\nmiddleware = ["m_ware:{name}"]\n')
    with pytest.raises(SystemExit) as refused:
        invite(settings)
    assert refused.value.code == 2
    assert capsys.readouterr().err.startswith(f"windlass: {place.config}: [worker] middleware: {sentence}")
    invite(place.settings('[worker]\nmiddleware = ["m_ware:Ours"]\n'))


@pytest.mark.parametrize(("declared", "table", "isolate"), [
    ("", "", False),
    ("(isolate=True)", "", True),
    ("(isolate=True)", "isolate = false", False),
    ("", "isolate = true", True),
])  # fmt: skip
def test_the_table_has_the_last_word_about_isolation(place: Place, declared: str, table: str, isolate: bool) -> None:
    place.write("our_isolated.py", f"from windlass import actor\n@actor{declared}\ndef draw() -> None: ...")
    loaded = place.load(f'[actors.draw]\nmodule = "our_isolated"\n{table}')
    assert loaded.actors["draw"].isolate is isolate


def test_what_comes_with_windlass_is_not_isolated(place: Place) -> None:
    loaded = load(place.settings("[actors.probe]\nisolate = true"), only=["probe"])
    assert loaded.broken == {
        "probe": f"{place.config}: [actors.probe]: probe comes with Windlass, and isolate is for actors of your own"
    }
