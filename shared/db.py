"""How a process reaches Postgres: pools whose connections give up quickly, and a listener that reconnects by itself."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg
import msgspec

from windlass.shared.backoff import Backoff
from windlass.shared.errors import words_of
from windlass.shared.metrics import connections
from windlass.shared.process.lifetime import until_set
from windlass.shared.settings import Settings
from windlass.shared.store import functions

log = logging.getLogger(__name__)

_json = msgspec.json.Encoder()

Database = asyncpg.Pool | asyncpg.Connection | asyncpg.pool.PoolConnectionProxy
"""Whatever runs a statement: the store does not mind which."""

Pool = asyncpg.Pool
Connection = asyncpg.Connection

UNAVAILABLE: tuple[type[BaseException], ...] = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # the driver's own confusion when the server hangs up in the middle of a call
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InvalidAuthorizationSpecificationError,  # a password that is being changed: here first, or there
    asyncpg.ObjectNotInPrerequisiteStateError,  # the database is closed to connections
    asyncpg.ReadOnlySQLTransactionError,  # a standby that is about to take over
)
"""Postgres is away, starting, stopping, closed or full: nothing is known to have happened; trying again is right."""

REFUSED_TO_STORE: tuple[tuple[type[BaseException], str], ...] = (
    (asyncpg.DiskFullError, "its disk is full"),
    (asyncpg.ReadOnlySQLTransactionError, "it is read-only"),
)
"""Postgres is there, and is known to have stored nothing of the call."""

CONTENDED: tuple[type[BaseException], ...] = (
    asyncpg.DeadlockDetectedError,
    asyncpg.LockNotAvailableError,
    asyncpg.SerializationError,
    asyncpg.QueryCanceledError,
)
"""Somebody else was in the way; the call was rolled back whole and can be repeated."""

HELD_UP: tuple[type[BaseException], ...] = (asyncpg.LockNotAvailableError, asyncpg.QueryCanceledError)
"""Among them: somebody keeps something locked. A call for many does not say which of them has to wait."""


def refused_to_store(error: BaseException) -> str | None:
    """Why it was not stored, in our words, or none where that is not what happened."""
    return next((words for kind, words in REFUSED_TO_STORE if isinstance(error, kind)), None)


class Unstorable(ValueError):
    """A value that JSON, or our patience with it, cannot hold."""


UNSTORABLE: tuple[type[BaseException], ...] = (
    Unstorable,
    asyncpg.DataError,
    asyncpg.IntegrityConstraintViolationError,
    asyncpg.ProgramLimitExceededError,
)
"""The values themselves cannot be stored; repeating the call would fail for ever."""

AWAY_OR_BUSY: tuple[type[BaseException], ...] = (*UNAVAILABLE, *CONTENDED)

NOT_MIGRATED: tuple[type[BaseException], ...] = (
    asyncpg.UndefinedTableError,
    asyncpg.UndefinedFunctionError,
    asyncpg.InvalidSchemaNameError,  # this version's functions are in a schema of their own
)
"""The schema is not there yet: whoever starts first waits for `windlass migrate`."""

LONGEST_NAME = 63
"""Of a connection: Postgres cuts off what is longer."""

TIMEOUTS = {
    "lock_timeout": "4s",
    "statement_timeout": "8s",
    "idle_in_transaction_session_timeout": "8s",
}
"""A client never holds up others for longer than this, whatever happens to it."""


BRIEF = {"lock_timeout": "500ms", "idle_in_transaction_session_timeout": "2s"}
"""For transactions in which features handle moves: nothing waits longer for one of them."""


def as_json(value: object) -> str:
    """As text, encoded here and not in the driver, whose own error would try to print the value."""
    try:
        return _json.encode(value).decode()
    except (ValueError, TypeError, RecursionError, OverflowError) as error:
        raise Unstorable(f"not storable as JSON: {error}") from None


PATIENCE_SECONDS = 10.0
"""Postgres itself ends a call before this; who has not answered by then is frozen or cut off."""

PLANNING = {"jit": "off", "enable_seqscan": "off", "plan_cache_mode": "force_generic_plan"}
"""Plans are kept per connection. One made while the tables were still small would read them whole for ever after, and
compiling a statement takes longer than any of these runs."""


PLANNING_EACH = {
    **PLANNING,
    "plan_cache_mode": "force_custom_plan",
    "seq_page_cost": "0.02",
    "random_page_cost": "0.02",
}
"""For statements that are put together anew each time: which index is best depends on the values. What lists look at is
mostly in memory, where a page costs next to nothing: the index that finds the fewest rows is the right one."""


async def open_pool(
    settings: Settings, service: str, *, most: int, patience_seconds: float = PATIENCE_SECONDS
) -> asyncpg.Pool:
    """A pool that connects when it is first used, so that a process can start before Postgres does."""
    return await _open(settings, service, PLANNING, most=most, patience_seconds=patience_seconds)


async def open_feature_pool(settings: Settings, service: str, *, most: int) -> asyncpg.Pool:
    """A pool for transactions of several calls. A process that is frozen in one loses its locks after two seconds."""
    return await _open(settings, service, {**PLANNING, **BRIEF}, most=most)


async def open_reading_pool(settings: Settings, service: str, *, most: int) -> asyncpg.Pool:
    """A pool for lists: every statement is planned for its values, and none is kept."""
    return await _open(settings, f"{service}-lists", PLANNING_EACH, most=most, statement_cache_size=0)


async def _open(
    settings: Settings,
    service: str,
    planning: dict[str, str],
    *,
    most: int,
    patience_seconds: float = PATIENCE_SECONDS,
    **options: Any,
) -> asyncpg.Pool:
    pool = await asyncpg.create_pool(
        required_url(settings),
        min_size=0,
        max_size=most,
        init=_speak_json,
        reset=_keep_as_it_is,
        connection_class=impatient(patience_seconds),
        timeout=min(5, patience_seconds),
        max_inactive_connection_lifetime=0,
        server_settings={**TIMEOUTS, **planning, "application_name": name_of(service)},
        **options,
    )
    connections.OPEN.watch(pool)
    return pool


async def connect_without_timeouts(settings: Settings, service: str) -> asyncpg.Connection:
    """For what may take as long as it takes, and keeps nobody waiting meanwhile."""
    timeouts = dict.fromkeys(TIMEOUTS, "0")
    return await asyncpg.connect(
        direct_url(settings), timeout=5, server_settings={**timeouts, "application_name": name_of(service)}
    )


def name_of(service: str) -> str:
    """Of its connections: `windlass-api windlass_ab12cd34ef56`. As long as one of them is there, `migrate` leaves the
    functions alone that it calls."""
    who = f"windlass-{service}"[: LONGEST_NAME - len(functions.schema()) - 1]
    return f"{who} {functions.schema()}"


def required_url(settings: Settings) -> str:
    assert settings.database_url is not None, "each process that uses Postgres checks this at its start"
    return settings.database_url


def direct_url(settings: Settings) -> str:
    """For what a pooler between us and Postgres would break: it hands on no NOTIFY, and its patience is not ours."""
    return settings.database_direct_url or required_url(settings)


async def _speak_json(connection: asyncpg.Connection) -> None:
    await connection.set_type_codec(
        "jsonb",
        schema="pg_catalog",
        encoder=as_json,
        decoder=msgspec.json.decode,
    )


def impatient(seconds: float) -> type[asyncpg.Connection]:
    """Connections that are dropped when a call is not answered in time.

    asyncpg's own timeouts ask the server to cancel and wait for its word, which a frozen server never gives.
    """

    class Impatient(asyncpg.Connection):
        async def _execute(self, *arguments: Any, **options: Any) -> Any:
            giving_up = asyncio.get_running_loop().call_later(seconds, self.terminate)
            try:
                return await super()._execute(*arguments, **options)  # type: ignore[misc]
            except AttributeError as error:
                # Dropped between two steps of one call, the driver stumbles over what is no longer there.
                if self._protocol is not None:  # type: ignore[attr-defined]
                    raise
                raise asyncpg.ConnectionDoesNotExistError("the connection was dropped during a call") from error
            finally:
                giving_up.cancel()

    return Impatient


async def _keep_as_it_is(_connection: object) -> None:
    """Every call is one autocommitted statement: there is no session state to clear, at the price of one more call."""


ANYTHING = "*"
"""What a channel's function hears when calls may have been missed."""


