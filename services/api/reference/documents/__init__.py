"""The documents that the API answers with, as its description has them: a module for each kind of thing."""
