"""The steps at which a worker can be made to die: their names, what they mean, and where they are called."""

import re
from pathlib import Path

import tree

ENUM = Path("Sources/CrashPoints/CrashPoint.swift")
CASE = re.compile(r"/// (?P<meaning>[^\n]+)\n\s+case (?P<case>\w+) = \"(?P<name>[a-z-]+)\"")
BLOCK = re.compile(r"#if CRASH_POINTS\n.*?#endif", re.DOTALL)
STATEMENTS = Path("Sources/Postgres/Connection/StatementExecution.swift")


def sources():
    """Swift files of the product, but for the steps themselves."""
    return [path for path in tree.files(".swift") if path.parts[0] == "Sources" and path.parts[1] != "CrashPoints"]


def calls():
    """Where each case is reached: its Swift name to files. Steps of statements are reached by the statement's name."""
    found = {}
    for path in sources():
        for case in re.findall(r"CrashPoint\.(\w+)\.reached\(\)", tree.text(path)):
            found.setdefault(case, []).append(path)
    return found


def is_of_statement(name):
    return name.endswith(("-unsent", "-sent", "-answered"))


def steps():
    """Name, meaning and place of each step, as the page has them."""
    found = calls()
    for match in CASE.finditer(tree.text(ENUM)):
        places = [STATEMENTS] if is_of_statement(match["name"]) else found.get(match["case"], [])
        links = ", ".join(f"[{path.stem}](../{path.as_posix()})" for path in places)
        yield match["name"], match["meaning"].rstrip("."), links
