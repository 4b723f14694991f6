#!/usr/bin/env python3
"""A proxy that speaks TLS to clients of PostgreSQL and none to the server, and fills its records, as those of other
makers do: PostgreSQL itself never sends one of more than 8 KiB.

    tls_proxy.py SOCKET

SOCKET is the server's. The first line printed is the port on the loopback interface; it ends with its standard input.
"""

import pathlib
import select
import socket
import ssl
import subprocess
import sys
import tempfile
import threading

SSL_REQUEST = bytes([0, 0, 0, 8, 4, 210, 22, 47])
# How long to gather what the server says before it is passed on.
GATHER_SECONDS = 0.02


def context():
    with tempfile.TemporaryDirectory() as folder:
        key, certificate = pathlib.Path(folder, "key.pem"), pathlib.Path(folder, "certificate.pem")
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate,
             "-days", "1", "-subj", "/CN=localhost"], check=True, capture_output=True)
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.load_cert_chain(certificate, key)
        return made


def upwards(client, server):
    while data := client.recv(65536):
        server.sendall(data)
    server.shutdown(socket.SHUT_WR)


def serve(raw, tls, path):
    if raw.recv(8, socket.MSG_WAITALL) != SSL_REQUEST:
        raise ValueError("the client asks for no TLS")
    raw.sendall(b"S")
    with tls.wrap_socket(raw, server_side=True) as client, socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        threading.Thread(target=upwards, args=(client, server), daemon=True).start()
        while data := server.recv(65536):
            while select.select([server], [], [], GATHER_SECONDS)[0] and (more := server.recv(65536)):
                data += more
            client.sendall(data)


def accept(listener, tls, path):
    while True:
        raw, _ = listener.accept()
        threading.Thread(target=serve, args=(raw, tls, path), daemon=True).start()


def main():
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    threading.Thread(target=accept, args=(listener, context(), sys.argv[1]), daemon=True).start()
    print(listener.getsockname()[1], flush=True)
    sys.stdin.read()


main()
