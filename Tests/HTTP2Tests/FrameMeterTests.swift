import Testing

@testable import HTTP2

/// How many frames are borne. Worked values of the account, whatever the pieces in which the bytes come.
@Suite struct FrameMeterTests {
    private static func frame(_ payload: Int) -> [UInt8] {
        [UInt8(payload >> 16), UInt8(payload >> 8 & 255), UInt8(payload & 255), 6, 0, 0, 0, 0, 0]
            + [UInt8](repeating: 0xEE, count: payload)
    }

    /// How many of `frames` are taken, in pieces of `size` bytes.
    private static func taken(_ meter: inout FrameMeter, _ frames: [UInt8], size: Int, at now: ContinuousClock.Instant)
        -> Bool
    {
        frames.withUnsafeBufferPointer { bytes in
            guard let start = bytes.baseAddress else { return true }
            var offset = 0
            while offset < bytes.count {
                let count = min(size, bytes.count - offset)
                guard meter.take(start + offset, count: count, at: now) else { return false }
                offset += count
            }
            return true
        }
    }

    @Test(arguments: [1, 8, 9, 10, 17, 4096, 1 << 20])
    func framesAreCountedInWhateverPiecesTheyCome(size: Int) {
        let now = ContinuousClock.now
        var meter = FrameMeter(at: now)
        let four = [0, 8, 300, 3].flatMap(Self.frame)
        for _ in 1..<FrameMeter.burst / 4 { #expect(Self.taken(&meter, four, size: size, at: now)) }
        // A length of three bytes is one of them too.
        let last = [0, 8, 70_000, 3].flatMap(Self.frame)
        #expect(Self.taken(&meter, last, size: size, at: now))
        #expect(!Self.taken(&meter, Self.frame(0), size: size, at: now), "one more than the burst")
    }

    @Test func requestsAndTimeFillTheAccountUpToItsBurst() {
        let start = ContinuousClock.now
        var meter = FrameMeter(at: start)
        let full = [UInt8](repeating: 0, count: 9 * FrameMeter.burst)
        for _ in 0..<100 { meter.requestSent() }
        #expect(Self.taken(&meter, full, size: 4096, at: start), "requests before do not add to the burst")
        meter.requestSent()
        #expect(Self.taken(&meter, [UInt8](repeating: 0, count: 9 * FrameMeter.perRequest), size: 4096, at: start))
        let second = start + .seconds(1)
        #expect(Self.taken(&meter, [UInt8](repeating: 0, count: 9 * FrameMeter.perSecond), size: 9, at: second))
        #expect(!Self.taken(&meter, [UInt8](repeating: 0, count: 9), size: 9, at: second))
        let later = second + .seconds(3600)
        #expect(!Self.taken(&meter, full + full, size: 1 << 20, at: later), "an idle hour does not either")
    }
}
