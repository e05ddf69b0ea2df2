"""`python -m numba_enzyme doctor` and `python -m numba_enzyme cache [--clear]`."""

from __future__ import annotations

import argparse
import sys

from numba_enzyme import cachedir, doctor


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m numba_enzyme")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("doctor", help="say whether a derivative can be taken on this machine, and what mends it if not")
    cache = commands.add_parser("cache", help="show the folder of finished builds")
    cache.add_argument("--clear", action="store_true", help="and empty it")
    options = parser.parse_args(arguments)
    return doctor.main() if options.command == "doctor" else _cache(clear=options.clear)


def _cache(*, clear: bool) -> int:
    entries, size = cachedir.usage()
    print(f"{cachedir.cache_dir()}: {entries} files, {size / 1e6:.1f} MB")
    if clear:
        cachedir.clear()
        print("cleared")
    return 0


if __name__ == "__main__":
    sys.exit(main())
