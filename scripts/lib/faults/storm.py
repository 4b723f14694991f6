"""Connections that go away, refused streams, limits that jump, and bad tokens among the good ones."""

import time

from stand import Stand, accepts, say

SCENARIO = ["seed 4", "apns goaway every 50-500", "apns streams 1-1000 every 50-500", "apns refuse-twice rate 1%",
            "apns delay 2ms"]
BAD = 50  # every so many devices are bad


def run(options):
    rows = 5 * options.rows
    with Stand(options, "goaway", SCENARIO) as stand:
        stand.register(rows, bad=BAD)
        stand.enqueue(1, rows)
        stand.start_fake()
        began = time.monotonic()
        with stand.worker():
            left = stand.wait_until_settled(600)
        seconds = time.monotonic() - began
        requests = stand.requests()
        good = rows - rows // BAD
        faults = stand.common_faults(accepts(requests), good)
        if left:
            faults.append(f"{left} rows still wait")
        charged = stand.watcher.execute(
            "SELECT count(*) FROM postbell.deliveries WHERE outcome NOT IN (0, 1)").fetchone()[0]
        if charged:
            faults.append(f"{charged} attempts were spent on what was not sent")
        connections = len({request["connection"] for request in requests})
        refused = sum(request["status"] == 0 for request in requests)
        return say("goaway", f"rows {rows}, connections {connections}, refused or gone {refused}, accepted once "
                   f"{good}, attempts spent in vain {charged}, {seconds:.0f} s", faults)
