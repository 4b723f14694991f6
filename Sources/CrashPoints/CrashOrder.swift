#if CRASH_POINTS
    import Glibc
    import Synchronization

    /// What a test wants to happen, from the environment: `TEST_CRASH_AT=claim-sent:3:KILL` raises SIGKILL in this
    /// process at its third arrival at that step. Several orders are separated by commas; each is carried out once.
    package struct CrashOrder: Sendable {
        /// The name in the environment.
        package static let variable = "TEST_CRASH_AT"

        /// Where it happens.
        package let point: CrashPoint
        /// SIGKILL, SIGSTOP or SIGTERM.
        package let signal: Int32
        /// Arrivals until it happens; 0 when it has.
        private var arrivalsLeft: Int

        /// Nil for what is no order.
        package init?(_ text: some StringProtocol) {
            let parts = text.split(separator: ":", omittingEmptySubsequences: false)
            guard parts.count == 3, let point = CrashPoint(rawValue: String(parts[0])),
                let arrivals = Int(parts[1]), arrivals > 0, let signal = Self.signals[String(parts[2])]
            else { return nil }
            self.point = point
            self.signal = signal
            arrivalsLeft = arrivals
        }

        /// All orders of a text; a text that is not made of orders ends the process, for a test that asks for nothing
        /// would go unnoticed.
        package static func read(_ text: String) -> [CrashOrder] {
            text.split(separator: ",").map { part in
                guard let order = CrashOrder(part) else { preconditionFailure("\(variable): no such order: \(part)") }
                return order
            }
        }

        private static let signals = ["KILL": SIGKILL, "STOP": SIGSTOP, "TERM": SIGTERM]

        /// Whether it happens now, at one more arrival at `point`.
        package mutating func isDue(at point: CrashPoint) -> Bool {
            guard point == self.point, arrivalsLeft > 0 else { return false }
            arrivalsLeft -= 1
            return arrivalsLeft == 0
        }
    }

    extension CrashPoint {
        private static let orders = Mutex(
            getenv(CrashOrder.variable).map { CrashOrder.read(String(cString: $0)) } ?? [])

        /// The worker is at this step.
        package func reached() {
            let due = Self.orders.withLock { orders in
                orders.indices.filter { orders[$0].isDue(at: self) }.map { orders[$0] }
            }
            for order in due { carryOut(order) }
        }

        /// What stands for a statement: a step may be before it, when it was carried out, or when its answer was read.
        package enum Moment: String {
            case unsent, sent, answered
        }

        /// The worker is at this moment of the statement `name`; most statements have no step.
        package static func reached(_ moment: Moment, of name: String) {
            guard let step = steps[name] else { return }
            CrashPoint(rawValue: "\(step)-\(moment.rawValue)")?.reached()
        }

        private static let steps = [
            "claim": "claim", "claim_suspect": "claim", "recheck": "recheck", "settle": "settle",
            "device_effects": "effects", "renew": "renew", "recover": "recover", "adopt": "adopt",
            "register_worker": "heartbeat",
        ]

        private func carryOut(_ order: CrashOrder) {
            // What was sent a moment ago shall have been carried out: its answer waits in the socket.
            if rawValue.hasSuffix("-sent") { usleep(Self.timeToCommit) }
            let line = "crash point \(rawValue): signal \(order.signal)\n"
            _ = write(STDERR_FILENO, line, line.utf8.count)
            // The calling thread alone for what must happen exactly here; the process as an operator would.
            if order.signal == SIGTERM { kill(getpid(), SIGTERM) } else { raise(order.signal) }
        }

        /// Microseconds within which a private server has committed a statement.
        private static let timeToCommit: UInt32 = 50_000
    }
#endif
