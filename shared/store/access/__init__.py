"""Who may do what, what the processes keep secret, and what operators did."""
