"""Says what keeps this checkout from being released: python packaging/ci/check_release.py [TAG]

Version, tag, changelog and citation must tell the same. Without TAG, as for a trial upload, the tag and the date are not asked for.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


def obstacles(checkout: Path, tag: str | None) -> list[str]:
    version = _first(checkout / "pyproject.toml", r'^version = "(.+)"$')
    found = []
    if tag is not None and tag != f"v{version}":
        found.append(f"the tag is {tag}, the version in pyproject.toml is {version}")
    section = _first(checkout / "CHANGELOG.md", rf"^## \[{re.escape(version)}\] - (.+)$")
    if not section:
        found.append(f"CHANGELOG.md has no section [{version}]")
    elif tag is not None and not re.fullmatch(r"\d{4}-\d{2}-\d{2}", section):
        found.append(f"CHANGELOG.md has no date for [{version}], but: {section}")
    cited = _first(checkout / "CITATION.cff", r"^version: (.+)$")
    if cited != version:
        found.append(f"CITATION.cff has version {cited}, pyproject.toml {version}")
    return found


def _first(path: Path, pattern: str) -> str:
    match = re.search(pattern, path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return match.group(1) if match else ""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tag", nargs="?")
    found = obstacles(CHECKOUT, parser.parse_args(arguments).tag or None)
    print(*(found or ["nothing keeps this from being released"]), sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
