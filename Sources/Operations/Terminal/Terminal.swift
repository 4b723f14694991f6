import Glibc
import Synchronization

/// One of the process's two outputs, and what it can show.
package struct Terminal: Sendable {
    /// How text stands out.
    enum Style: String {
        case bold = "1"
        case dim = "2"
        case red = "31"
        case green = "32"
        case yellow = "33"
    }

    private let descriptor: Int32
    private let hasColour: Bool
    private let loss = OutputLoss()
    /// Columns of a terminal; nil for a file or a pipe, which take lines of any length.
    let columns: Int?

    /// The output `descriptor`. Colour is for terminals only, and never with `NO_COLOR` (no-color.org: any value that
    /// is not empty) or a terminal that is `dumb`.
    package init(descriptor: Int32, environment: [String: String]) {
        let isTerminal = isatty(descriptor) == 1
        self.init(
            descriptor: descriptor, columns: isTerminal ? Self.width(descriptor) : nil,
            hasColour: Self.hasColour(isTerminal: isTerminal, environment))
    }

    init(descriptor: Int32, columns: Int?, hasColour: Bool) {
        self.descriptor = descriptor
        self.columns = columns
        self.hasColour = hasColour
    }

    static func hasColour(isTerminal: Bool, _ environment: [String: String]) -> Bool {
        isTerminal && (environment["NO_COLOR"] ?? "").isEmpty && environment["TERM"] != "dumb"
    }

    /// `text` in `style`, where the output can show it.
    func paint(_ text: String, _ style: Style) -> String {
        hasColour ? "\u{1B}[\(style.rawValue)m\(text)\u{1B}[0m" : text
    }

    /// `text` in the place of all that a terminal shows; in a file or pipe behind what is there.
    func redrawing(_ text: String) -> String {
        columns == nil ? text + "\n" : "\u{1B}[H\u{1B}[2J" + text
    }

    /// `text` broken between its words so that it fits the terminal; what goes on is indented.
    func wrapped(_ text: String) -> String {
        guard let columns else { return text }
        var lines = [""]
        for word in text.split(separator: " ") {
            let line = lines[lines.count - 1]
            if line.isEmpty {
                lines[lines.count - 1] = String(word)
            } else if line.count + 1 + word.count > columns {
                lines.append("  \(word)")
            } else {
                lines[lines.count - 1] = "\(line) \(word)"
            }
        }
        return lines.joined(separator: "\n")
    }

    /// Why something could not be written, by `errno`; nil while nothing was lost. A reader that has gone away
    /// (`| head`) has lost nothing that it wanted.
    var lostBecause: Int32? { loss.number.withLock { $0 == EPIPE ? nil : $0 } }

    /// Whether nobody reads any more, or nothing can be written: no reason to go on printing.
    var isOver: Bool { loss.number.withLock { $0 != nil } }

    /// Writes `text` whole; what cannot be written is lost, see `lostBecause`.
    package func write(_ text: String) {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                bytes = bytes.dropFirst(count)
            } else if errno == EAGAIN {
                var poll = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                _ = Glibc.poll(&poll, 1, 1000)
            } else if errno != EINTR {
                let number = errno
                loss.number.withLock { $0 = $0 ?? number }
                return
            }
        }
    }

    private static func width(_ descriptor: Int32) -> Int {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
    }
}

/// Remembers for all copies of a terminal why it lost something.
private final class OutputLoss: Sendable {
    let number = Mutex<Int32?>(nil)
}
