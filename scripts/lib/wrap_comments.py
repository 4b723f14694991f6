#!/usr/bin/env python3
"""Breaks line comments that are longer than 120 columns: what is too much goes to the beginning of the next line.

    wrap_comments.py FILE…
"""

import re
import sys
from pathlib import Path

COLUMNS = 120
COMMENT = re.compile(r"^(\s*(?:///?|--|#))( +)(.*)$")
ITEM = re.compile(r"(?:[-*|>`]|\d+[.)] )")


def wrapped(lines):
    result, pending = [], list(reversed(lines))
    while pending:
        line = pending.pop()
        comment = COMMENT.match(line)
        cut = line.rfind(" ", 0, COLUMNS + 1)
        if len(line) <= COLUMNS or not comment or cut <= comment.start(3):
            result.append(line)
            continue
        lead, rest = comment.group(1) + comment.group(2), line[cut + 1:]
        result.append(line[:cut].rstrip())
        following = COMMENT.match(pending[-1]) if pending else None
        if following and following.group(1, 2) == comment.group(1, 2) and not ITEM.match(following.group(3)):
            pending[-1] = f"{lead}{rest} {following.group(3)}"
        else:
            pending.append(lead + rest)
    return result


for name in sys.argv[1:]:
    path = Path(name)
    before = path.read_text(encoding="utf-8")
    after = "\n".join(wrapped(before.split("\n")))
    if after != before:
        path.write_text(after, encoding="utf-8")
