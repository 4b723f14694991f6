import OutboxCore
import Testing

@testable import Operations

/// Each way a notification can be, and the words for it.
@Suite struct WhatHappensNextTests {
    private typealias Life = NotificationLife
    private static let now = Timestamp(microseconds: 1_796_005_025_000_000)
    private static let routeName = "apns/production/app.one"

    private static func at(_ seconds: Int64) -> Timestamp { now + .seconds(seconds) }

    private static func life(_ status: String = "pending", _ change: (inout Life) -> Void) -> Life {
        var life = Life(
            now: now, stuckAfter: .seconds(300),
            head: Life.Head(
                id: Identifier(high: 1, low: 1), tenant: "default", principal: "anna", kind: "note", dedupeKey: "a",
                urgency: "urgent", createdAt: at(-600), plannedAt: at(-600), expiresAt: at(3600), status: status,
                settledAt: status == "pending" ? nil : at(-5)))
        change(&life)
        return life
    }

    private static func service(
        _ state: RouteStatus.State = .up, route: String = routeName, reason: String? = nil, until: Int64? = nil
    ) -> RouteStatus {
        RouteStatus(
            route: route, provider: route == "none" ? "none" : "apns", environment: "production", app: "app.one",
            workers: state == .unserved ? 0 : 1, state: state,
            lane: state == .unserved ? nil : "apns/production/default", reason: reason, until: until.map(at))
    }

    private static func queued(
        _ seconds: Int64, _ service: RouteStatus = service(), attempt: Int = 0, crashes: Int = 0
    ) -> Life.Place {
        Life.Place(routeNumber: 1, service: service, at: at(seconds), attempt: attempt, crashes: crashes)
    }

    private static func leased(
        _ seconds: Int64, _ state: WorkerStatus.State = .alive, worker: String? = "host/1"
    ) -> Life.Place {
        var place = queued(seconds, attempt: 1)
        place.lease = Life.Lease(
            batch: Identifier(high: 2, low: 2), claimedAt: at(-20), worker: worker, workerState: state,
            heartbeatAt: worker == nil ? nil : at(-45))
        return place
    }

    private static func attempt(
        _ outcome: OutcomeKind, status: Int? = nil, reason: String? = nil, retry: Int64? = nil,
        device: String = "Phone"
    ) -> LedgerEntry {
        LedgerEntry(
            id: Identifier(high: UInt64(outcome.rawValue), low: UInt64(device.count)),
            notification: Identifier(high: 1, low: 1), deviceName: device, routeNumber: 1, attempt: 1,
            outcome: outcome.name, isFinal: retry == nil, isLate: false, retryAt: retry.map(at),
            providerStatus: status, reason: reason, attemptedAt: at(-20))
    }

    private static func over(
        _ status: String, _ reason: String? = nil, ends: [Life.End] = [], _ attempts: LedgerEntry...
    ) -> Life {
        life(status) {
            $0.head.reason = reason
            $0.attempts = attempts
            $0.deciding = Set(attempts.filter(\.isFinal).map(\.id))
            $0.ends = ends
        }
    }

    private static func end(_ status: String, _ reason: String, route: String? = nil) -> Life.End {
        Life.End(at: at(-5), route: route, status: status, reason: reason)
    }

    // MARK: Waiting

