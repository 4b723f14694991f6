"""Scenarios that a client comes through. What they leave unsaid after they return is `serve`."""

import random
import struct
import threading

from hyperframe.frame import DataFrame, PingFrame, WindowUpdateFrame

from raw_peer import (
    FRAME_SIZE, PROTOCOL_ERROR, REFUSED_STREAM, STREAM_CLOSED, STREAMS, TABLE_SIZE, UNLIMITED, WINDOW,
)

FOREVER = threading.Event()


def goaway_twice(peer):
    peer.begin()
    if peer.number > 1:
        return
    streams = [peer.request() for _ in range(4)]
    peer.goaway(2**31 - 1, debug=b'{"reason":"Shutdown"}')
    peer.goaway(streams[1], debug=b"Maximum active streams violated for this endpoint.\r\n\x00\xff")
    for stream in streams[:2]:
        peer.answer(stream)
    peer.drain()


def refused_then_closed(peer):
    peer.begin()
    stream = peer.request()
    peer.reset(stream, REFUSED_STREAM)
    peer.reset(stream, STREAM_CLOSED)


def reset_after_accept(peer):
    peer.begin()
    peer.reset(peer.request(), PROTOCOL_ERROR)


def limits(peer):
    """1, 1000, 1, 0, 1: twenty requests fill the 1000, ten more come while the limit is 1 again."""
    peer.begin({STREAMS: 1})
    for _ in range(3):
        stream = peer.request()
        peer.synchronize()
        peer.expect(len(peer.open) == 1, f"{len(peer.open)} streams at a limit of 1")
        peer.answer(stream)
    while len(peer.open) < 1:
        peer.frame()
    peer.settings({STREAMS: 1000})
    streams = [peer.request() for _ in range(17)]
    peer.settings({STREAMS: 1})
    peer.synchronize()
    for stream in streams[:-1]:
        peer.answer(stream)
        peer.synchronize()
        peer.expect(not peer.requests, "a new stream while older ones are more than the limit")
    last = streams[-1]
    for _ in range(3):
        peer.answer(last)
        last = peer.request()
        peer.synchronize()
        peer.expect(len(peer.open) == 1, f"{len(peer.open)} streams at a limit of 1")
    peer.settings({STREAMS: 0})
    peer.synchronize()
    peer.answer(last)
    peer.synchronize()
    peer.expect(not peer.open, "a stream at a limit of 0")
    peer.settings({STREAMS: 1})


def random_limits(peer):
    """Limits from 0 to 12 in any order, also several at once, between answers in any order."""
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    peer.context = f" (seed {seed})"
    peer.begin({STREAMS: chance.randrange(1, 13)})
    for _ in range(400):
        if peer.open and not peer.requests:
            peer.synchronize()
        if chance.randrange(3) == 0 or not peer.requests:
            for _ in range(chance.randrange(1, 4)):
                peer.settings({STREAMS: chance.randrange(13)})
        for _ in range(chance.randrange(4)):
            if peer.requests:
                stream, _, _ = peer.requests.pop(chance.randrange(len(peer.requests)))
                peer.answer(stream) if chance.randrange(5) else peer.reset(stream, PROTOCOL_ERROR)
        peer.synchronize()
    peer.settings({STREAMS: 12})


def mute(peer):
    """The first two connections answer nothing."""
    peer.begin()
    if peer.number <= 2:
        peer.drain()


def deaf(peer):
    """The first two connections are not read any more, but go on showing signs of life."""
    peer.begin({STREAMS: 1000, WINDOW: 1 << 20})
    if peer.number <= 2:
        peer.send(WindowUpdateFrame(0, window_increment=1 << 30))
        while not FOREVER.wait(0.05):
            peer.send(WindowUpdateFrame(0, window_increment=1))
    peer.replenishes = True


def silence(peer):
    """Some streams are never answered."""
    peer.begin()
    while True:
        stream, fields, _ = peer.requests.pop(0) if peer.requests else (None, None, None)
        if stream is None:
            peer.frame()
        elif not fields["apns-id"].endswith("3"):
            peer.answer(stream)


def always_500(peer):
    peer.begin()
    while peer.number <= 3:
        peer.answer(peer.request(), 500)


def half_open(peer):
    """Neither reads nor writes any more; the connection stays."""
    peer.begin()
    if peer.number == 1:
        peer.request()
        FOREVER.wait()


def headers_twice(peer):
    peer.begin()
    stream = peer.request()
    peer.open.discard(stream)
    peer.send(peer.headers(stream, [(":status", "200")]), peer.headers(stream, [(":status", "200")], end=True))


def trailers_without_end(peer):
    peer.begin()
    stream = peer.request()
    peer.open.discard(stream)
    peer.send(peer.headers(stream, [(":status", "200")]), peer.headers(stream, [("grpc-status", "0")]))


def trailers_with_a_status(peer):
    peer.begin()
    stream = peer.request()
    peer.open.discard(stream)
    peer.send(
        peer.headers(stream, [(":status", "200")]), DataFrame(stream, b"x"),
        peer.headers(stream, [(":status", "500")], end=True))


def upper_case_header(peer):
    peer.begin()
    stream = peer.request()
    peer.open.discard(stream)
    peer.send(peer.headers(stream, [(":status", "200"), ("Apns-Id", "x")], end=True))


