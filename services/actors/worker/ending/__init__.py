"""How an attempt came out: what is kept of its result, and what becomes of one that failed or was refused."""
