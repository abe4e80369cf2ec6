#!/bin/sh
# Passwords and the first key of `make compose`: made once, kept in deploy/.env, which no one else may read.
set -eu
file=$(dirname "$0")/.env
word() { head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n'; }
umask 077
{ cat "$file" 2>/dev/null || true; } >"$file.draft"
# One that is there stays as it is; one that an earlier version did not know is added.
keep() { grep -q "^$1=" "$file.draft" || echo "$1=$2" >>"$file.draft"; }
keep WINDLASS_POSTGRES_PASSWORD "$(word)"
keep WINDLASS_RABBITMQ_PASSWORD "$(word)"
keep WINDLASS_GRAFANA_PASSWORD "$(word)"
keep WINDLASS_API_KEY "wl_$(word | head -c 8)_$(word | head -c 40)"
mv "$file.draft" "$file"
if [ "${1:-}" = --show ]; then
    echo "windlass starts at http://127.0.0.1:${WINDLASS_PORT:-8800} $(sed -n 's/^WINDLASS_API_KEY=/key=/p' "$file")"
    echo "grafana at http://127.0.0.1:${WINDLASS_GRAFANA_PORT:-3000} user=admin $(sed -n 's/^WINDLASS_GRAFANA_PASSWORD=/password=/p' "$file")"
fi
