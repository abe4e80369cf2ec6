"""Webhooks: deliveries, carried to their endpoints."""
