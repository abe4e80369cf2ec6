"""Every `WINDLASS_*` variable with its default; the TOML file has the same names, small and without the prefix."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from windlass.shared.toml_tables import SandboxMode

PREFIX = "WINDLASS_"

NOT_SETTINGS = {
    "WINDLASS_URL": "The client and the commands: which Windlass they speak to; their key is in `WINDLASS_API_KEY`.",
    "WINDLASS_TASK_ID": "Set for an agent: the task that it works on.",
    "WINDLASS_WORKER_ID": "Set for all that a worker starts, so that a successor finds what was left behind.",
    "WINDLASS_SUPERVISED_BY": "Set by `make up` for everything that it starts, so that it finds what was left behind.",
    "WINDLASS_VERSION": "`make compose`: the image's tag.",
    "WINDLASS_POSTGRES_PASSWORD": "`make compose`: made up once and kept in `deploy/.env`.",
    "WINDLASS_POSTGRES_PORT": "`make compose`: where Postgres is on this machine.",
    "WINDLASS_RABBITMQ_PASSWORD": "`make compose`: made up once and kept in `deploy/.env`.",
    "WINDLASS_RABBITMQ_PORT": "`make compose`: where RabbitMQ is on this machine.",
    "WINDLASS_GRAFANA_PASSWORD": "`make compose`: made up once and kept in `deploy/.env`.",
    "WINDLASS_GRAFANA_PORT": "`make compose`: where Grafana is on this machine.",
    "WINDLASS_PROMETHEUS_PORT": "`make compose`: where Prometheus is on this machine.",
}
"""Variables with our prefix that mean something to others; a process lets them be."""

TESTS = "WINDLASS_TEST_"
"""How variables of the test suite begin."""


def _postgres_url(url: str | None) -> str | None:
    """Accepts both schemes that Postgres has; SQLAlchemy, which runs the migrations, knows the longer one only."""
    if not url:
        return None
    _check_scheme(url, "postgresql", "postgres")
    return f"postgresql://{url.partition('://')[2]}"


def _rabbitmq_url(url: str | None) -> str | None:
    if not url:
        return None
    _check_scheme(url, "amqp", "amqps")
    return url


def _check_scheme(url: str, *schemes: str) -> None:
    """Names the scheme alone in its error: the rest of the URL may contain a password."""
    scheme, found, _ = url.partition("://")
    if scheme not in schemes or not found:
        given = f", not {scheme}://" if found and scheme.isalnum() else ""
        raise ValueError(f"must begin with {schemes[0]}://{given}")


PostgresUrl = Annotated[str | None, AfterValidator(_postgres_url)]
RabbitmqUrl = Annotated[str | None, AfterValidator(_rabbitmq_url)]
Seconds = Annotated[float, Field(gt=0)]
Bytes = Annotated[int, Field(ge=1000)]
Names = Annotated[tuple[str, ...], NoDecode]


class Variables(BaseSettings):
    """What is one value; what needs a table is in `Settings`."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True, hide_input_in_errors=True)

    config: Path | None = Field(None, description="A TOML file, merged over the defaults; variables win over it.")
    data_dir: Path = Field(Path(".windlass"), description="Where `make up` keeps everything.")
    database_url: PostgresUrl = Field(None, description="Postgres, or a pooler before it; `make up` has its own.")
    database_direct_url: PostgresUrl = Field(
        None, description="Postgres itself, where `database_url` names a pooler; else the same."
    )
    amqp_url: RabbitmqUrl = Field(None, description="RabbitMQ; `make up` has its own.")
    api_key: str | None = Field(
        None,
        pattern=r"^wl_[0-9A-Za-z]{6,32}_[0-9A-Za-z]{24,64}$",
        description="The first admin key, as `wl_ID_SECRET`; made up once if left out. `POST /api/v1/keys` makes more.",
    )

    actor_modules: Names = Field(
        (),
        description="Modules and files with actors of your own, all of which are served; `WINDLASS_ACTORS` says the "
        "same, and `windlass up --actors`.",
    )
    host: str = Field("127.0.0.1", description="The address that the api listens at.")
    port: int = Field(8800, ge=0, le=65535, description="Its port; 0 takes any free one.")
    metrics_port: int | None = Field(
        None, ge=1, le=65535, description="Where a process answers Prometheus; the api without it on its own port."
    )
    metrics_host: str | None = Field(None, description="The address for that; else `host`.")
    cors_origins: Names = Field(
        (), description="Origins whose pages may call the api, as `https://page.example`, with commas between."
    )
    trusted_proxies: Names = Field(
        (), description="Addresses and networks whose `X-Forwarded-For` is believed, with commas between."
    )
    stream_ping_seconds: Seconds = Field(15, description="How often an idle stream speaks.")
    stream_patience_seconds: Seconds = Field(
        10, description="How long a stream waits for a client that takes nothing, before it cuts it off."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="From where on lines are kept.")
    log_format: Literal["auto", "text", "json"] = Field(
        "auto", description="Auto is text on a terminal and in `make up`, json elsewhere."
    )
    otlp_endpoint: str | None = Field(
        None,
        pattern=r"^https?://[^/?#]+(/[^?#]*)?$",
        description="Where traces are sent, as `http://collector:4318`; needs the extra `tracing`.",
    )
    trace_ratio: float = Field(1, ge=0, le=1, description="Of the traces that begin here, so many are sent.")

    largest_body_bytes: Bytes = Field(2_000_000, description="The largest request.")
    largest_payload_bytes: Bytes = Field(1_000_000, description="The largest payload of a task, as JSON.")
    largest_result_bytes: Bytes = Field(5_000_000, description="The largest result that is kept, as JSON.")
    largest_input_bytes: Bytes = Field(
        8_000_000, description="The largest payload with the results in it that it refers to, as JSON."
    )
    largest_output_bytes: Bytes = Field(10_000_000, description="How much output of one attempt is kept.")
    largest_output_event_bytes: Bytes = Field(
        65_536, description="How much text one event of output has; more becomes several events."
    )
    deepest_json: int = Field(64, ge=8, le=200, description="How deeply JSON may be nested.")
    header_seconds: Seconds = Field(20, description="How long the head of a request may take to arrive.")
    body_seconds: Seconds = Field(30, description="How long its body may take.")

    actor_processes: int = Field(1, ge=1, description="Workers that `make up` starts.")
    actor_threads: int = Field(8, ge=1, description="Tasks at once in each worker, each on a thread.")
    async_places: int = Field(
        200, ge=1, description="Tasks of `async def` actors at once in each worker, beside those: they hold no thread."
    )
    queues: Names = Field(
        (),
        description="The queues that a worker serves, with commas between; all if left out. `own` stands for those of "
        "all actors of your own.",
    )
    queue_type: Literal["classic", "quorum"] = Field(
        "classic", description="How queues are declared; quorum for RabbitMQ with several nodes."
    )

    lease_seconds: Seconds = Field(30, description="How long a worker may be silent before its tasks are taken back.")
    heartbeat_seconds: Seconds = Field(5, description="How often it renews its leases.")
    stop_grace_seconds: Seconds = Field(5, description="How long work may take to stop when it is told to.")
    lease_margin_seconds: Seconds = Field(2, description="So long before its lease ends work has verifiably stopped.")
    drain_seconds: float = Field(20, ge=0, description="How long running work may go on after SIGTERM.")
    start_seconds: Seconds = Field(60, description="How long a process may take to start, before it is given up.")
    pulse_file: Path | None = Field(None, description="Where a process shows that it lives, for `windlass alive`.")
    pulse_seconds: Seconds = Field(15, description="For how long that is believed.")
    safety_poll_seconds: Seconds = Field(
        15, description="How often dispatcher and janitor look by themselves, should a notice have been lost."
    )
    unserved_seconds: Seconds = Field(
        60, description="How long tasks may wait in a queue without a worker before `/health` is degraded."
    )
    probe_faults: bool = Field(
        default=False, description="Lets an admin's probes `crash` and `hang`; on in `make up`, off in the image."
    )
    agent_sandbox: SandboxMode = Field(
        "required",
        description="For agents whose table does not say it: `required` refuses to run one where no sandbox can be "
        "made, `best-effort` runs it without, `off` everywhere.",
    )

    public_url: str | None = Field(
        None,
        pattern=r"^https?://[^/?#]+(/[^?#]*)?$",
        description="How browsers and providers reach the api: for URLs of media and streams, and callbacks; "
        "where it listens if left out.",
    )
    grafana_url: str | None = Field(
        None,
        pattern=r"^https?://\S+$",
        description="Where a task's page leads in your Grafana: `{provider}`, `{actor}`, `{task_id}`, and `{from}` "
        "and `{to}` in milliseconds are filled in.",
    )
    traces_url: str | None = Field(
        None,
        pattern=r"^https?://\S+$",
        description="The same for your traces: the search for spans whose `task_id` is `{task_id}`.",
    )
    fake_providers_url: str | None = Field(
        None,
        pattern=r"^http://[^/?#]+$",
        description="The server that plays providers without a key; `make up` sets it.",
    )
    fake_job_seconds: float = Field(1.5, ge=0, description="How long a job of theirs takes.")
    media_storage: str | None = Field(
        None,
        description="Where files are kept: `file:///…`, or `s3://bucket/prefix` for more than one machine; `media` in "
        "the data directory if left out.",
    )
    media_url_seconds: int = Field(7 * 86400, ge=60, description="How long a signed URL opens.")
    largest_media_bytes: Bytes = Field(200_000_000, description="How large a file may be.")
    abandoned_job_seconds: Seconds = Field(900, description="When a job that nobody can ask about gives its slot back.")
    summarize_part_characters: int = Field(
        24_000, ge=200, description="How long a text may be before it is summarised in parts."
    )

    memory: bool = Field(
        default=True,
        description="Whether what agents did is written down and can be searched; off, ends write nothing more.",
    )
    memory_gather_seconds: Seconds = Field(
        5, description="How long what an agent did waits for company, up to 64 of them, before it can be searched."
    )
    webhook_timeout_seconds: Seconds = Field(
        15, le=25, description="How long a webhook's endpoint may take to answer; a delivery's attempt has 30 s in all."
    )

    webhook_held_most: int = Field(
        10_000, ge=1, description="How many deliveries a disabled webhook holds; beyond that the oldest are given up."
    )
    webhook_held_days: int = Field(
        30, ge=1, le=3650, description="How long a disabled webhook holds a delivery, in days; then it is given up."
    )

    breaker_window: int = Field(20, ge=1, description="How many of a provider's latest results its breaker looks at.")
    breaker_window_seconds: Seconds = Field(300, description="How old they may be.")
    breaker_least_results: int = Field(10, ge=1, description="With fewer it does not open.")
    breaker_failure_ratio: float = Field(0.5, gt=0, le=1, description="So many of them failed: it opens.")
    breaker_open_seconds: Seconds = Field(60, description="For how long, before one task is tried.")
    longest_pause_seconds: Seconds = Field(
        900, description="The longest pause after a 429, whatever the provider says."
    )
