import OutboxCore

/// What producers, back ends, operators, the app and people do, and the notifications of the database about it.
extension Simulation {
    func perform(_ action: SimulationPlan.ProducerEvent.Action, _ index: Int) {
        store.now = databaseTime
        switch action {
        case .enqueue(let draft): insert(draft, index)
        case .supersede(let tenant, let subject):
            note(-1, "supersede", index, Int(tenant), subject)
            store.supersede(tenant: tenant, subject: subject)
        case .cancel(let key):
            guard let row = store.notifications.first(where: { $0.key == "n\(key)" }) else { return }
            note(-1, "cancel", key, 0, row.key)
            if store.cancel(row.identifier) { monitor.passed(.cancelled) }
        case .register(let device, let isNewToken):
            register(device, isNewToken: isNewToken)
        case .revoke(let device):
            guard let number = store.device(Int64(device) + 1)?.number else { return }
            note(-1, "revoke", Int(number))
            store.revoke(number)
            monitor.changed(number, at: clock)
        case .mute(let device, let mutes):
            guard let number = store.device(Int64(device) + 1)?.number else { return }
            note(-1, "mute", Int(number), mutes ? 1 : 0)
            store.mute(number, mutes)
            monitor.changed(number, at: clock)
        case .uninstall(let device):
            guard let token = store.device(Int64(device) + 1)?.token else { return }
            note(-1, "uninstall", device + 1)
            provider.deadSince[token] = databaseTime
        default: performMore(action, index)
        }
        if dice.strikes(.deviceLocked, -3, index) { holdDevice(index) }
        if dice.strikes(.rowLocked, -3, index) { holdRow(index) }
    }

    /// Facts, operators, and the app whose hooks are asked.
    private func performMore(_ action: SimulationPlan.ProducerEvent.Action, _ index: Int) {
        switch action {
        case .erase(let tenant, let thread):
            note(-1, "erase", index, Int(tenant), thread)
            store.erase(tenant: tenant, thread: thread)
            monitor.passed(.erased)
        case .see(let tenant, let principal, let subject):
            note(-1, "see", index, Int(tenant), "\(principal) \(subject)")
            if store.see(tenant: tenant, principal: principal, subject: subject) { monitor.passed(.told) }
        case .requeue(let key): requeue(key, index)
        case .setHook(let purpose, let isSet):
            note(-1, "set hook", index, isSet ? 1 : 0, purpose.rawValue)
            store.setHook(purpose, isSet)
            monitor.passed(.hooksChanged)
        case .overByApp(let subject):
            note(-1, "over by the app", index, 0, subject)
            store.app.overSubjects.insert(subject)
        case .bar(let principal, let isBarred):
            note(-1, "bar", index, isBarred ? 1 : 0, principal)
            if isBarred { store.app.barred.insert(principal) } else { store.app.barred.remove(principal) }
        default: break
        }
    }

    /// An operator enqueues anew; a call for what is open, or has a fact against it, is refused.
    private func requeue(_ key: Int, _ index: Int) {
        guard let row = store.notifications.first(where: { $0.key == "n\(key)" && $0.isVisible }) else { return }
        let made = store.requeue(row.identifier, life: .seconds(60))
        monitor.didChange(self, by: .enqueue)
        note(-1, "requeue", index, made == nil ? 0 : 1, row.key)
        guard made != nil else { return }
        monitor.passed(.requeued)
        notifyWorkers(index)
    }

    private func insert(_ draft: SimulatedStore.Draft, _ index: Int) {
        var draft = draft
        draft.insertedAt = databaseTime
        // The trigger looks who is awake when the row is inserted; who is asleep hears of it with the commit.
        let live = SimulatedStore.routes(of: store.devices.filter { $0.isLive && $0.principal == draft.principal })
        let wakes = !live.allSatisfy { route in store.awake.contains { $0.route == route } }
        var delay = jitter(50...500, salt: 6)
        if dice.strikes(.lateProducer, -2, index) { delay = jitter(100_000...8_000_000, salt: 7) }
        producersLeft += 1
        schedule(after: delay) { [unowned self] in
            producersLeft -= 1
            store.now = databaseTime
            let made = store.enqueue(draft)
            monitor.didChange(self, by: .enqueue)
            note(-1, "enqueue", index, made == nil ? 0 : 1, draft.key)
            if let made, dice.strikes(.poison, -2, index) { monitor.poison.append(made) }
            if let made, dice.strikes(.orphan, -2, index) {
                monitor.orphans.append(made)
                store.lose(made)
            }
            if wakes { notifyWorkers(index) }
        }
    }

    /// A notification of the database on its way to all who listen.
    func notifyWorkers(_ occasion: Int) {
        for worker in workers where worker.isAlive {
            guard !dice.strikes(.notifyLost, worker.index, occasion) else { continue }
            schedule(after: jitter(100...2000, salt: 8), worker: worker) { worker.wake() }
        }
    }

    func register(_ setup: SimulationPlan.DeviceSetup, isNewToken: Bool) {
        let known = store.devices.first {
            $0.tenant == setup.tenant && $0.principal == setup.principal && $0.client == setup.client
        }
        let serial = isNewToken ? (known?.tokenSequence ?? 0) + 1 : max(known?.tokenSequence ?? 0, 1)
        let token = "\(setup.tenant)-\(setup.principal)-\(setup.client)-\(serial)"
        if !isNewToken { provider.deadSince[token] = nil }
        let number = store.register(
            client: setup.client, principal: setup.principal, tenant: setup.tenant, route: setup.route,
            token: known?.token != nil && !isNewToken ? known?.token ?? token : token)
        monitor.didChange(self, by: .enqueue)
        monitor.changed(number, at: clock)
        if let known, known.route != setup.route { monitor.passed(.rerouted) }
        note(-1, "register", Int(number), Int(setup.route), token)
        notifyWorkers(Int(number) * 1000 + orders)
    }

    private func holdDevice(_ occasion: Int) {
        guard !store.devices.isEmpty else { return }
        let number = Int64(dice.draw(1...store.devices.count, -3, occasion, salt: 3))
        store.lockedDevices.append(number)
        schedule(after: jitter(1000...5_000_000, salt: 9)) { [unowned self] in
            if let place = store.lockedDevices.firstIndex(of: number) { store.lockedDevices.remove(at: place) }
        }
    }

    private func holdRow(_ occasion: Int) {
        guard let last = store.queue.last else { return }
        store.lockedNotifications.append(last.notification)
        schedule(after: jitter(1000...5_000_000, salt: 10)) { [unowned self] in
            if let place = store.lockedNotifications.firstIndex(of: last.notification) {
                store.lockedNotifications.remove(at: place)
            }
        }
    }
}
