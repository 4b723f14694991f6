import Glibc
import Testing

@testable import Telemetry

@Suite struct LogWriterTests {
    private func log(_ level: LogLevel, to descriptor: Int32) -> LogWriter {
        LogWriter(level: level, format: .logfmt, descriptor: descriptor) { WallTime(seconds: 0, milliseconds: 0) }
    }

    @Test func eventsBelowTheLevelAreNotEvenMade() {
        let pipe = Pipe()
        let log = log(.warning, to: pipe.writing)
        var made = 0
        func fields() -> LogFields {
            made += 1
            return [.count: .int(made)]
        }
        log.debug("a", fields())
        log.info("b", fields())
        log.notice("c", fields())
        log.warning("d", fields())
        log.error("e", fields())
        #expect(
            pipe.drain() == """
                ts=1970-01-01T00:00:00.000Z level=warning msg=d count=1
                ts=1970-01-01T00:00:00.000Z level=error msg=e count=2

                """)
    }

    @Test func aReaderThatDoesNotReadCostsLinesAndTheLossIsSaid() {
        let pipe = Pipe()
        let log = log(.info, to: pipe.writing)
        // Twice what a pipe holds when it is made (64 KiB).
        let lines = 3000
        for _ in 0..<lines { log.info("filling the pipe up") }

        let kept = pipe.drain().split(separator: "\n")
        #expect(kept.count < lines)
        #expect(kept.allSatisfy { $0.hasSuffix(#"msg="filling the pipe up""#) })

        log.info("again")
        let said = pipe.drain().split(separator: "\n")
        #expect(said.count == 2)
        #expect(said.first?.hasSuffix(#"level=warning msg="log lines dropped" dropped=\#(lines - kept.count)"#) == true)
        #expect(said.last?.hasSuffix("level=info msg=again") == true)
    }

    @Test func aReaderThatIsGoneHurtsNobody() {
        // Only a write to a socket can be told not to raise SIGPIPE; programs ignore the signal for the rest.
        var ends: [Int32] = [0, 0]
        #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        let log = log(.info, to: ends[0])
        close(ends[1])
        log.info("nobody listens")
        close(ends[0])
    }

    @Test func aSocketThatIsFullCostsLines() {
        var ends: [Int32] = [0, 0]
        #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        defer { for end in ends { close(end) } }
        let log = log(.info, to: ends[0])
        for _ in 0..<20_000 { log.info("filling the socket up") }
        let reader = Pipe(reading: ends[1])
        let kept = reader.drain().split(separator: "\n")
        #expect(kept.count < 20_000)
        log.info("again")
        let said = reader.drain()
        #expect(said.contains("dropped=\(20_000 - kept.count)\n"))
        #expect(said.hasSuffix("msg=again\n"))
    }

    @Test func theJournalIsKnownByDeviceAndInode() {
        let pipe = Pipe()
        var file = stat()
        fstat(pipe.writing, &file)
        let variable = "\(file.st_dev):\(file.st_ino)"
        #expect(JournalStream.isConnected(pipe.writing, variable: variable))
        #expect(!JournalStream.isConnected(pipe.writing, variable: "\(file.st_dev):\(file.st_ino + 1)"))
        for other in [nil, "", "8", "8:x", "1:2:3"] {
            #expect(!JournalStream.isConnected(pipe.writing, variable: other))
        }
    }
}

/// A pipe whose reading end never blocks.
final class Pipe {
    let reading: Int32
    let writing: Int32

    init() {
        var ends: [Int32] = [0, 0]
        precondition(pipe(&ends) == 0)
        reading = ends[0]
        writing = ends[1]
    }

    /// Reads from a descriptor that somebody else closes.
    init(reading descriptor: Int32) {
        reading = dup(descriptor)
        writing = -1
    }

    deinit {
        close(reading)
        if writing >= 0 { close(writing) }
    }

    /// What waits in the pipe.
    func drain() -> String {
        var bytes: [UInt8] = []
        var poll = pollfd(fd: reading, events: Int16(POLLIN), revents: 0)
        while Glibc.poll(&poll, 1, 0) > 0 {
            let chunk = [UInt8](unsafeUninitializedCapacity: 65_536) { buffer, count in
                count = max(0, read(reading, buffer.baseAddress, buffer.count))
            }
            if chunk.isEmpty { break }
            bytes += chunk
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
