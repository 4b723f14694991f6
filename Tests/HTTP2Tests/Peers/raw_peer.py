"""The server's end of an HTTP/2 connection, frame by frame: Python's hyperframe, hpack and ssl, and none of our code.

It knows no more of HTTP/2 than a scenario needs, so each rule can be broken.
"""

import ssl
import threading

from hpack import Decoder, Encoder
from hyperframe.frame import (
    DataFrame, Frame, GoAwayFrame, HeadersFrame, PingFrame, RstStreamFrame, SettingsFrame, WindowUpdateFrame,
)

NO_ERROR, PROTOCOL_ERROR, STREAM_CLOSED, REFUSED_STREAM = 0, 1, 5, 7
STREAMS, WINDOW, FRAME_SIZE, TABLE_SIZE = (
    SettingsFrame.MAX_CONCURRENT_STREAMS, SettingsFrame.INITIAL_WINDOW_SIZE, SettingsFrame.MAX_FRAME_SIZE,
    SettingsFrame.HEADER_TABLE_SIZE)
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
UNLIMITED = 1 << 31


class Closed(Exception):
    """The client has ended the connection."""


class Report:
    """What all connections have seen."""

    def __init__(self):
        self.lock = threading.Lock()
        self.values = {
            "connections": 0, "requests": 0, "resets": [], "goaways": [], "most_open": 0, "faults": [],
        }

    def add(self, key, value=1):
        with self.lock:
            if isinstance(value, int):
                self.values[key] += value
            else:
                self.values[key] += [value]

    def raise_to(self, key, value):
        with self.lock:
            self.values[key] = max(self.values[key], value)


class Stream:
    """TLS over a socket, for one thread that reads and one that writes, which Python's own sockets do not allow."""

    def __init__(self, plain, context):
        self.plain = plain
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_side=True)
        self.state, self.writing = threading.Lock(), threading.Lock()
        while True:
            try:
                self.tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self.sendall(b"")
                self.fetch()
        self.sendall(b"")

    def sendall(self, data):
        with self.writing:
            with self.state:
                if data:
                    self.tls.write(data)
                sealed = self.outgoing.read()
            self.plain.sendall(sealed)

    def recv(self, count):
        while True:
            with self.state:
                try:
                    return self.tls.read(count)
                except ssl.SSLWantReadError:
                    pass
            self.fetch()

    def fetch(self):
        data = self.plain.recv(65536)
        if not data:
            raise Closed
        with self.state:
            self.incoming.write(data)


