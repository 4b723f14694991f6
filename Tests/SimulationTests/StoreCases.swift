import OutboxCore

@testable import Simulation

/// Cases that have a name: each was once a way to lose or double work.
enum StoreCases {
    private typealias Fate = StoreCommand.Fate

    static var all: [(name: String, commands: [StoreCommand])] {
        [
            ("a settle repeated after another worker claimed", repeatedSettle),
            ("a lost claim is adopted", lostClaim),
            ("recovery after a settle, and a settle after recovery", recoveryBesideSettle),
            ("effects on a device that was registered again", effectsOnNewToken),
            ("targets of different fate", differentFates),
            ("pages of targets", pages),
            ("a wait that ends behind the cursor of a second look", waitBehindTheCursor),
            ("a poison row is set aside alone", poison),
            ("unknown rows name whom the worker was told to send to", unknownTargets),
            ("a device joins what waits", joining),
            ("a device moves to another route while it waits", moving),
            ("a device moves to another route whose row is locked", movingPastALock),
            ("what is over is not sent", over),
            ("facts end what is claimed, what waits and what nobody claims", facts),
            ("hooks answer, fail and are taken away", hooks),
            ("what has ended is enqueued anew", enqueuedAnew),
            ("a recovery is carried out late", lateRecovery),
            ("the registry knows who is dead", deaths),
            ("what a wrong key stopped is made due", held),
        ]
    }

    private static func person(_ devices: Int) -> [StoreCommand] {
        (0..<devices).map {
            .register(client: "d\($0)", principal: "anna", tenant: 1, route: 1, token: $0)
        }
    }

    private static func note(
        _ key: String, life: Int = 60, subject: String? = nil, thread: String? = nil,
        kind: KindNumber = SimulatedStore.plainKind, to principal: String = "anna"
    ) -> StoreCommand {
        var draft = SimulatedStore.Draft(key: key, principal: principal)
        draft.life = .seconds(life * 60)
        (draft.subject, draft.thread, draft.kind) = (subject, thread, kind)
        draft.payload = #"{"word": "hello"}"#
        return .enqueue(draft)
    }

    private static func claim(
        _ worker: Int, rows: Int = 10, targets: Int = 10, minutes: Int = 5, _ crashClass: CrashClass = .clean,
        route: RouteNumber = 1
    ) -> StoreCommand {
        .claim(worker: worker, route: route, crashClass, rows: rows, targets: targets, minutes: minutes)
    }

    /// M1: the reply to a flush was lost, and what it sent back is claimed by somebody else when it is repeated.
    private static var repeatedSettle: [StoreCommand] {
        person(1) + [note("a"), note("b"), claim(0)] + [
            .settle(worker: 0, batch: 1, [Fate(key: "a", outcome: .retry, isFinal: false, wait: 0, back: 0)]),
            claim(1),
            .repeatSettle(worker: 0),
            .settle(worker: 1, batch: 2, [Fate(key: "a", outcome: .delivered)]),
            .repeatSettle(worker: 0),
            .repeatSettle(worker: 1),
            .settle(worker: 0, batch: 1, [Fate(key: "b", outcome: .delivered)]),
        ]
    }

    /// What a device waits for on one route is nothing to the other, where it has another token.
    private static var moving: [StoreCommand] {
        person(1) + [note("a"), claim(0)] + [
            .settle(worker: 0, batch: 1, [Fate(key: "a", outcome: .retry, isFinal: false, wait: 20, back: 20)]),
            .register(client: "d0", principal: "anna", tenant: 1, route: 2, token: 9),
            claim(1, route: 2),
            .settle(worker: 1, batch: 2, [Fate(key: "a", outcome: .delivered)]),
            .advance(minutes: 30),
            claim(0),
        ]
    }

    /// What it had there is known without the row, which nobody can mark.
    private static var movingPastALock: [StoreCommand] {
        person(2) + [
            .register(client: "d1", principal: "anna", tenant: 1, route: 2, token: 8), note("a"), claim(0),
            .settle(worker: 0, batch: 1, [Fate(key: "a", outcome: .delivered)]), .holdRows(key: "a"),
            .register(client: "d0", principal: "anna", tenant: 1, route: 2, token: 9), .letGo, note("b"),
            claim(1, route: 2), .settle(worker: 1, batch: 2, [Fate(key: "a", outcome: .delivered)]),
        ]
    }

    /// M9: the answer to a claim was lost, but the worker knows the name it gave the lease.
    private static var lostClaim: [StoreCommand] {
        person(1) + [note("a"), note("b"), claim(0)] + [
            .adopt(worker: 1, batches: [1]),
            .settle(worker: 0, batch: 1, [Fate(key: "a", outcome: .delivered)]),
            .adopt(worker: 0, batches: [1, 9]),
            .adopt(worker: 0, batches: [1]),
            claim(1),
        ]
    }

