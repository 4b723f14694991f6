import EventLoop

/// Providers live on a loop's thread, as their lanes do.
@globalActor actor ProviderLoop {
    static let shared = ProviderLoop()
    static let loop = EventLoop.startThread(name: "providers")

    nonisolated var unownedExecutor: UnownedSerialExecutor { Self.loop.asUnownedSerialExecutor() }
}
