"""How answers look: tables and bars for people, JSON and plain lines for programs."""
