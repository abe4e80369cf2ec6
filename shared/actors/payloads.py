"""What each actor takes: the schema that the API checks at submit time and the actor reads when it runs."""

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import ConfigDict, Field, ValidationInfo, field_validator

from windlass.shared.errors import ERROR_TYPES
from windlass.shared.forms import Form
from windlass.shared.suggestions import did_you_mean
from windlass.shared.urls import check_url


class Payload(Form):
    """Fields that nobody knows are refused: they are mistakes of the client's that it wants to hear of. So are values
    of another kind, by the schema: neither `true` nor `"1"` is a number. Whoever reads a payload later is no stricter
    than that: to a JSON Schema, 1.0 is a whole number."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _with_example(**payload: Any) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [payload]})


class ProbePayload(Payload):
    """A synthetic task for smoke tests, drills and benchmarks."""

    model_config = _with_example(seconds=2, steps=4, result="hello")

    seconds: Annotated[float, Field(ge=0, le=86400, description="How long it works.")] = 0
    steps: Annotated[int, Field(ge=0, le=10000, description="How often it reports progress meanwhile.")] = 0
    outcome: Annotated[
        Literal["ok", "transient", "permanent", "crash", "hang"],
        Field(description="What it does at the end. `crash` and `hang` need an admin and WINDLASS_PROBE_FAULTS=1."),
    ] = "ok"
    error_type: Annotated[
        str,
        Field(
            description="The error that it fails with. `RateLimited` needs an admin: it pauses the provider.",
            json_schema_extra={"enum": sorted(ERROR_TYPES)},
        ),
    ] = "ServiceUnavailable"
    retry_after: Annotated[float, Field(ge=0, description="What a `RateLimited` says.")] | None = None
    fail_times: Annotated[int, Field(ge=0, description="Fail the first n attempts, then succeed.")] | None = None
    result: Annotated[Any, Field(description="Comes back as `echo`.")] = None

    @field_validator("error_type")
    @classmethod
    def _is_known(cls, name: str) -> str:
        if name not in ERROR_TYPES:
            raise ValueError(f"there is no such error type; {did_you_mean(name, ERROR_TYPES)}")
        return name


Words = Annotated[str, Field(min_length=1, max_length=200_000)]
ShortName = Annotated[str, Field(min_length=1, max_length=200)]
Params = Annotated[dict[str, Any], Field(max_length=100)]


class MediaPayload(Payload):
    """A picture or a film from a prompt, and from a picture where the action starts with one."""

    model_config = _with_example(action="txt2img", prompt="a lighthouse at dusk")

    action: Annotated[Literal["txt2img", "img2img", "img2vid"], Field(description="What becomes what.")]
    prompt: Annotated[
        str, Field(min_length=1, max_length=20_000, description="What is to be seen, in the provider's own terms.")
    ]
    source_image: (
        Annotated[
            str,
            Field(min_length=1, max_length=4000, description="The picture to begin with: its URL or a `content_id`."),
        ]
        | None
    ) = Field(default=None, validate_default=True)
    params: Annotated[
        Params, Field(description="What the provider takes for the action, by its own names: size, seed, …")
    ] = Field(default_factory=dict)
    prompt_id: Annotated[ShortName, Field(description="Your own name for the prompt.")] | None = None
    source_data: Annotated[Params, Field(description="Anything of yours that should stay with the task.")] | None = None
    workflow_run_id: (
        Annotated[
            ShortName, Field(description="The run that it belongs to: `GET /workflow-runs/{id}/media` lists by it.")
        ]
        | None
    ) = None
    interaction_id: Annotated[ShortName, Field(description="The interaction that it belongs to.")] | None = None

    @field_validator("source_image")
    @classmethod
    def _begins_well(cls, source_image: str | None, info: ValidationInfo) -> str | None:
        check_source_image(info.data.get("action", "txt2img"), source_image)
        return source_image


def check_source_image(action: str, source_image: str | None) -> None:
    """What no schema can say of it; raises ValueError."""
    if source_image is None:
        if action != "txt2img":
            raise ValueError(f"{action} begins with a picture: give its URL or content_id")
    elif "://" in source_image:
        check_url(source_image)
    elif not _is_content_id(source_image):
        raise ValueError("neither a URL nor a content_id")


def _is_content_id(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


class SummarizePayload(Payload):
    """A text made short."""

    model_config = _with_example(content="A long text …", max_words=80)

    content: Annotated[str, Field(min_length=1, max_length=1_000_000, description="The text to be summarised.")]
    model: (
        Annotated[ShortName, Field(description="The provider's name of the model; the configured one if left out.")]
        | None
    ) = None
    max_words: Annotated[int, Field(ge=1, le=10_000, description="How long the summary may be.")] | None = None
    instructions: (
        Annotated[str, Field(min_length=1, max_length=20_000, description="What to look out for, and how to write.")]
        | None
    ) = None


class AgentLimits(Form):
    """What an agent may use at most; these only lower what the operator has configured."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    memory_mb: Annotated[int, Field(ge=1, description="Megabytes of memory.")] | None = None
    cpu_seconds: Annotated[int, Field(ge=1, description="Seconds of CPU time.")] | None = None
    file_mb: Annotated[int, Field(ge=1, description="Megabytes of a file that it writes.")] | None = None
    processes: Annotated[int, Field(ge=1, description="Processes at once.")] | None = None


class AgentPayload(Payload):
    """A subprocess that works on a prompt by itself. Its command is the operator's setting, never the client's."""

    model_config = _with_example(subagent_type="demo", prompt="Which peers keep their promises?")

    subagent_type: Annotated[ShortName, Field(description="Which of the configured agents.")]
    prompt: Annotated[Words, Field(description="What it is to do.")]
    system_prompt: Annotated[Words, Field(description="How it is to behave.")] | None = None
    model: Annotated[ShortName, Field(description="The model that it is to use.")] | None = None
    params: Annotated[Params, Field(description="Handed to the agent as they are.")] = Field(default_factory=dict)
    limits: Annotated[AgentLimits, Field(description="Tighter limits than the configured ones.")] | None = None


class EmbedPayload(Payload):
    """The vector of a text. Those of what agents did, and of questions about it, Windlass asks for itself."""

    model_config = _with_example(text="Count the lighthouses of Norway")

    text: Annotated[str, Field(min_length=1, max_length=8000, description="What the vector is of.")] | None = None
    job_id: (
        Annotated[UUID, Field(description="The embedding job whose events get vectors; not for clients.")] | None
    ) = None
    model_id: (
        Annotated[UUID, Field(description="The model that the text is a question to; not for clients.")] | None
    ) = None


class WebhookPayload(Payload):
    """A delivery on its way to an endpoint. Windlass submits these itself: one that somebody else submits carries
    nothing."""

    model_config = _with_example(delivery_id="0192f0c1-2f5e-7a3b-8c1d-0123456789ab")

    delivery_id: Annotated[ShortName, Field(description="What is delivered.")]


PAYLOADS: dict[str, type[Payload]] = {
    "agent": AgentPayload,
    "embed": EmbedPayload,
    "media": MediaPayload,
    "probe": ProbePayload,
    "summarize": SummarizePayload,
    "webhook": WebhookPayload,
}
