#!/bin/sh
# `docker compose`, or the program of its own that it was before, as Debian 12 has it.
set -eu
export DOCKER_BUILDKIT=1 COMPOSE_DOCKER_CLI_BUILD=1 # the Dockerfile keeps what it downloads, which the old builder cannot
if docker compose version >/dev/null 2>&1; then
    exec docker compose "$@"
elif command -v docker-compose >/dev/null; then
    exec docker-compose "$@"
fi
echo "windlass: there is neither \`docker compose\` nor docker-compose: install docker-compose-plugin, or Debian's docker-compose" >&2
exit 1
