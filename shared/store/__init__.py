"""Every SQL statement, one function per intent."""
