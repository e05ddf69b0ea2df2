"""Entry points: the emitted functions that call Enzyme."""
