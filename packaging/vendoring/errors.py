"""The one error of this folder; the build hook and the bootstrap script print its text and nothing else."""

from __future__ import annotations


class StagingError(RuntimeError):
    """The toolchain cannot be staged here, or what was staged is not what is pinned."""
