"""Memory and figures: what agents did, found again, and what it cost."""
