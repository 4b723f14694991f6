import EventLoop
import Glibc
import Testing

/// Watched descriptors, signals and names.
@Suite(.timeLimit(.minutes(1)))
struct DescriptorTests {
    @Test
    func `A readable descriptor is reported until it is read, and not after it is unwatched`() async {
        await withLoop { actor in
            let pipe = Pipe()
            let record = Record<UInt8>()
            await actor.wait { (loop, continuation: CheckedContinuation<Void, Never>) in
                let handler = Handler { ready in
                    #expect(ready == .readable)
                    guard let byte = pipe.read() else { return }
                    record.append(byte)
                    if byte == 2 {
                        loop.unwatch(pipe.reader)
                        pipe.write(3)
                        loop.arm(at: .now + .milliseconds(5)) { continuation.resume() }
                    }
                }
                loop.watch(pipe.reader, for: .readable, handler: handler)
                pipe.write(1)
                pipe.write(2)
            }
            #expect(record.all == [1, 2])
            pipe.close()
        }
    }

    @Test
    func `An event fetched before its descriptor was unwatched reaches nobody`() async {
        await withLoop { actor in
            let pipes = [Pipe(), Pipe()]
            let record = Record<Int>()
            await actor.wait { (loop, continuation: CheckedContinuation<Void, Never>) in
                for (index, pipe) in pipes.enumerated() {
                    let handler = Handler { _ in
                        record.append(index)
                        // Both are ready in one fetch; the first to be told silences both, and the number comes back.
                        for pipe in pipes { loop.unwatch(pipe.reader) }
                        loop.watch(
                            pipes[1 - index].reader, for: .readable,
                            handler: Handler { _ in
                                loop.unwatch(pipes[1 - index].reader)
                                record.append(9)
                                continuation.resume()
                            })
                    }
                    loop.watch(pipe.reader, for: .readable, handler: handler)
                    pipe.write()
                }
            }
            #expect(record.all.count == 2)
            #expect(record.all.last == 9)
            for pipe in pipes { pipe.close() }
        }
    }

    @Test
    func `A descriptor that was closed while watched can be watched again under its number`() async {
        await withLoop { actor in
            await actor.wait { (loop, continuation: CheckedContinuation<Void, Never>) in
                let first = Pipe()
                loop.watch(first.reader, for: .readable, handler: Handler { _ in })
                let second = Pipe()
                // dup2 closes the watched descriptor and gives its number to another pipe.
                dup2(second.reader, first.reader)
                loop.watch(
                    first.reader, for: .readable,
                    handler: Handler { _ in
                        loop.unwatch(first.reader)
                        first.close()
                        second.close()
                        continuation.resume()
                    })
                second.write()
            }
        }
    }

    @Test
    func `Interest can change to writing and back`() async {
        await withLoop { actor in
            let pipe = Pipe()
            let ready: Interest = await actor.wait { loop, continuation in
                let handler = Handler { ready in
                    loop.unwatch(pipe.writer)
                    continuation.resume(returning: ready)
                }
                loop.watch(pipe.writer, for: .readable, handler: handler)
                loop.watch(pipe.writer, for: [.readable, .writable], handler: handler)
            }
            #expect(ready == .writable)
            pipe.close()
        }
    }

    @Test
    func `A hang-up is reported as what the descriptor is watched for`() async {
        await withLoop { actor in
            let pipe = Pipe()
            let ready: Interest = await actor.wait { loop, continuation in
                let handler = Handler { ready in
                    loop.unwatch(pipe.reader)
                    continuation.resume(returning: ready)
                }
                loop.watch(pipe.reader, for: .readable, handler: handler)
                close(pipe.writer)
            }
            #expect(ready == .readable)
            close(pipe.reader)
        }
    }

    @Test
    func `A signal to the process becomes a call on the loop until it is cancelled`() async {
        await withLoop { actor in
            let count: Int = await actor.wait { loop, continuation in
                var source: SignalSource?
                source = SignalSource(SIGUSR1, on: loop) { count in
                    source?.cancel()
                    source = nil
                    continuation.resume(returning: count)
                }
                kill(getpid(), SIGUSR1)
            }
            #expect(count == 1)
        }
    }

    @Test
    func `A local name resolves, with its port`() async throws {
        try await withLoop { actor in
            let addresses = try await Resolver.addresses(of: "localhost", port: 5432, on: actor.loop)
            #expect(addresses.contains { $0.description == "127.0.0.1:5432" || $0.description == "[::1]:5432" })
            let numeric = try await Resolver.addresses(of: "192.0.2.1", port: 443, on: actor.loop)
            #expect(numeric.map(\.description) == ["192.0.2.1:443"])
            #expect(numeric[0].family == AF_INET)
            #expect(numeric[0].bytes.count == MemoryLayout<sockaddr_in>.size)
        }
    }

    @Test(arguments: ["no such host", "a..b", "::1::"])
    func `A name that cannot be is an error that names it`(host: String) async {
        await withLoop { actor in
            let error = await #expect(throws: ResolverError.self) {
                try await Resolver.addresses(of: host, port: 1, on: actor.loop)
            }
            #expect(error?.host == host)
            #expect(error?.reason.isEmpty == false)
        }
    }
}