    private static let waiting: [(Life, String)] = [
        (
            life { $0.places = [queued(0)] },
            "due since 2026-11-30 02:17:05+00 (just now); the next claim of a worker takes it."
        ),
        (
            life {
                $0.places = [queued(60)]
                $0.head.plannedAt = at(60)
            }, "waits until 2026-11-30 02:18:05+00 (in 1 min): its kind waits that long before the first attempt."
        ),
        (
            life {
                $0.places = [queued(60)]
                $0.head.plannedAt = at(60)
                $0.head.notBefore = at(60)
            }, "(in 1 min): its producer asked for that moment."
        ),
        (
            life {
                $0.places = [queued(60, attempt: 1)]
                $0.attempts = [attempt(.retry, status: 503, reason: "ServiceUnavailable", retry: 60)]
            }, "on Phone the provider could not take it (503 ServiceUnavailable); it is then tried again."
        ),
        (
            life {
                $0.places = [queued(60)]
                $0.attempts = [attempt(.throttled, status: 429, reason: "TooManyRequests", retry: 60)]
            },
            "the provider asked for less (429 TooManyRequests); it is then tried again, and this attempt does "
                + "not count."
        ),
        (
            life {
                $0.places = [queued(2400)]
                $0.attempts = [attempt(.misconfigured, status: 400, reason: "BadDeviceToken", retry: 2400)]
            }, "on Phone the provider says that key, topic or environment is wrong (400 BadDeviceToken)"
        ),
        (
            life {
                $0.places = [queued(60, attempt: 1)]
                $0.attempts = [attempt(.unknown, reason: "timeout", retry: 60)]
            }, "on Phone unknown (timeout): the request was sent and its answer was lost, so the phone may have rung"
        ),
        (
            life { $0.places = [queued(60, attempt: 1)] },
            "it was given back unsent, by a worker that stopped or whose lane"
        ),
        (
            life {
                $0.places = [queued(60, attempt: 0)]
                $0.hook = HookStatus(
                    kind: "note", worker: "host/1", reason: "stale: it raised an error", since: at(-30), until: at(60))
            },
            "a hook of its kind fails since 2026-11-30 02:16:35+00 (30 s ago) (stale: it raised an error), and host/1 "
                + "sends nothing of the kind until it answers; at its deadline, 2026-11-30 03:17:05+00 (in 1 h), it "
                + "ends as expired"
        ),
        (
            life {
                $0.places = [queued(-3)]
                $0.hook = HookStatus(
                    kind: "note", worker: "host/1", reason: "stale: it raised an error", since: at(-30), until: at(-1))
            }, "It has been due since 2026-11-30 02:17:02+00 (3 s ago), but is held: a hook of its kind fails"
        ),
        (
            life { $0.places = [queued(60, service(.unserved))] },
            "No live worker serves apns/production/app.one: unless one is started that does, it ends at its deadline, "
                + "2026-11-30 03:17:05+00 (in 1 h), as expired."
        ),
        (
            life { $0.places = [queued(60, service(.paused, reason: "403 InvalidProviderToken", until: 600))] },
            "And not before 2026-11-30 02:27:05+00 (in 10 min), because its lane apns/production/default is paused "
                + "(403 InvalidProviderToken)."
        ),
        (
            life { $0.places = [queued(-60, service(.unserved))] },
            "but is held: no live worker serves apns/production/app.one. It is sent when a worker is started whose"
        ),
        (
            life { $0.places = [queued(-60, service(.paused, reason: "403 InvalidProviderToken", until: 600))] },
            "but is held until 2026-11-30 02:27:05+00 (in 10 min), because its lane apns/production/default is "
                + "paused (403"
        ),
        (
            life { $0.places = [queued(-60, service(.probing, reason: "403 InvalidProviderToken", until: -4))] },
            "; a worker tries with one row whether its lane can send again, which was paused (403 Invalid"
        ),
        (
            life { $0.places = [queued(-60, service(.down, reason: "refused", until: 4))] },
            "but is held, because its lane apns/production/default has no connection (refused); the next try is "
                + "2026-11-30 02:17:09+00 (in 4 s)."
        ),
        (life { $0.places = [queued(-60, crashes: 2)] }, "A worker died 2 times while it held it, so it is sent alone"),
        (
            life { $0.places = [queued(-300)] },
            "longer than it should: apns/production/app.one is served, so its workers"
        ),
        (life { $0.places = [queued(30, service(route: "none"))] }, "It waits for a first device of the person until"),
        (life { $0.places = [queued(-3, service(route: "none"))] }, "a worker sends or ends it within seconds."),
        (
            life {
                $0.places = [queued(-3, service(.unserved, route: "none"))]
                $0.workerIsAlive = false
            }, "but no worker is alive to go on; start one."
        ),
        (
            life {
                $0.places = [queued(-3)]
                $0.head.supersededAt = at(-1)
            }, "it ends as superseded when a worker comes to it; nothing is sent."
        ),
        (
            life {
                $0.places = [queued(-3, service(.unserved))]
                $0.head.supersededAt = at(-1)
            },
            "it ends as superseded when a worker is started that serves apns/production/app.one, and at its deadline at"
        ),
        (
            life {
                $0.places = [queued(-3)]
                $0.head.expiresAt = at(-1)
            }, "it ends as expired when a worker comes to it."
        ),
        (
            life {
                $0.places = [queued(-3, service(.unserved))]
                $0.head.expiresAt = at(-1)
                $0.workerIsAlive = false
            }, "it ends as expired when a worker is started; none is alive."
        ),
        (
            life("cancelled") {
                $0.places = [queued(-3)]
                $0.head.reason = "cancelled"
            }, "It is over: cancelled, somebody cancelled it. What is left of it is dropped"
        ),
    ]

