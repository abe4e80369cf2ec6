"""One module for each dashboard: its rows, from what one notices down to why."""
