"""What keeps a checkout from being released is said before anything is built."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import check_release

ROOT = Path(__file__).parents[2]


@pytest.fixture
def checkout(tmp_path):
    for name in ("pyproject.toml", "CHANGELOG.md", "CITATION.cff"):
        shutil.copy(ROOT / name, tmp_path)
    edit(tmp_path / "pyproject.toml", 'version = "0.3.0"', 'version = "1.2.3"')
    edit(tmp_path / "CITATION.cff", "version: 0.3.0", "version: 1.2.3")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2030-01-02\n\n## [1.2.2] - 2029-01-02\n")
    return tmp_path


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_checkout_that_can_be_released(checkout):
    assert check_release.obstacles(checkout, "v1.2.3") == []


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("pyproject.toml", "1.2.3", "1.2.4", "the tag is v1.2.3, the version in pyproject.toml is 1.2.4"),
        ("CHANGELOG.md", "[1.2.3]", "[1.3.0]", "CHANGELOG.md has no section [1.2.3]"),
        ("CHANGELOG.md", "2030-01-02", "Unreleased", "CHANGELOG.md has no date for [1.2.3], but: Unreleased"),
        ("CITATION.cff", "1.2.3", "1.2.2", "CITATION.cff has version 1.2.2, pyproject.toml 1.2.3"),
    ],
)
def test_each_disagreement_is_named(checkout, name, old, new, said):
    edit(checkout / name, old, new)
    assert said in check_release.obstacles(checkout, "v1.2.3")


def test_a_trial_needs_neither_tag_nor_date(checkout):
    edit(checkout / "CHANGELOG.md", "2030-01-02", "Unreleased")
    assert check_release.obstacles(checkout, None) == []


def test_this_checkout_agrees_with_itself(capsys):
    assert check_release.main([]) == 0
    assert check_release.main(["v0.0.0"]) == 1
    assert "the tag is v0.0.0" in capsys.readouterr().out