    @Test(arguments: waiting.indices) func whatWaits(index: Int) {
        let (life, words) = Self.waiting[index]
        let sentences = WhatHappensNext.sentences(life)
        #expect(sentences.count == 1)
        #expect(sentences[0].contains(words), "\(sentences)")
    }

    // MARK: On lease

    private static let onLease: [(Life, String)] = [
        (
            life { $0.places = [leased(10)] },
            "host/1 is sending it, and holds it until 2026-11-30 02:17:15+00 (in 10 s)"
        ),
        (
            life { $0.places = [leased(10, .dead)] },
            "host/1, which held it, seems dead, last heard of 2026-11-30 02:16:20+00 (45 s ago). Its lease runs out "
                + "2026-11-30 02:17:15+00 (in 10 s); a live worker then takes over, notes `unknown`"
        ),
        (
            life { $0.places = [leased(10, .dead, worker: nil)] },
            "a worker that the registry does not know, which held it"
        ),
        (life { $0.places = [leased(10, .stopped)] }, "host/1, which held it, has stopped. Its lease runs out"),
        (
            life { $0.places = [leased(-10, .dead)] },
            "ran out 2026-11-30 02:16:55+00 (10 s ago): a live worker takes over"
        ),
        (
            life {
                $0.places = [leased(-10, .dead)]
                $0.workerIsAlive = false
            }, "it stays so until a worker is started; none is alive."
        ),
    ]

    @Test(arguments: onLease.indices) func whatIsHeld(index: Int) {
        let (life, words) = Self.onLease[index]
        let sentences = WhatHappensNext.sentences(life)
        #expect(sentences.count == 1)
        #expect(sentences[0].contains(words), "\(sentences)")
    }

    @Test func eachRouteHasItsSentence() {
        let life = Self.life {
            $0.places = [Self.queued(0), Self.queued(0, Self.service(.unserved, route: "fcm/app.two"))]
            $0.ends = [Self.end("expired", "expired", route: "web/app.three")]
            $0.attempts = [Self.attempt(.delivered, status: 200)]
            $0.deciding = Set($0.attempts.map(\.id))
        }
        let sentences = WhatHappensNext.sentences(life)
        #expect(sentences.count == 4)
        #expect(sentences[0].hasPrefix("apns/production/app.one: It has been due since"))
        #expect(sentences[1].hasPrefix("fcm/app.two: It has been due since"))
        #expect(sentences[2] == "web/app.three: done, expired: its deadline had passed.")
        #expect(sentences[3] == "The provider has accepted it for 1 device already.")
    }

    // MARK: Over

    private static let moment = "2026-11-30 02:17:00+00 (5 s ago)"
    private static let silence = "What the phone did with it, the provider does not say."

