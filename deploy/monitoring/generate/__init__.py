"""Writes what Prometheus, Grafana and Kubernetes read about Windlass: rules, alerts and dashboards, from one source."""
