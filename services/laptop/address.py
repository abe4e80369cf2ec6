"""Where the api of an installation is reached, and with which first key."""

import errno
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from windlass.services.laptop.kept_files import kept_secret, random_word
from windlass.services.laptop.ports import LOOPBACK, kept_port, try_port
from windlass.services.laptop.supervision.unit import StartFailure
from windlass.shared.settings import Settings

EVERY_INTERFACE: Final = ("0.0.0.0", "::")  # noqa: S104 - recognised here, not bound


@dataclass(frozen=True)
class Address:
    url: str
    port: int
    key: str


def choose_address(settings: Settings, directory: Path) -> Address:
    port = settings.port or kept_port(directory / "port")
    try:
        try_port(port, settings.host)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise StartFailure(
                f"port {port} is taken by another program: name a free one with WINDLASS_PORT, 0 for any"
            ) from None
        raise StartFailure(f"cannot listen on {settings.host} port {port}: {error.strerror}") from None
    host = LOOPBACK if settings.host in EVERY_INTERFACE else settings.host
    key = settings.api_key or kept_secret(directory / "admin_key", _new_key)
    return Address(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}", port, key)


def _new_key() -> str:
    return f"wl_{random_word(8)}_{random_word(40)}"
