"""What the measurements share: the cost of a process, medians, and tables."""

import math
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


class Run:
    """One process that ran to its end: CPU seconds, largest resident memory in MB, wall-clock seconds, output."""

    def __init__(self, command, environment=None):
        reader, writer = os.pipe()
        started = time.monotonic()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=writer, stderr=subprocess.STDOUT,
                                   env=environment)
        os.close(writer)
        with os.fdopen(reader, encoding="utf-8", errors="replace") as pipe:
            self.output = pipe.read()
        _, status, usage = os.wait4(process.pid, 0)
        self.seconds = time.monotonic() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        self.status = process.returncode
        self.cpu = usage.ru_utime + usage.ru_stime
        self.megabytes = usage.ru_maxrss / 1024

    def require(self, condition, what):
        """Ends the measurement when a run did not do what it is measured for."""
        if self.status != 0 or not condition:
            sys.exit(f"{what}\n{self.output}")
        return self


def cpu_seconds(pid):
    """CPU time of a live process so far, all of its threads."""
    total = 0
    try:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            total += int((thread / "schedstat").read_text().split()[0])
        return total / 1e9
    except (OSError, ValueError):  # a kernel without scheduler statistics counts in ticks
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS


def resident_megabytes(pid):
    """Resident memory of a live process: now, and at its highest."""
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    return tuple(int(lines[key].split()[0]) / 1024 for key in ("VmRSS", "VmHWM"))


def median(values):
    return statistics.median(values)


def quantile(values, share):
    """The smallest value that at least this share of them does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def spread(values):
    """Median with the smallest and the largest value, because a busy machine is noisy."""
    return f"{median(values):.2f} ({min(values):.2f}–{max(values):.2f})"


def table(heads, rows):
    """Prints a Markdown table whose columns line up."""
    rows = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[index]) for row in [heads, *rows]) for index in range(len(heads))]
    for row in [heads, ["-" * width for width in widths], *rows]:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |", flush=True)


class Limits:
    """What the figures may be at most or at least. Each is in the table beside its figure; those that are broken end
    the bench with a status of their own."""

    BROKEN = 3

    def __init__(self):
        self.broken = []

    def most(self, what, value, limit):
        """The limit as a table shows it; remembers when `value` is above it."""
        if value > limit:
            self.broken.append(f"{what}: {value:.2f} is more than {limit:g}")
        return f"≤ {limit:g}" if value <= limit else f"≤ {limit:g} BROKEN"

    def least(self, what, value, limit):
        """The same for what must not be below its limit."""
        if value < limit:
            self.broken.append(f"{what}: {value:.2f} is less than {limit:g}")
        return f"≥ {limit:g}" if value >= limit else f"≥ {limit:g} BROKEN"

    def finish(self):
        """Ends the bench: says which limits are broken, if any."""
        for line in self.broken:
            print(f"limit broken: {line}", file=sys.stderr)
        sys.exit(self.BROKEN if self.broken else 0)


def progress(text):
    print(text, file=sys.stderr, flush=True)
