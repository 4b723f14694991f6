import OutboxCore

extension Dispatcher {
    /// Looks for notifications that have been due for long, and for routes with work that nobody serves, of all routes
    /// and not only of those that this worker serves: a row whose provider nobody serves shows itself in no other way.
    func watchPending(at now: ContinuousClock.Instant) async {
        guard watchesAt <= now else { return }
        watchesAt = now + watch.pause
        await attempt { () async throws(StoreError) in
            let unserved = Set(try await self.store.unservedRoutes())
            for number in unserved.subtracting(self.unserved).sorted() {
                if let route = self.routes[number] { self.observer.routeUnserved(route) }
            }
            self.unserved = unserved
        }
        await attempt { () async throws(StoreError) in
            let sample = try await self.store.longPending(
                on: self.routes.keys.sorted(), olderThan: self.settings.stuckAfter, limit: PendingWatch.sampleSize)
            let news = self.watch.news(sample, at: .now)
            for pending in news { self.observer.longPending(pending, route: self.routes[pending.route]) }
            if !news.isEmpty && sample.count == PendingWatch.sampleSize { self.observer.moreLongPending() }
        }
    }
}
