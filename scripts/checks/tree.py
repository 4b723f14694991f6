"""What every check shares: the files of the tree and the way a finding is told."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def files(*suffixes):
    """Paths, relative to the root, of all files that are or would be committed and end in one of the suffixes."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, check=True, capture_output=True, text=True, errors="surrogateescape",
    ).stdout.split("\0")
    paths = sorted({Path(name) for name in listed if name})
    return [path for path in paths if (ROOT / path).is_file() and (not suffixes or path.suffix in suffixes)]


def scripts():
    """Shell scripts: by suffix, or by their first line where they have no suffix."""
    return [
        path for path in files(".sh", "")
        if path.suffix == ".sh" or first_line(path).startswith(("#!/bin/bash", "#!/usr/bin/env bash", "#!/bin/sh"))
    ]


def first_line(path):
    with open(ROOT / path, "rb") as file:
        return file.readline().decode("utf-8", "replace").rstrip("\n")


def text(path):
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")


class Findings:
    """Collects findings and prints each as `place: what (what to do)`."""

    def __init__(self):
        self.count = 0

    def add(self, path, line, what, remedy):
        self.count += 1
        print(f"{path}:{line}: {what} ({remedy})")

    def finish(self):
        """Ends the check: status 1 when anything was found."""
        sys.exit(1 if self.count else 0)
