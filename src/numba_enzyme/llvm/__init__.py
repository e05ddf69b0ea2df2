"""A small view of LLVM modules, and the rewrites between LLVM versions."""
