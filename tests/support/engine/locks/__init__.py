"""Every move of the store against every other: the yard where they meet, the moves, and the drill that drives them."""
