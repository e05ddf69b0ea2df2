"""From needed versions to a platform tag, and the machines on which nothing is built."""

from __future__ import annotations

import os
import platform
import sys

import pytest

from vendoring import policy
from vendoring.elf import Elf
from vendoring.errors import StagingError


@pytest.mark.parametrize(
    ("needed", "tag"),
    [
        ({"GLIBC": "2.17"}, "manylinux_2_28_x86_64"),
        ({"GLIBC": "2.34", "GLIBCXX": "3.4.29", "CXXABI": "1.3.13", "GCC": "3.3", "ZLIB": "1.2.0"}, "manylinux_2_34_x86_64"),
        ({"GLIBC": "2.17", "GLIBCXX": "3.4.25"}, "manylinux_2_31_x86_64"),
        ({"GLIBC": "2.4"}, "manylinux_2_28_x86_64"),  # numbers, not text: 2.4 is older than 2.34
    ],
)
def test_the_oldest_platform_that_offers_all(needed, tag):
    assert policy.platform_tag(needed) == tag


def test_too_new_for_any_platform():
    with pytest.raises(StagingError, match=r"GLIBC 2\.36"):
        policy.platform_tag({"GLIBC": "2.36"})


def test_floors_are_the_newest_needed(elf_bytes):
    elf = Elf("helper.so", elf_bytes)
    floor = policy.floors([elf])["GLIBC"]
    names = {version.name for need in elf.version_needs() for version in need.versions}
    assert f"GLIBC_{floor}" in names
    assert all(policy.release(name[6:]) <= policy.release(floor) for name in names if name.startswith("GLIBC_"))


def test_a_library_of_neither_set_nor_system_is_refused(elf_bytes, monkeypatch):
    monkeypatch.setattr(policy, "_SYSTEM", policy._SYSTEM - {"libc.so.6"})
    with pytest.raises(StagingError, match=r"helper\.so needs libc\.so\.6: neither vendored nor part of every system"):
        policy.floors([Elf("helper.so", elf_bytes)])


def test_a_version_of_no_policy_is_refused(elf_bytes, monkeypatch):
    monkeypatch.setattr(policy, "_VERSION", policy.re.compile("(ZLIB)_(.*)"))
    with pytest.raises(StagingError, match=r"needs GLIBC_\S+ of \S+: no manylinux policy offers it"):
        policy.floors([Elf("helper.so", elf_bytes)])


def refuse(name):
    raise ValueError(name)


@pytest.mark.parametrize(
    ("where", "what", "value"),
    [
        (sys, "platform", "darwin"),
        (sys, "platform", "win32"),
        (platform, "machine", lambda: "aarch64"),
        (os, "confstr", refuse),
        (policy.struct, "calcsize", lambda _: 4),
    ],
    ids=["macos", "windows", "aarch64", "musl", "32bit"],
)
def test_other_machines_are_told_what_is_served(monkeypatch, where, what, value):
    monkeypatch.setattr(where, what, value)
    with pytest.raises(StagingError, match=r"serves Linux on x86-64 with glibc; this .* Nothing was built"):
        policy.refuse_other_hosts()


def test_this_machine_is_served():
    policy.refuse_other_hosts()