    /// M8: each order of a settle and a recovery.
    private static var recoveryBesideSettle: [StoreCommand] {
        person(2) + [note("a"), note("b"), claim(0, minutes: 1), .advance(minutes: 2)] + [
            .settle(worker: 0, batch: 1, [Fate(key: "a", outcome: .delivered, leaves: false)]),
            .recover(worker: 1, connected: 999, maxCrashes: 5),
            .settle(
                worker: 0, batch: 1,
                [Fate(key: "a", outcome: .delivered), Fate(key: "b", outcome: .retry, isFinal: false, back: 0)]),
            claim(1, .once),
            .recover(worker: 0, connected: -1, maxCrashes: 5),
            .renew(worker: 0, batches: [1, 2], minutes: 3),
            .renew(worker: 1, batches: [1, 2], minutes: 3),
        ]
    }

    /// M5: the token that was sent is no longer the one that is stored, or was registered again since.
    private static var effectsOnNewToken: [StoreCommand] {
        person(2) + [note("a"), claim(0)] + [
            .hold(device: 1),
            .effects(worker: 0, batch: 1, .tokenInvalid, age: 1, maxFailures: 0),
            .letGo,
            .register(client: "d0", principal: "anna", tenant: 1, route: 1, token: 7),
            .effects(worker: 0, batch: 1, .failed, age: 0, maxFailures: 2),
            .effects(worker: 0, batch: 1, .failed, age: 0, maxFailures: 2),
            .effects(worker: 0, batch: 1, .succeeded, age: 0, maxFailures: 0),
            note("b"), claim(1),
            .effects(worker: 1, batch: 2, .tokenInvalid, age: 1, maxFailures: 0),
            .effects(worker: 1, batch: 2, .succeeded, age: 0, maxFailures: 0),
            .effects(worker: 1, batch: 2, .tokenInvalid, age: 0, maxFailures: 0),
            .register(client: "d1", principal: "bert", tenant: 2, route: 1, token: 7),
        ]
    }

    /// S6: targets of one notification wait for different times, and those that are done are not sent to again.
    private static var differentFates: [StoreCommand] {
        person(3) + [note("a"), claim(0, targets: 2)] + [
            .settle(
                worker: 0, batch: 1, [Fate(key: "a", outcome: .retry, isFinal: false, wait: 4, back: 0, attempt: 1)]),
            claim(0, targets: 2),
            .settle(worker: 0, batch: 2, [Fate(key: "a", outcome: .delivered, back: 0, attempt: 0)]),
            claim(1),
            .settle(worker: 1, batch: 3, [Fate(key: "a", back: 4, attempt: 1)]),
            .advance(minutes: 5), claim(1), .waiting(worker: 1),
        ]
    }

    /// M2: pages spend no attempt, and the second look finds whoever is left, page by page.
    private static var pages: [StoreCommand] {
        func goesOn(_ batch: Int, _ cursor: PageCursor, _ outcome: OutcomeKind? = nil) -> StoreCommand {
            .settle(worker: 0, batch: batch, [Fate(key: "a", outcome: outcome, back: 0, attempt: 0, cursor: cursor)])
        }
        return person(5) + [note("a"), claim(0, targets: 2)] + [
            goesOn(1, PageCursor(behind: 2), .delivered), claim(0, targets: 2),
            goesOn(2, PageCursor(behind: 4), .delivered), .mute(device: 5, true), claim(0, targets: 2),
            goesOn(3, .startAgain), .mute(device: 5, false), claim(0, targets: 2),
            goesOn(4, PageCursor(behind: 2, isSecondLook: true)), claim(0, targets: 2),
            goesOn(5, PageCursor(behind: 4, isSecondLook: true)), claim(0, targets: 2),
            .settle(worker: 0, batch: 6, [Fate(key: "a", outcome: .delivered)]),
        ]
    }

    /// Whose wait is over when the second look is past it is found at its end.
    private static var waitBehindTheCursor: [StoreCommand] {
        func goesOn(_ batch: Int, _ cursor: PageCursor) -> StoreCommand {
            .settle(worker: 0, batch: batch, [Fate(key: "a", back: 0, attempt: 0, cursor: cursor)])
        }
        return person(3) + [note("a"), claim(0, targets: 2)] + [
            .settle(
                worker: 0, batch: 1,
                [Fate(key: "a", outcome: .retry, isFinal: false, wait: 3, back: 0, cursor: PageCursor(behind: 2))]),
            claim(0, targets: 2),
            .settle(
                worker: 0, batch: 2, [Fate(key: "a", outcome: .delivered, back: 0, attempt: 0, cursor: .startAgain)]),
            claim(0, targets: 2), goesOn(3, PageCursor(behind: 2, isSecondLook: true)), claim(0, targets: 2),
            goesOn(4, PageCursor(behind: 3, isSecondLook: true)), .advance(minutes: 4), claim(0, targets: 2),
            goesOn(5, .startAgain), claim(0, targets: 2),
            .settle(worker: 0, batch: 6, [Fate(key: "a", outcome: .delivered)]),
        ]
    }

