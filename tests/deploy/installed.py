"""Runs a program that checks a shipped file, where it is installed. `.ci/run` installs what Debian has."""

import shutil
import subprocess

import pytest


def check(name: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the program and return what it said; without it the test is skipped."""
    program = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    if program is None:
        pytest.skip(f"There is no {name} here.")
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60, check=False)
