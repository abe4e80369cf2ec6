"""The files and the environment of a private RabbitMQ node."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from windlass.services.laptop.kept_files import kept_secret, make_directory, random_word, write_kept
from windlass.services.laptop.packages import RabbitmqPrograms
from windlass.services.laptop.ports import LOOPBACK

# The node's data is bound to its name, so this never changes. Nodes of other data directories have the same
# name and never meet: each registers with an epmd of its own.
NODE: Final = "windlass@localhost"
USER: Final = "windlass"
VIRTUAL_HOST: Final = "windlass"

CONFIGURATION: Final = """\
# Written anew at every start.
listeners.tcp.1 = {host}:{amqp}
default_user = {user}
default_pass = {password}
default_vhost = {virtual_host}
heartbeat = 15
log.file = false
log.console = true
log.console.stdio = stderr
log.console.level = warning
log.connection.level = error
log.console.use_colors = off
log.console.formatter.single_line = on
log.console.formatter.plaintext.format = $time [$level] $msg
"""
MANAGEMENT: Final = """\
management.tcp.ip = {host}
management.tcp.port = {management}
"""


@dataclass(frozen=True)
class NodePorts:
    amqp: int
    epmd: int
    distribution: int
    management: int | None


class NodeFiles:
    """Everything that the node reads and writes stays below one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = make_directory(directory.absolute())
        self.home = make_directory(self.directory / "home")
        self.boot_log = self.directory / "boot.log"
        self.password = kept_secret(self.directory / "password", lambda: random_word(32))
        kept_secret(self.home / ".erlang.cookie", lambda: random_word(40))

    def write_configuration(self, ports: NodePorts) -> None:
        template = CONFIGURATION + (MANAGEMENT if ports.management else "")
        text = template.format(
            host=LOOPBACK,
            amqp=ports.amqp,
            management=ports.management,
            user=USER,
            password=self.password,
            virtual_host=VIRTUAL_HOST,
        )
        write_kept(self.directory / "rabbitmq.conf", text)
        plugins = "rabbitmq_management" if ports.management else ""
        write_kept(self.directory / "enabled_plugins", f"[{plugins}].\n")

    def environment(self, programs: RabbitmqPrograms, ports: NodePorts) -> dict[str, str]:
        """Complete: nothing of the caller's RABBITMQ_* and ERL_* variables gets through."""
        below = self.directory
        return {
            "PATH": f"{programs.erl.parent}:{os.defpath}",
            "LANG": "C.UTF-8",
            "HOME": str(self.home),
            "RABBITMQ_NODENAME": NODE,
            "RABBITMQ_CONF_ENV_FILE": str(below / "no-environment-file"),
            "RABBITMQ_CONFIG_FILE": str(below / "rabbitmq.conf"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(below / "advanced.config"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(below / "enabled_plugins"),
            "RABBITMQ_MNESIA_BASE": str(below / "mnesia"),
            "RABBITMQ_LOG_BASE": str(below / "log"),
            "RABBITMQ_PID_FILE": str(below / "pid"),
            "RABBITMQ_DIST_PORT": str(ports.distribution),
            # The start script then becomes the Erlang machine, instead of staying between it and us.
            "RUNNING_UNDER_SYSTEMD": "true",
            "ERL_CRASH_DUMP": str(below / "erl_crash.dump"),
            "ERL_EPMD_PORT": str(ports.epmd),
            "ERL_EPMD_ADDRESS": LOOPBACK,
            # In force for the helpers that RabbitMQ starts, too: none may listen beyond loopback or leave
            # an epmd daemon behind.
            "ERL_FLAGS": f"-start_epmd false -kernel inet_dist_use_interface {{{LOOPBACK.replace('.', ',')}}}",
        }
