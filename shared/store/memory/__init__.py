"""What agents did: kept, gathered into embedding jobs, found again."""

CHANNEL = "windlass_memory"
"""Called when something is to be gathered, or a model to be filled."""
