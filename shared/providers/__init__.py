"""Those who do the work: what can be said to them, and what they answer. Knows neither the services nor the store."""