class Listener:
    """One connection that hears NOTIFY and comes back by itself.

    After every (re)connection each channel's function is called with `*`, for something may have been missed. Between
    notifications `beat` is called with the connection; it says how long to wait until the next time. The default asks
    for nothing: a connection that died without a word is found out that way, and by no other.
    """

    def __init__(
        self,
        settings: Settings,
        service: str,
        channels: dict[str, Callable[[str], None]],
        *,
        beat: "Callable[[Database], Awaitable[float]] | None" = None,
        patience_seconds: float = PATIENCE_SECONDS,
        longest_pause_seconds: float = 2.0,
    ) -> None:
        self._settings = settings
        self._service = service
        self._channels = channels
        self._beat = beat or self._ask_for_nothing
        self._patience_seconds = patience_seconds
        self._backoff = Backoff(first_seconds=0.1, longest_seconds=longest_pause_seconds)
        self._wake = asyncio.Event()
        self._connections = 0

    def beat_now(self) -> None:
        self._wake.set()

    async def run(self) -> None:
        """Until cancelled."""
        connections.OPEN.watch(self)
        while True:
            try:
                await self._listen()
                self._backoff.renew()
            except AWAY_OR_BUSY as error:
                log.warning("%s: no connection to Postgres (%s)", self._service, words_of(error))
            await asyncio.sleep(self._backoff.pause())

    async def _listen(self) -> None:
        connection = await asyncpg.connect(
            direct_url(self._settings),
            timeout=min(5, self._patience_seconds),
            connection_class=impatient(self._patience_seconds),
            server_settings={**TIMEOUTS, **PLANNING, "application_name": name_of(f"{self._service}-listen")},
        )
        connection.add_termination_listener(lambda _connection: self._wake.set())
        self._connections = 1
        try:
            await _speak_json(connection)
            for channel, heard in self._channels.items():
                await connection.add_listener(channel, _calling(heard))
                heard(ANYTHING)
            while not connection.is_closed():
                pause = await self._beat(connection)
                await until_set(self._wake, at_most_seconds=pause)
                self._wake.clear()
        finally:
            self._connections = 0
            connection.terminate()

    def get_size(self) -> int:
        """As a pool of one would say it, for the metrics."""
        return self._connections

    def get_idle_size(self) -> int:
        return 0

    def get_max_size(self) -> int:
        return 1

    def is_closing(self) -> bool:
        return False

    async def _ask_for_nothing(self, connection: "Database") -> float:
        await connection.fetchval("SELECT 1")
        return self._settings.safety_poll_seconds


def _calling(heard: Callable[[str], None]) -> Callable[[Any, int, str, object], None]:
    return lambda _connection, _pid, _channel, payload: heard(str(payload))


async def until_available(what: str, attempt: Callable[[], Awaitable[None]]) -> None:
    """Repeats an attempt while Postgres is away, saying so once."""
    waiting = False
    while True:
        try:
            await attempt()
            return
        except UNAVAILABLE + NOT_MIGRATED as error:
            if not waiting:
                log.warning("%s: waiting for Postgres (%s)", what, words_of(error))
                waiting = True
            await asyncio.sleep(0.3)
