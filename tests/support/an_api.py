"""An api alone, on a database of its own: nothing else runs, so every task stays as a test leaves it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.conftest import a_database
from tests.support.installation import Client, Windlass
from tests.support.servers.databases import execute
from tests.support.servers.private_servers import Servers


@contextmanager
def an_api(
    servers: Servers, template: str, directory: Path, *, before: str | None = None, **settings: str
) -> Iterator[Windlass]:
    """`before` is said to its database before anybody else is connected; `{database}` there is its name."""
    with a_database(servers, template) as url:
        if before is not None:
            execute(url, before.format(database=url.rpartition("/")[2]))
        windlass = Windlass(url, servers.amqp_url, directory, **settings)
        try:
            windlass.api = windlass.start("api")
            windlass.wait_until_answering()
            yield windlass
        finally:
            windlass.stop()
            print(windlass.log())  # pytest shows it when the test failed


def new_key(admin: Client, role: str, user_id: str) -> str:
    made = admin.http.post("/api/v1/keys", json={"role": role, "user_id": user_id})
    assert made.status_code == 201, made.text
    return str(made.json()["key"])