    private static let ended: [(Life, [String])] = [
        (
            over("dispatched", nil, attempt(.delivered, status: 200)),
            ["Done \(moment): the provider accepted it for 1 of 1 device.", silence]
        ),
        (
            over(
                "dispatched", nil, attempt(.delivered, status: 200),
                attempt(.unregistered, status: 410, reason: "Unregistered", device: "Tablet")),
            [
                "Done \(moment): the provider accepted it for 1 of 2 devices.",
                "On Tablet: its token is dead (410 Unregistered): it is reached again once its app registers it.",
                silence,
            ]
        ),
        (
            over("dispatched", "Unregistered", attempt(.unregistered, status: 410, reason: "Unregistered")),
            [
                "Done \(moment), and nobody was reached:",
                "On Phone: its token is dead (410 Unregistered): it is reached again once its app registers it.",
            ]
        ),
        (
            over("dispatched", "no_device", ends: [end("dispatched", "no_device", route: "none")]),
            ["Done \(moment), and nobody was reached: the person had no active device."]
        ),
        (
            over("dispatched", "muted", ends: [end("dispatched", "muted", route: routeName)]),
            ["Done \(moment), and nobody was reached: every device of the person mutes this kind."]
        ),
        (
            over("failed", "PayloadTooLarge", attempt(.rejected, status: 413, reason: "PayloadTooLarge")),
            [
                "Failed \(moment): the provider refused the message itself (413 PayloadTooLarge). Nothing more "
                    + "is sent.",
                "On Phone: the provider refused the message itself (413 PayloadTooLarge).",
            ]
        ),
        (
            over("failed", "ServiceUnavailable", attempt(.retry, status: 503, reason: "ServiceUnavailable")),
            [
                "Failed \(moment): every attempt that its kind allows was made. Nothing more is sent.",
                "On Phone: the provider could not take it (503 ServiceUnavailable).",
            ]
        ),
        (
            over("failed", "crashes", ends: [end("failed", "crashes", route: routeName)]),
            ["Failed \(moment): workers died again and again while they held it. Nothing more is sent."]
        ),
        (
            over(
                "expired", "expired", ends: [end("expired", "expired", route: routeName)],
                attempt(.retry, status: 503, reason: "ServiceUnavailable", retry: 60)),
            [
                "Expired \(moment): its deadline, 2026-11-30 03:17:05+00 (in 1 h), passed before every device "
                    + "was reached. "
                    + "The last attempt, on Phone: the provider could not take it (503 ServiceUnavailable)."
            ]
        ),
        (
            over("superseded", "superseded", ends: [end("superseded", "superseded")]),
            ["Superseded \(moment): its subject had moved on. Nothing more is sent."]
        ),
        (
            over("superseded", "superseded", ends: [end("superseded", "superseded")], attempt(.delivered, status: 200)),
            [
                "Superseded \(moment): its subject had moved on. Nothing more is sent. The provider had "
                    + "accepted it for 1 device before.", silence,
            ]
        ),
        (
            over("cancelled", "erased", ends: [end("cancelled", "erased")]),
            ["Cancelled \(moment): its conversation was erased. Nothing more is sent."]
        ),
        (over("dispatched"), ["Done \(moment), and nobody was reached."]),
    ]

    @Test(arguments: ended.indices) func whatIsOver(index: Int) {
        let (life, sentences) = Self.ended[index]
        #expect(WhatHappensNext.sentences(life) == sentences)
    }

    @Test func everyReasonHasWords() {
        for reason in SettlementReason.allCases {
            #expect(!OutcomeWords.skipped(reason.rawValue).contains("reason"), "\(reason)")
        }
        for outcome in OutcomeKind.allCases {
            #expect(!OutcomeWords.clause(Self.attempt(outcome)).hasPrefix(outcome == .unknown ? "x" : outcome.name))
        }
    }
}
