"""Enzyme's per-argument roles, as they appear in marker calls.

Names are Enzyme's own, so that its documentation explains ours.
"""

from __future__ import annotations

from enum import Enum


class Activity(Enum):
    """What Enzyme does with one argument of the function it differentiates."""

    CONST = "enzyme_const"
    """Held constant: no derivative flows through it."""
    OUT = "enzyme_out"
    """A scalar passed by value whose partial derivative the sweep returns (Active)."""
    DUP = "enzyme_dup"
    """Followed by its shadow: a tangent, or memory that cotangents accumulate into."""
    DUPNONEED = "enzyme_dupnoneed"
    """Like DUP for an output whose primal value nobody reads."""
