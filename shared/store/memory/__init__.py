"""What agents did: kept, gathered into embedding jobs, found again."""