class Peer:
    """The server's end of one connection."""

    def __init__(self, stream, number, report):
        self.stream = stream
        self.number = number
        self.context = ""
        self.report = report
        self.encoder = Encoder()
        self.decoder = Decoder()
        self.acknowledges = True
        self.replenishes = True
        self.requests = []  # (stream, header fields, body), complete and not asked for yet
        self.partial = {}
        self.open = set()
        self.resets = []
        # Limits the client has acknowledged, and those it may not have seen yet: the highest of them counts.
        self.limit = 1
        self.unacknowledged = []
        self.windows = {0: 65535}
        self.initial_window = 65535
        self.pongs = 0
        self.syncs = 0

    # Writing

    def raw(self, data):
        try:
            self.stream.sendall(data)
        except OSError as error:
            raise Closed from error

    def send(self, *frames):
        self.raw(b"".join(frame.serialize() for frame in frames))

    def begin(self, settings=None):
        if self.read(len(PREFACE)) != PREFACE:
            raise ValueError("preface")
        self.settings(settings if settings is not None else {STREAMS: 100})

    def settings(self, values):
        first = not self.unacknowledged and self.limit == 1
        self.unacknowledged.append(values.get(STREAMS, UNLIMITED if first else None))
        self.send(SettingsFrame(0, values))

    def headers(self, stream, fields, end=False):
        flags = ["END_HEADERS"] + (["END_STREAM"] if end else [])
        return HeadersFrame(stream, self.encoder.encode(fields), flags=flags)

    def answer(self, stream, status=200, fields=(), body=b""):
        self.open.discard(stream)
        frames = [self.headers(stream, [(":status", str(status)), *fields], end=not body)]
        if body:
            frames.append(DataFrame(stream, body, flags=["END_STREAM"]))
        self.send(*frames)

    def reset(self, stream, code):
        self.open.discard(stream)
        self.send(RstStreamFrame(stream, error_code=code))

    def goaway(self, last, code=NO_ERROR, debug=b""):
        self.send(GoAwayFrame(0, last_stream_id=last, error_code=code, additional_data=debug))

    def body(self, stream, data, piece=16384):
        """Sends data as the client's windows allow, and waits for them; stops when the client resets the stream."""
        while data and stream not in self.resets:
            room = min(self.windows[0], self.windows.setdefault(stream, 65535), piece, len(data))
            if room <= 0:
                self.frame()
                continue
            self.windows[0] -= room
            self.windows[stream] -= room
            self.send(DataFrame(stream, data[:room]))
            data = data[room:]

    # Reading

    def read(self, count):
        data = b""
        while len(data) < count:
            try:
                piece = self.stream.recv(count - len(data))
            except OSError as error:
                raise Closed from error
            if not piece:
                raise Closed
            data += piece
        return data

    def frame(self):
        """Reads a frame and does what every peer does with it."""
        head = self.read(9)
        frame, length = Frame.parse_frame_header(memoryview(head))
        frame.parse_body(memoryview(self.read(length)))
        if isinstance(frame, SettingsFrame):
            self.settings_came(frame)
        elif isinstance(frame, PingFrame):
            if "ACK" in frame.flags:
                self.pongs += 1
            elif self.acknowledges:
                self.send(PingFrame(0, frame.opaque_data, flags=["ACK"]))
        elif isinstance(frame, WindowUpdateFrame):
            self.windows[frame.stream_id] = self.windows.get(frame.stream_id, 65535) + frame.window_increment
        elif isinstance(frame, HeadersFrame):
            self.headers_came(frame)
        elif isinstance(frame, DataFrame):
            self.data_came(frame)
        elif isinstance(frame, RstStreamFrame):
            self.open.discard(frame.stream_id)
            self.resets.append(frame.stream_id)
            self.report.add("resets", [frame.stream_id, frame.error_code])
        elif isinstance(frame, GoAwayFrame):
            self.report.add("goaways", f"{frame.error_code}")
        return frame

    def settings_came(self, frame):
        if "ACK" in frame.flags:
            limit = self.unacknowledged.pop(0)
            self.limit = self.limit if limit is None else limit
        elif self.acknowledges:
            self.send(SettingsFrame(0, flags=["ACK"]))

    def headers_came(self, frame):
        self.open.add(frame.stream_id)
        self.report.raise_to("most_open", len(self.open))
        allowed = max([self.limit] + [limit for limit in self.unacknowledged if limit is not None])
        if len(self.open) > allowed:
            self.expect(False, f"{len(self.open)} streams where {allowed} are allowed")
        fields = dict(self.decoder.decode(frame.data))
        self.partial[frame.stream_id] = (fields, b"")
        if "END_STREAM" in frame.flags:
            self.complete(frame.stream_id)

    def data_came(self, frame):
        if frame.stream_id not in self.partial:
            return
        fields, body = self.partial[frame.stream_id]
        self.partial[frame.stream_id] = (fields, body + frame.data)
        if self.replenishes and frame.data:
            self.send(WindowUpdateFrame(0, window_increment=len(frame.data)))
        if "END_STREAM" in frame.flags:
            self.complete(frame.stream_id)

    def complete(self, stream):
        fields, body = self.partial.pop(stream)
        self.requests.append((stream, fields, body))
        self.report.add("requests")

    def request(self):
        """Waits for a whole request, and names its stream."""
        while not self.requests:
            self.frame()
        return self.requests.pop(0)[0]

    def synchronize(self):
        """Waits until the client has done all that what it was sent before can lead to.

        Twice, because an answer to a PING goes out before the requests of its turn."""
        for _ in range(2):
            self.syncs += 1
            self.send(PingFrame(0, b"sync    "))
            while self.pongs < self.syncs:
                self.frame()

    def expect(self, holds, what):
        if not holds:
            self.report.add("faults", f"connection {self.number}: {what}{self.context}")

    def serve(self):
        """Answers whatever comes, until the client closes."""
        while True:
            self.answer(self.request())

    def drain(self):
        """Reads until the client closes."""
        while True:
            self.frame()