def connection_header(peer):
    peer.begin()
    stream = peer.request()
    peer.open.discard(stream)
    peer.send(peer.headers(stream, [(":status", "200"), ("transfer-encoding", "chunked")], end=True))


def interim_and_trailers(peer):
    peer.begin()
    stream = peer.request()
    peer.open.discard(stream)
    peer.send(
        peer.headers(stream, [(":status", "100"), ("apns-id", "interim")]),
        peer.headers(stream, [(":status", "103"), ("link", "</x>")]),
        peer.headers(stream, [(":status", "410"), ("apns-id", "real")]),
        DataFrame(stream, b'{"rea', pad_length=200, flags=["PADDED"]), DataFrame(stream, b""),
        DataFrame(stream, b'son":"Unregistered"}'), peer.headers(stream, [("apns-id", "trailer")], end=True))


def unknown_frames(peer):
    peer.begin({STREAMS: 100, 0x99: 7, 0xFFFF: 2**32 - 1})
    stream = peer.request()
    for kind in (0x0A, 0x0B, 0x0C, 0x10, 0x42, 0xEE, 0xFF):
        for target in (0, stream, stream + 100):
            # The reserved bit of the stream is set: it has no meaning (RFC 9113 4.1).
            head = struct.pack(">I", 16384 << 8 | kind) + b"\xff" + struct.pack(">I", target | 1 << 31)
            peer.raw(head + b"x" * 16384)
    peer.answer(stream)


def data_on_closed_streams(peer):
    """More of it than the connection's window: who forgets to replenish it will starve."""
    peer.begin()
    stream = peer.request()
    peer.open.discard(stream)
    peer.send(peer.headers(stream, [(":status", "200")], end=True))
    peer.windows[stream] = UNLIMITED
    peer.body(stream, b"x" * 200_000, piece=1000)
    peer.answer(peer.request())
    stream = peer.request()
    peer.reset(stream, REFUSED_STREAM)
    again = peer.request()
    peer.windows[stream] = UNLIMITED
    peer.body(stream, b"x" * 200_000)
    peer.open.discard(again)
    peer.send(peer.headers(again, [(":status", "200")]))
    peer.body(again, b"y" * 10_000)
    peer.send(DataFrame(again, b"", flags=["END_STREAM"]))


def large_bodies(peer):
    """Without a length, in pieces, each larger than both windows."""
    peer.begin()
    while True:
        stream = peer.request()
        peer.open.discard(stream)
        peer.send(peer.headers(stream, [(":status", "503"), ("content-type", "text/html")]))
        peer.body(stream, b"<html>" * 50_000, piece=7000)
        peer.send(DataFrame(stream, b"", flags=["END_STREAM"]))


def endless_body(peer):
    """The first body has no end until the client does not want it any more."""
    peer.begin()
    stream = peer.request()
    peer.send(peer.headers(stream, [(":status", "200")]))
    while stream not in peer.resets:
        peer.body(stream, b"x" * 65536)
        peer.synchronize()


def empty_error_bodies(peer):
    peer.begin()
    for number in range(3):
        stream = peer.request()
        peer.open.discard(stream)
        fields = [(":status", "503")] + ([("content-length", "0")] if number == 1 else [])
        if number == 2:
            peer.send(peer.headers(stream, fields, end=True))
        else:
            peer.send(peer.headers(stream, fields), DataFrame(stream, b"", flags=["END_STREAM"]))


def window_exhaustion(peer):
    """No stream may send a byte of its body, until the window grows by one byte after the other."""
    peer.replenishes = False
    peer.begin({STREAMS: 100, WINDOW: 0})
    while len(peer.open) < 3:
        peer.frame()
    peer.synchronize()
    peer.expect(not peer.requests, "a body without a window")
    streams = sorted(peer.open)
    while len(peer.requests) < 3:
        for stream in streams:
            if stream in peer.partial:
                peer.send(WindowUpdateFrame(stream, window_increment=1))
        peer.synchronize()
    peer.settings({WINDOW: 65535})
    peer.replenishes = True
    for _ in range(3):
        peer.answer(peer.request())


def changing_settings(peer):
    """Everything that can change, with requests open."""
    peer.begin({STREAMS: 100, TABLE_SIZE: 0, WINDOW: 10, FRAME_SIZE: 2**24 - 1})
    while not peer.open:
        peer.frame()
    for size in (0, 4096, 65536, 0, 4096):
        peer.settings({TABLE_SIZE: size, FRAME_SIZE: 16384 + size, WINDOW: 10})
        peer.synchronize()
    peer.settings({WINDOW: 2**31 - 1})
    peer.answer(peer.request())


def ping_in_place_of_settings(peer):
    if peer.number == 1:
        peer.send(PingFrame(0, b"too soon"))
        peer.drain()
    peer.begin()


def http_1_in_place_of_settings(peer):
    if peer.number == 1:
        peer.raw(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
        peer.drain()
    peer.begin()


SCENARIOS = {
    act.__name__: act
    for act in (
        goaway_twice, refused_then_closed, reset_after_accept, limits, random_limits, mute, deaf, silence, always_500,
        half_open, headers_twice, trailers_without_end, trailers_with_a_status, upper_case_header, connection_header,
        interim_and_trailers, unknown_frames, data_on_closed_streams, large_bodies, endless_body, empty_error_bodies,
        window_exhaustion, changing_settings, ping_in_place_of_settings, http_1_in_place_of_settings)
}
