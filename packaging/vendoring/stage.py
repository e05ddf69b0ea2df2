"""Fills a folder with the vendored toolchain and its MANIFEST.json, unless it holds just that already."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vendoring import policy, sources
from vendoring.elf import Elf
from vendoring.restage import expect

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vendoring.pins import Built, Restaged

    Manifest = dict[str, Any]

MANIFEST = "MANIFEST.json"
# What decides the staged bytes; the client that fetches the wheel does not.
_RECIPE_SOURCES = ("built.py", "elf.py", "pins.py", "policy.py", "restage.py", "sources.py", "stage.py")


def recipe_hash() -> str:
    digest = hashlib.sha256()
    for name in _RECIPE_SOURCES:
        digest.update(Path(__file__).with_name(name).read_bytes())
    return digest.hexdigest()


def staged_manifest(folder: Path) -> Manifest | None:
    """The manifest of a folder that is up to date and intact, else None."""
    try:
        manifest: Manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        current = manifest["recipe"] == recipe_hash() and manifest["origin"] == sources.origin(sources.chosen())
        if current and all(_is_intact(folder / name, entry) for name, entry in manifest["files"].items()):
            return manifest
    except (OSError, ValueError, LookupError, TypeError):
        pass  # absent, half written or of another kind: it is staged anew
    return None


def ensure(folder: Path, *, force: bool = False) -> Manifest:
    """Stage into `folder` if need be."""
    policy.refuse_other_hosts()
    current = None if force else staged_manifest(folder)
    if current is not None:
        return current
    recipe = sources.chosen()
    files = sources.contents(recipe)
    manifest = describe(recipe, files)
    _replace(folder, files, manifest)
    return manifest


def describe(recipe: Built | Restaged, files: Mapping[str, bytes]) -> Manifest:
    floors = policy.floors(Elf(name, content) for name, content in files.items())
    expect("platform computed from the staged files", recipe.platform, policy.platform_tag(floors))
    return {
        "schema": 1,
        "origin": sources.origin(recipe),
        "versions": dict(recipe.versions),
        "platform": recipe.platform,
        "floors": floors,
        "opt": recipe.opt,
        "plugin": recipe.plugin,
        "files": {name: {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)} for name, content in sorted(files.items())},
        "recipe": recipe_hash(),
    }


def _is_intact(path: Path, entry: Mapping[str, Any]) -> bool:
    content = path.read_bytes()
    return len(content) == entry["size"] and hashlib.sha256(content).hexdigest() == entry["sha256"] and os.access(path, os.X_OK)


def _replace(folder: Path, files: Mapping[str, bytes], manifest: Manifest) -> None:
    """Write aside, then rename: whoever looks sees the old folder, none, or the whole new one."""
    new, old = (folder.with_name(f"{folder.name}.tmp-{os.getpid()}-{kind}") for kind in ("new", "old"))
    shutil.rmtree(new, ignore_errors=True)
    try:
        for name, content in files.items():
            path = new / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            path.chmod(0o755)
        (new / MANIFEST).write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        with suppress(FileNotFoundError):
            folder.rename(old)
        try:
            new.rename(folder)
        except OSError:  # another build was faster; its result will do if it is this one
            if staged_manifest(folder) != manifest:
                raise
    finally:
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
