"""The actors there are, as rows say it: what tasks are checked by, and what clients are told of them."""
