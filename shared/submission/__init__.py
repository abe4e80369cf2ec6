"""What a new task has to be: one set of rules, for clients over REST and for actors that make children."""
