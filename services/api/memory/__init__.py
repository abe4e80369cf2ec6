"""What agents did over REST: read, searched, embedded."""
