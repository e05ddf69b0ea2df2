"""Front ends: from a Python function to its primal's IR."""