    /// M11: rows that survived a crash are claimed apart, and only one that died alone is set aside.
    private static var poison: [StoreCommand] {
        person(1) + [note("a"), note("b"), claim(0, minutes: 1), .advance(minutes: 2)] + [
            .recover(worker: 1, connected: 999, maxCrashes: 3), claim(0), claim(0, minutes: 1, .once),
            .advance(minutes: 2), .recover(worker: 1, connected: 999, maxCrashes: 3), .waiting(worker: 1),
            claim(0, .suspect), claim(0, .suspect), claim(0, .suspect), claim(0, minutes: 1, .suspect),
            claim(0, .suspect), claim(0, .suspect), claim(0, .suspect), claim(0, minutes: 1, .suspect),
            .advance(minutes: 20), .recover(worker: 1, connected: 999, maxCrashes: 3), .waiting(worker: 1),
        ]
    }

    private static var unknownTargets: [StoreCommand] {
        person(2) + [note("a"), claim(0, minutes: 1), .revoke(device: 1)] + [
            .register(client: "d9", principal: "anna", tenant: 1, route: 1, token: 9), .advance(minutes: 2),
            .recover(worker: 1, connected: 999, maxCrashes: 5), claim(1, .once),
        ]
    }

    /// S3: a device that is registered joins what waits in the queue, on its own route.
    private static var joining: [StoreCommand] {
        [note("early")] + person(1) + [note("a"), note("b"), claim(0, rows: 1)] + [
            .register(client: "tablet", principal: "anna", tenant: 1, route: 2, token: 20),
            .register(client: "d0", principal: "anna", tenant: 1, route: 2, token: 21),
            claim(1, route: 2), .settle(worker: 1, batch: 2, [Fate(key: "b", outcome: .delivered)]),
            .resolve(worker: 0), .advance(minutes: 4), .resolve(worker: 0), .waiting(worker: 0),
        ]
    }

    private static var over: [StoreCommand] {
        person(1) + [
            note("a", subject: "s"), note("b"), note("c", life: 2), note("d", life: -1), note("e"),
            .supersede(tenant: 1, subject: "s"), note("f", subject: "s"), .cancel(key: "b"), .advance(minutes: 3),
            claim(0), .recheck(worker: 0, batch: 1), .cancel(key: "e"), .supersede(tenant: 1, subject: "s"),
            .recheck(worker: 0, batch: 1), .recheck(worker: 1, batch: 1),
            .settle(
                worker: 0, batch: 1,
                [
                    Fate(key: "a", end: .superseded, isWhole: true), Fate(key: "b"), Fate(key: "c", end: .expired),
                    Fate(key: "e", outcome: .skipped, end: .cancelled, isWhole: true),
                ]),
            .revoke(device: 1), .recheck(worker: 0, batch: 1), .resolve(worker: 1),
        ]
    }

    private static var facts: [StoreCommand] {
        let seen = SimulatedStore.seenKind
        return [
            note("waits", subject: "w", kind: seen, to: "bert"), note("lost", thread: "t", to: "bert"),
            note("moved", subject: "m", to: "bert"),
        ] + person(1) + [
            note("a", subject: "s", kind: seen), note("b", subject: "s"), note("c", thread: "t"),
            note("d", subject: "s", thread: "t", kind: seen), note("e", subject: "late", kind: seen),
            note("f", thread: "late"), note("g", subject: "none", thread: "none", kind: seen), claim(0, rows: 4),
            .see(tenant: 1, principal: "anna", subject: "unknown"), .see(tenant: 1, principal: "anna", subject: "s"),
            .see(tenant: 1, principal: "anna", subject: "s"), .see(tenant: 2, principal: "anna", subject: "s"),
            .erase(tenant: 1, thread: "t"), .recheck(worker: 0, batch: 1), claim(1),
            .see(tenant: 1, principal: "anna", subject: "late"), .erase(tenant: 1, thread: "late"),
            .erase(tenant: 2, thread: "none"), .recheck(worker: 1, batch: 2), .adopt(worker: 1, batches: [2]),
            .adopt(worker: 0, batches: [1]), claim(0), note("h", subject: "s", thread: "t", kind: seen), claim(1),
            .adopt(worker: 0, batches: [3]), .see(tenant: 1, principal: "bert", subject: "w"),
            .supersede(tenant: 1, subject: "m"), .advance(minutes: 4), .resolve(worker: 0), .resolve(worker: 1),
        ]
    }

