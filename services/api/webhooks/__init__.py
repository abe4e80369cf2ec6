"""Webhooks over REST: endpoints, and what has become of their deliveries."""
