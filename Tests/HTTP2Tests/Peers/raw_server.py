"""An HTTP/2 server that misbehaves, and shares no code with the client under test.

    raw_server.py CERTIFICATE KEY SCENARIO

Listens on a free loopback port and prints it, plays SCENARIO on each connection, and, when its standard input ends,
prints what it has seen as a line of JSON: `connections`, `requests`, `resets` (stream and code), `goaways` (codes),
`most_open` (streams at a time, on any connection) and `faults` (what the client did wrong; a scenario that failed).
"""

import json
import socket
import ssl
import sys
import threading

import raw_floods
import raw_scenarios
from raw_peer import Closed, Peer, Report, Stream


def play(scenario, plain, context, number, report):
    plain.settimeout(60)
    try:
        with plain:
            stream = Stream(plain, context)
            peer = Peer(stream, number, report)
            scenario(peer)
            peer.serve()
    except (Closed, ssl.SSLError, ConnectionError):
        pass
    except Exception as error:  # reported, and so seen by the test
        report.add("faults", f"connection {number}: {error!r}")


def accept(listener, scenario, context, report):
    while True:
        plain, _ = listener.accept()
        report.add("connections")
        number = report.values["connections"]
        threading.Thread(target=play, args=(scenario, plain, context, number, report), daemon=True).start()


def main():
    certificate, key, name = sys.argv[1:]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.set_alpn_protocols(["h2"])
    report = Report()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        # Small, so that a scenario that does not read makes the client wait soon.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
        print(json.dumps({"port": listener.getsockname()[1]}), flush=True)
        scenario = (raw_scenarios.SCENARIOS | raw_floods.SCENARIOS)[name]
        threading.Thread(target=accept, args=(listener, scenario, context, report), daemon=True).start()
        sys.stdin.read()
        print(json.dumps(report.values), flush=True)


main()
