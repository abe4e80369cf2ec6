"""Which tasks this process starts next, and where: credit, places, and what is passed over."""
