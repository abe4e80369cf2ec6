"""Vectors for what agents did."""
