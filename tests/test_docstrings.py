"""The examples in public docstrings run and print what they say."""

from __future__ import annotations

import doctest

import pytest

from numba_enzyme import api, testing, types


@pytest.mark.parametrize("module", [api, testing, types], ids=lambda module: module.__name__)
def test_examples(module):
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0


@pytest.mark.parametrize("name", ["grad", "value_and_grad", "jvp", "vjp", "jacfwd", "jacrev", "hessian", "hvp", "differentiable"])
def test_every_transform_has_an_example(name):
    assert ">>>" in getattr(api, name).__doc__
