"""What every adapter promises, tried out by `windlass providers check`, and by whoever tests one of their own."""
