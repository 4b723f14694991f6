"""The yardstick of every bench: what nghttp2's own load generator spends per request."""

import re
import sys
import tempfile

from measure import Run

BODY_BYTES = 256
HEADERS = {  # as a push has them; h2load repeats them as they are, our client varies path, id and collapse id
    "authorization": "bearer " + "x" * 200,
    "apns-topic": "com.example.demo",
    "apns-push-type": "alert",
    "apns-priority": "10",
    "apns-expiration": "1900000000",
    "apns-id": "00000000-0000-4000-8000-000000000001",
    "apns-collapse-id": "approval:00000001",
}


def h2load(url, streams, requests, *options, **headers):
    """One run over one connection; ends the bench if a request got no answer."""
    headers = [argument for name, value in (HEADERS | headers).items() for argument in ("-H", f"{name}: {value}")]
    with tempfile.NamedTemporaryFile() as body:
        body.write(b'{"aps":{"alert":{"title":"Approval needed"}}}'.ljust(BODY_BYTES))
        body.flush()
        run = Run(["h2load", "-t1", "-c1", f"-m{streams}", f"-n{requests}", "-d", body.name, *headers,
                   *options, f"{url}/3/device/{'a' * 64}"])
    finished = re.search(r"(\d+) done, \d+ succeeded", run.output)
    return run.require(finished and int(finished.group(1)) == requests, "h2load did not finish its requests")


def request_seconds(url, requests, rate, token):
    """How long each of `requests` took, `rate` of them a second, one after the other on one connection."""
    with tempfile.NamedTemporaryFile("r") as log:
        h2load(url, 1, requests, f"--rps={rate:g}", f"--log-file={log.name}", authorization=f"bearer {token}")
        fields = [line.split("\t") for line in log]
    if any(status != "200" for _, status, _ in fields):
        sys.exit("the fake provider did not accept h2load's requests")
    return [int(microseconds) / 1e6 for _, _, microseconds in fields]