    /// Nothing is let through by a hook that fails, and what was not asked about is not believed.
    private static var hooks: [StoreCommand] {
        let hooked = SimulatedStore.hookedKind
        let people: [StoreCommand] = ["anna", "bert"].enumerated().map { place, name in
            .register(client: "d", principal: name, tenant: 1, route: 1, token: place)
        }
        let asks = StoreCommand.askHooks(worker: 0, batch: 1)
        return people + [
            note("a", subject: "s", kind: hooked), note("b", subject: "t", kind: hooked), note("c", subject: "s"),
            note("d", subject: "s", kind: hooked, to: "bert"), note("e", kind: hooked), claim(0), asks,
            .setHook(.stale, true), asks, .app(over: "s"), asks, .setHook(.access, true), asks, .app(barred: "bert"),
            asks, .app(over: "s", barred: "anna"), asks, .app(raises: .stale), asks, .app(raises: .access), asks,
            .app(mixesUp: .access), asks, .setHook(.access, false), asks, .app(mixesUp: .stale), asks, .app(), asks,
            .setHook(.stale, false), asks,
        ]
    }

    private static var enqueuedAnew: [StoreCommand] {
        person(1) + [
            note("a", subject: "s", thread: "t"), note("b", subject: "b"), note("c", thread: "c"), claim(0, rows: 1),
            .requeue(key: "a", minutes: 9),
            .settle(worker: 0, batch: 1, [Fate(key: "a", outcome: .rejected, end: .failed)]),
            .requeue(key: "a", minutes: -1), .requeue(key: "a", minutes: 9), .requeue(key: "a", minutes: 20), claim(1),
            .cancel(key: "again a"), .cancel(key: "again a"), .cancel(key: "a"),
            .settle(
                worker: 1, batch: 2,
                [
                    Fate(key: "again a"), Fate(key: "b", outcome: .delivered), Fate(key: "c", outcome: .delivered),
                ]),
            .supersede(tenant: 1, subject: "b"), .erase(tenant: 1, thread: "c"), .requeue(key: "b", minutes: 5),
            .requeue(key: "c", minutes: 5), .requeue(key: "again a", minutes: 5), claim(0), .waiting(worker: 0),
        ]
    }

    /// What lapsed since it was sent could not be renewed, for all that its sender knows.
    private static var lateRecovery: [StoreCommand] {
        person(1) + [
            note("a"), note("b"), claim(0, rows: 1, minutes: 1), .advance(minutes: 2), claim(0, rows: 1, minutes: 1),
            .advance(minutes: 2), .recover(worker: 1, known: 4, connected: 999, maxCrashes: 5),
            .recover(worker: 1, known: 2, connected: 999, maxCrashes: 5), .waiting(worker: 1),
            .recover(worker: 1, known: -3, connected: 999, maxCrashes: 5), .waiting(worker: 1),
        ]
    }

    /// Alive, stopped in order, never heard of, and dead for too short a time, for all that was heard.
    private static var deaths: [StoreCommand] {
        person(1) + [
            note("a"), note("b"), note("c"), .beat(worker: 0), .beat(worker: 1), .advance(minutes: 5),
            claim(0, rows: 1, minutes: 1), claim(1, rows: 1, minutes: 1), claim(2, rows: 1, minutes: 1),
            .signOff(worker: 1), .advance(minutes: 3), .recover(worker: 2, known: 1, connected: 1, maxCrashes: 5),
            .waiting(worker: 2), claim(0, rows: 9, minutes: 1), .advance(minutes: 2),
            .recover(worker: 2, connected: 1, maxCrashes: 5), .waiting(worker: 2), claim(0, rows: 9, minutes: 1, .once),
            .beat(worker: 0), .advance(minutes: 2), .recover(worker: 2, connected: 3, maxCrashes: 5),
            .waiting(worker: 2), claim(0, rows: 9, minutes: 1, .once), .advance(minutes: 2),
            .recover(worker: 2, connected: 1, maxCrashes: 2), .waiting(worker: 2),
        ]
    }

    private static var held: [StoreCommand] {
        person(2) + [note("a"), note("b"), note("c"), claim(0)] + [
            .settle(
                worker: 0, batch: 1,
                [
                    Fate(key: "a", outcome: .misconfigured, isFinal: false, wait: 9, back: 9),
                    Fate(key: "b", outcome: .retry, isFinal: false, wait: 9, back: 9),
                    Fate(key: "c", back: 9, attempt: 0),
                ]),
            claim(0), .retryHeld(worker: 1, route: 2), .retryHeld(worker: 1, route: 1), claim(0), .advance(minutes: 10),
            claim(0),
        ]
    }
}
