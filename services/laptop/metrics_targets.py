"""Where each service of an installation answers Prometheus, and the file that any Prometheus can find them by."""

import json
from pathlib import Path
from typing import Any

from windlass.services.laptop.kept_files import write_kept
from windlass.services.laptop.ports import LOOPBACK, free_port


class MetricsTargets:
    """A list as Prometheus' `file_sd_configs` reads it. It is there for as long as the services are."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._targets: list[dict[str, Any]] = []
        self._ports: set[int] = set()

    def port_for(self, service: str, name: str) -> int:
        """A port of its own: none of them listens yet, so two could be given the same."""
        port = free_port()
        while port in self._ports:
            port = free_port()
        self._ports.add(port)
        self.add(service, name, f"{LOOPBACK}:{port}")
        return port

    def add(self, service: str, name: str, address: str) -> None:
        self._targets.append({"targets": [address], "labels": {"service": service, "instance": name}})

    def write(self) -> None:
        write_kept(self._path, json.dumps(self._targets, indent=2) + "\n")

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)
