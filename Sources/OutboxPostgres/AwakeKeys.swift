import EventLoop
import OutboxCore

/// The awake keys that the claiming session holds: a new connection holds none.
actor AwakeKeys {
    private let loop: EventLoop
    private(set) var held: Set<RouteNumber> = []

    init(on loop: EventLoop) {
        self.loop = loop
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor {
        loop.asUnownedSerialExecutor()
    }

    func add(_ routes: [RouteNumber]) {
        held.formUnion(routes)
    }

    func forget() {
        held = []
    }
}
