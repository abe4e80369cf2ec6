"""What `windlass doctor` looks at: this machine, and the Windlass that it finds; each finding with its remedy."""
