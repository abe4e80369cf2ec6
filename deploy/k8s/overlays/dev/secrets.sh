#!/bin/sh
# Makes the Secrets that the manifests name, with passwords of their own, where they are missing: run it once before
# `kubectl apply`. Nothing of it is kept in a file.
set -eu
namespace=windlass
word() { head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n'; }
make() {
    name=$1
    shift
    kubectl --namespace "$namespace" get secret "$name" >/dev/null 2>&1 ||
        kubectl --namespace "$namespace" create secret generic "$name" "$@"
}

kubectl apply --filename "$(dirname "$0")/../../base/namespace.yaml"
postgres=$(word)
rabbitmq=$(word)
make windlass-postgres-app --from-literal=password="$postgres" \
    --from-literal=uri="postgresql://windlass:$postgres@windlass-postgres-rw:5432/windlass"
make windlass-rabbitmq-default-user --from-literal=password="$rabbitmq" \
    --from-literal=connection_string="amqp://windlass:$rabbitmq@windlass-rabbitmq:5672/"
make windlass-scaler --from-literal=password="$(word)"
make windlass-api-key --from-literal=key="wl_$(word | head -c 8)_$(word | head -c 40)"
