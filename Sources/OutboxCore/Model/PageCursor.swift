/// Where among the devices of its principal the next claim of a dispatch goes on.
///
/// A claim looks at one page of devices, however many there are, so that nobody else waits for long. Behind the last
/// page comes a second look from the start, for whoever was due again or came back meanwhile; at its end the claim says
/// whether somebody's wait is over behind the cursor, and if so there is another. Only a device that is registered anew
/// behind the cursor of the last look is left out.
package struct PageCursor: RawRepresentable, Equatable, Sendable {
    /// As `queue.after_device` has it: a device, or on a second look its complement (`~`), which is below zero.
    package let rawValue: Int64

    /// The cursor that is stored so.
    package init(rawValue: Int64) {
        self.rawValue = rawValue
    }

    /// Behind a device.
    package init(behind device: Int64, isSecondLook: Bool = false) {
        rawValue = isSecondLook ? ~device : device
    }

    /// At the first device.
    package static let start = PageCursor(behind: 0)
    /// At the first device, once more.
    package static let startAgain = PageCursor(behind: 0, isSecondLook: true)

    /// The devices of the page have greater numbers; 0 is below all.
    package var device: Int64 { max(rawValue, ~rawValue) }

    /// Whether all devices were looked at before.
    package var isSecondLook: Bool { rawValue < 0 }
}
