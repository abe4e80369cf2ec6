#!/bin/sh
# Passwords and the first key of `make compose`: made once, kept in deploy/.env, which no one else may read.
set -eu
file=$(dirname "$0")/.env
word() { head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n'; }
if [ ! -e "$file" ]; then
    umask 077
    cat >"$file.draft" <<END
WINDLASS_POSTGRES_PASSWORD=$(word)
WINDLASS_RABBITMQ_PASSWORD=$(word)
WINDLASS_API_KEY=wl_$(word | head -c 8)_$(word | head -c 40)
END
    mv "$file.draft" "$file"
fi
if [ "${1:-}" = --show ]; then
    echo "windlass starts at http://127.0.0.1:${WINDLASS_PORT:-8800} $(sed -n 's/^WINDLASS_API_KEY=/key=/p' "$file")"
fi
