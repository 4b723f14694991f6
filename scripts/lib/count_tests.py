#!/usr/bin/env python3
"""Counts what one run of `swift test` did: prints `PASSED FAILED`, and on standard error names each failure, with what
its test recorded.

    count_tests.py LOG XUNIT STATUS

XUNIT is the report of Swift Testing (whole only if the process came to its end), LOG everything the run printed, STATUS
its exit status. A skipped test is a failure, because a test that does not run proves nothing. So is a run without
tests, and one that ended badly although no test says so: it crashed, ran out of time, or a sanitizer spoke.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

SWIFT_TESTING = re.compile(
    r"^\S+ Test (?!run with )(?!case )(.*?)(?: with \d+ test cases?)? (passed|failed) after ", re.M)
STARTED = re.compile(r"^\S+ Test (?!run started)(?!case )(.*?) started\.$", re.M)
SKIPPED = re.compile(r"^\S+ Test (.*?) skipped", re.M)
RECORDED = re.compile(r"^\S+ Test (.*? recorded an issue .*(?:\n\S*↳ .*)?)$", re.M)  # and what the test says of it
ISSUES_SHOWN = 20  # the log has them all
XCTEST = re.compile(r"^Test Case '(.*?)' (passed|failed|skipped) ", re.M)


def from_report(path):
    """Names of passed and failed tests from the report, or None if it is not there or broken off."""
    try:
        cases = list(ElementTree.parse(path).iter("testcase"))
    except (OSError, ElementTree.ParseError):
        return None
    bad = [case for case in cases if case.find("failure") is not None or case.find("skipped") is not None]
    names = [f"{case.get('classname')}/{case.get('name')}" for case in bad]
    return len(cases) - len(bad), names


def from_log(log):
    """The same from the printed lines; a test that started and never ended is one that failed."""
    ended = SWIFT_TESTING.findall(log)
    names = [name for name, verdict in ended if verdict == "failed"] + SKIPPED.findall(log)
    unfinished = set(STARTED.findall(log)) - {name for name, _ in ended}
    return len(ended) - sum(verdict == "failed" for _, verdict in ended), \
        names + [f"{name} (did not end)" for name in sorted(unfinished)]


def main():
    log = Path(sys.argv[1]).read_text(encoding="utf-8", errors="replace")
    status = int(sys.argv[3])
    passed, failures = from_report(sys.argv[2]) or from_log(log)
    for name, verdict in XCTEST.findall(log):
        if verdict == "passed":
            passed += 1
        else:
            failures.append(name)
    races = len(re.findall(r"WARNING: ThreadSanitizer", log))
    if races:
        failures.append(f"{races} reports of Thread Sanitizer")
    if status != 0 and not failures:
        failures.append(f"the test process ended with status {status}")
    if passed == 0 and not failures:
        failures.append("no test was run")
    for failure in failures:
        print(f"failed: {failure}", file=sys.stderr)
    for issue in RECORDED.findall(log)[:ISSUES_SHOWN]:
        print("    " + issue.replace("\n", "\n    "), file=sys.stderr)
    print(passed, len(failures))


main()
