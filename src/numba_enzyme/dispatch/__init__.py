"""From a call to a specialization."""
