"""What providers allow: who may start how much, and when; breakers, pauses and rates."""
