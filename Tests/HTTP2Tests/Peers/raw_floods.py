"""Scenarios that no connection survives, played on the first one: broken frames, and floods of allowed ones."""

import struct
import threading

from hyperframe.frame import (
    ContinuationFrame, DataFrame, GoAwayFrame, HeadersFrame, PingFrame, PriorityFrame, RstStreamFrame, SettingsFrame,
    WindowUpdateFrame,
)

from raw_peer import STREAMS, Closed


def fatal(act):
    """On the first connection, `act` with a stream that has a request; a client has to end the connection for it."""

    def scenario(peer):
        peer.begin()
        if peer.number == 1:
            stream = peer.request()
            reader = threading.Thread(target=swallow, args=(peer,), daemon=True)
            reader.start()
            act(peer, stream)
            reader.join()
            raise Closed

    return scenario


def swallow(peer):
    """Takes what the client sends, as another thread, so that neither side waits for the other."""
    try:
        while True:
            peer.read(1)
    except Closed:
        pass


def continuation_flood(field):
    """HEADERS that never end; each CONTINUATION brings `field`, and all of them less than a header list may have."""

    def act(peer, stream):
        peer.send(HeadersFrame(stream, peer.encoder.encode([(":status", "200")])))
        for _ in range(200):
            peer.send(ContinuationFrame(stream, field))

    return act


def large_header_list(peer, stream):
    block = peer.encoder.encode([(":status", "200"), ("apns-id", "x" * 20_000)], huffman=False)
    peer.send(
        HeadersFrame(stream, block[:16384], flags=["END_STREAM"]), ContinuationFrame(stream, block[16384:],
        flags=["END_HEADERS"]))


def hpack_bomb(peer, stream):
    """One entry of the dynamic table, named over and over: 15 KB become 40 MB."""
    block = b"\x88" + peer.encoder.encode([("bomb", "x" * 3000)], huffman=False) + b"\xbe" * 12_000
    peer.send(HeadersFrame(stream, block, flags=["END_STREAM", "END_HEADERS"]))


def frames(peer, *series):
    """A flood: more frames than any client has to bear, far fewer than one can be sent in a second."""
    data = b"".join(frame.serialize() for frame in series) * 100
    for _ in range(400):
        peer.raw(data)


def ping_flood(peer, _):
    frames(peer, PingFrame(0, b"12345678"))


def settings_flood(peer, _):
    frames(peer, SettingsFrame(0, {STREAMS: 100}))


def empty_settings_flood(peer, _):
    frames(peer, SettingsFrame(0))


def wide_settings(peer, _):
    peer.raw(struct.pack(">I", 6 * 2000 << 8 | 4) + b"\0" + struct.pack(">I", 0) + struct.pack(">HI", 3, 100) * 2000)


def reset_flood(peer, stream):
    frames(peer, RstStreamFrame(stream, error_code=8))


def empty_data_flood(peer, stream):
    peer.send(peer.headers(stream, [(":status", "200")]))
    frames(peer, DataFrame(stream, b""))


def padded_data_flood(peer, stream):
    peer.send(peer.headers(stream, [(":status", "200")]))
    frames(peer, DataFrame(stream, b"", pad_length=0, flags=["PADDED"]))


def interim_flood(peer, stream):
    # 0x08 is an indexed name of the static table, ":status", with a literal value (RFC 7541 6.2.2).
    frames(peer, HeadersFrame(stream, b"\x08\x03100", flags=["END_HEADERS"]))


def window_flood(peer, _):
    frames(peer, WindowUpdateFrame(0, window_increment=1))


def priority_flood(peer, stream):
    frames(peer, PriorityFrame(stream, depends_on=0, stream_weight=1))


def unknown_flood(peer, _):
    peer.raw((struct.pack(">I", 0xEE) + b"\0" + struct.pack(">I", 0)) * 40_000)


def goaway_flood(peer, stream):
    frames(peer, GoAwayFrame(0, last_stream_id=stream, error_code=0))


def data_on_closed_flood(peer, stream):
    peer.send(peer.headers(stream, [(":status", "200")], end=True))
    frames(peer, DataFrame(stream, b""))


def garbage(peer, _):
    peer.raw(b"\xff" * 200)


def settings_on_a_stream(peer, stream):
    peer.raw(struct.pack(">I", 4) + b"\0" + struct.pack(">I", stream))


def data_on_stream_zero(peer, _):
    peer.raw(struct.pack(">I", 1 << 8) + b"\0" + struct.pack(">I", 0) + b"x")


def data_before_headers(peer, stream):
    peer.send(DataFrame(stream, b"x"))


def ping_of_seven_bytes(peer, _):
    peer.raw(struct.pack(">I", 7 << 8 | 6) + b"\0" + struct.pack(">I", 0) + b"1234567")


def huge_frame(peer, stream):
    peer.raw(struct.pack(">I", (1 << 24) - 1 << 8) + b"\0" + struct.pack(">I", stream) + b"x" * (1 << 20))


def window_of_zero(peer, _):
    peer.raw(struct.pack(">I", 4 << 8 | 8) + b"\0" + struct.pack(">II", 0, 0))


def frame_amid_headers(peer, stream):
    peer.send(HeadersFrame(stream, peer.encoder.encode([(":status", "200")])), PingFrame(0, b"12345678"))


def continuation_of_nothing(peer, stream):
    peer.send(ContinuationFrame(stream, b"", flags=["END_HEADERS"]))


SCENARIOS = {
    act.__name__: fatal(act)
    for act in (
        large_header_list, hpack_bomb, ping_flood, settings_flood, empty_settings_flood, wide_settings, reset_flood,
        empty_data_flood, padded_data_flood, interim_flood, window_flood, priority_flood, unknown_flood, goaway_flood,
        data_on_closed_flood, garbage, settings_on_a_stream, data_on_stream_zero, data_before_headers,
        ping_of_seven_bytes, huge_frame, window_of_zero, frame_amid_headers, continuation_of_nothing)
}
SCENARIOS["empty_continuation_flood"] = fatal(continuation_flood(b""))
# A literal without indexing, of one byte and an empty value (RFC 7541 6.2.2).
SCENARIOS["continuation_flood"] = fatal(continuation_flood(b"\x00\x01a\x00"))
