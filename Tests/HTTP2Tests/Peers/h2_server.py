"""An HTTP/2 server that shares no code with the client under test: Python's h2 over Python's ssl.

    h2_server.py CERTIFICATE KEY LIMIT

Listens on a free loopback port and prints it, serves one connection with at most LIMIT streams, and prints each request
as a line of JSON before it answers. A path that ends in an odd digit gets a 410 with a body, every other one a 200.
"""

import json
import socket
import ssl
import sys

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ConnectionTerminated, DataReceived, RequestReceived, StreamEnded
from h2.settings import SettingCodes


def report(value):
    print(json.dumps(value), flush=True)


def answer(connection, stream, request):
    report(request)
    if request["headers"][3][1][-1] in "13579":
        body = json.dumps({"reason": "Unregistered", "timestamp": 1}).encode()
        headers = [(":status", "410"), ("apns-id", "odd"), ("content-length", str(len(body)))]
        connection.send_headers(stream, headers)
        connection.send_data(stream, body, end_stream=True)
    else:
        connection.send_headers(stream, [(":status", "200"), ("apns-id", "even")], end_stream=True)


def serve(client, limit):
    connection = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
    connection.initiate_connection()
    connection.update_settings({SettingCodes.MAX_CONCURRENT_STREAMS: limit})
    client.sendall(connection.data_to_send())
    requests = {}
    while data := client.recv(65536):
        # h2 raises for whatever breaks RFC 9113: order and case of headers, more streams than LIMIT, flow control.
        for event in connection.receive_data(data):
            if isinstance(event, RequestReceived):
                requests[event.stream_id] = {"headers": [list(pair) for pair in event.headers], "body": ""}
            elif isinstance(event, DataReceived):
                requests[event.stream_id]["body"] += event.data.decode()
                connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, StreamEnded):
                answer(connection, event.stream_id, requests.pop(event.stream_id))
            elif isinstance(event, ConnectionTerminated):
                report({"goaway": int(event.error_code)})
                return
        client.sendall(connection.data_to_send())


def main():
    certificate, key, limit = sys.argv[1:]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.set_alpn_protocols(["h2"])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(60)
        report({"port": listener.getsockname()[1]})
        plain, _ = listener.accept()
        plain.settimeout(60)
        with context.wrap_socket(plain, server_side=True) as client:
            serve(client, int(limit))


main()
