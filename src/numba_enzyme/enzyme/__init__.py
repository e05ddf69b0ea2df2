"""Enzyme: the vendored toolchain and the one process that runs it."""
