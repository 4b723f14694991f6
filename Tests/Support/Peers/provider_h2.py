"""A push provider that shares no code with the client under test: Python's h2 over Python's ssl.

    provider_h2.py CERTIFICATE KEY LIMIT ANSWERS

Listens on a free loopback port and prints it, serves one connection with at most LIMIT streams, and prints each request
as a line of JSON before it answers. ANSWERS is a JSON file that says what is answered to which request: see PeerAnswer
in ProviderPeer.swift. h2 raises for whatever breaks RFC 9113: order and case of headers, more streams than LIMIT, flow
control.
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


class Provider:
    def __init__(self, limit, answers):
        self.connection = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self.connection.initiate_connection()
        self.connection.update_settings({SettingCodes.MAX_CONCURRENT_STREAMS: limit})
        self.answers = answers
        self.requests = {}
        # Answers whose body waits for the client's window: stream, rest of the body, its answer.
        self.unsent = {}
        self.most_open = 0

    def received(self, data):
        """Handles `data`; false after the client's goodbye."""
        for event in self.connection.receive_data(data):
            if isinstance(event, RequestReceived):
                self.requests[event.stream_id] = {"headers": [list(pair) for pair in event.headers], "body": ""}
                self.most_open = max(self.most_open, len(self.requests) + len(self.unsent))
            elif isinstance(event, DataReceived):
                self.requests[event.stream_id]["body"] += event.data.decode()
                self.connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, StreamEnded):
                self.answer(event.stream_id)
            elif isinstance(event, ConnectionTerminated):
                report({"goaway": int(event.error_code), "most_open": self.most_open})
                return False
        for stream in list(self.unsent):
            self.send_body(stream)
        return True

    def answer(self, stream):
        request = self.requests.pop(stream)
        report(request)
        path = dict(map(tuple, request["headers"]))[":path"]
        answer = next(answer for answer in self.answers if answer["mark"] in path or answer["mark"] in request["body"])
        if answer["interim"]:
            self.connection.send_headers(stream, [(":status", "103"), ("link", "</nothing>")])
        headers = [(":status", str(answer["status"]))] + [tuple(pair) for pair in answer["headers"]]
        body = answer["body"].encode() * answer["copies"]
        bare = not body and not answer["trailers"]
        self.connection.send_headers(stream, headers, end_stream=bare)
        if not bare:
            self.unsent[stream] = (body, answer)

    def send_body(self, stream):
        body, answer = self.unsent[stream]
        while body:
            room = self.connection.local_flow_control_window(stream)
            size = min(len(body), answer["piece"], room, self.connection.max_outbound_frame_size)
            if size == 0:
                self.unsent[stream] = (body, answer)
                return
            last = size == len(body) and not answer["trailers"]
            self.connection.send_data(stream, body[:size], end_stream=last)
            body = body[size:]
        if answer["trailers"]:
            self.connection.send_headers(stream, [("checksum", "none")], end_stream=True)
        del self.unsent[stream]


def main():
    certificate, key, limit, answers = sys.argv[1:]
    with open(answers, encoding="utf-8") as file:
        provider = Provider(int(limit), json.load(file))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.set_alpn_protocols(["h2"])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(60)
        report({"port": listener.getsockname()[1]})
        plain, _ = listener.accept()
        plain.settimeout(60)
        with context.wrap_socket(plain, server_side=True) as client:
            client.sendall(provider.connection.data_to_send())
            while data := client.recv(65536):
                if not provider.received(data):
                    return
                client.sendall(provider.connection.data_to_send())


main()
