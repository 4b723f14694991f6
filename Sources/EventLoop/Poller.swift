import CLinux
import Glibc

/// What a descriptor is waited for.
package struct Interest: OptionSet, Sendable {
    package let rawValue: UInt32

    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// Bytes, a connection or an end of stream can be read.
    package static let readable = Interest(rawValue: UInt32(EPOLLIN.rawValue))
    /// Bytes can be written, or a non-blocking connect has ended.
    package static let writable = Interest(rawValue: UInt32(EPOLLOUT.rawValue))
}

/// Gets told, on the loop's thread, that a watched descriptor is ready.
package protocol ReadinessHandler: AnyObject {
    /// Called level-triggered: as long as `interest` holds and the condition lasts, once a turn of the loop.
    /// An error or hang-up of the descriptor is reported as everything it was watched for, whatever that is: who has
    /// nothing left to do with the descriptor unwatches it.
    func descriptorReady(_ ready: Interest)
}

/// The epoll set: which descriptors are watched, for what, and by whom.
///
/// Confined to the loop's thread. A registration is a slot whose generation travels with each event, so an event that
/// was fetched before its descriptor was unwatched (and the number perhaps reused) finds nobody.
struct Poller {
    private struct Registration {
        var handler: (any ReadinessHandler)?
        var interest: Interest = []
        var generation: UInt32 = 0
    }

    private let descriptor: Int32
    private var registrations: [Registration] = []
    private var events = [epoll_event](repeating: epoll_event(), count: 256)

    init(wakeDescriptor: Int32) {
        descriptor = epoll_create1(Int32(EPOLL_CLOEXEC))
        precondition(descriptor >= 0, "epoll_create1 failed: errno \(errno)")
        var event = epoll_event()
        event.events = UInt32(EPOLLIN.rawValue)
        event.data.u64 = Self.wakeMark
        let added = epoll_ctl(descriptor, EPOLL_CTL_ADD, wakeDescriptor, &event)
        precondition(added == 0, "epoll_ctl failed: errno \(errno)")
    }

    func close() {
        Glibc.close(descriptor)
    }

    private static let wakeMark = UInt64.max

    mutating func watch(_ watched: Int32, for interest: Interest, handler: any ReadinessHandler) {
        let slot = Int(watched)
        while registrations.count <= slot { registrations.append(Registration()) }
        let known = registrations[slot].handler != nil
        // Another handler must not get what was fetched for the former one.
        if !known || registrations[slot].handler !== handler { registrations[slot].generation &+= 1 }
        registrations[slot].handler = handler
        registrations[slot].interest = interest
        var event = epoll_event()
        event.events = interest.rawValue
        event.data.u64 = UInt64(registrations[slot].generation) << 32 | UInt64(slot)
        if known {
            if epoll_ctl(descriptor, EPOLL_CTL_MOD, watched, &event) == 0 { return }
            // Closing a descriptor takes it out of the set, and its number may have come back for another one.
            precondition(errno == ENOENT, "watching descriptor \(watched) failed: errno \(errno)")
        }
        let added = epoll_ctl(descriptor, EPOLL_CTL_ADD, watched, &event)
        precondition(added == 0, "watching descriptor \(watched) failed: errno \(errno)")
    }

    mutating func unwatch(_ watched: Int32) {
        let slot = Int(watched)
        guard slot < registrations.count, registrations[slot].handler != nil else { return }
        registrations[slot].handler = nil
        var event = epoll_event()
        // A descriptor that was closed before it was unwatched has already left the set.
        _ = epoll_ctl(descriptor, EPOLL_CTL_DEL, watched, &event)
    }

    /// Waits at most `milliseconds` (-1: until something happens) and returns how many events wait in `event(_:)`.
    mutating func wait(milliseconds: Int32) -> Int {
        let count = epoll_wait(descriptor, &events, Int32(events.count), milliseconds)
        return max(0, Int(count))
    }

    /// The handler and the readiness of fetched event `index`; nil for the wake-up and for events that came too late.
    func event(_ index: Int) -> (handler: any ReadinessHandler, ready: Interest)? {
        let event = events[index]
        guard event.data.u64 != Self.wakeMark else { return nil }
        let slot = Int(event.data.u64 & 0xFFFF_FFFF)
        let registration = registrations[slot]
        guard let handler = registration.handler,
            registration.generation == UInt32(truncatingIfNeeded: event.data.u64 >> 32)
        else { return nil }
        let failed = event.events & UInt32(EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0
        return (handler, failed ? registration.interest : Interest(rawValue: event.events))
    }

    func isWakeUp(_ index: Int) -> Bool {
        events[index].data.u64 == Self.wakeMark
    }
}
