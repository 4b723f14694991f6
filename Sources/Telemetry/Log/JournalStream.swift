import Glibc

/// Whether a descriptor is connected to systemd's journal, which then reads a `<N>` before each line.
package enum JournalStream {
    /// `variable` is the value of `JOURNAL_STREAM`: device and inode of the stream, as `systemd.exec(5)` has it. A
    /// program that redirects our standard error inherits the variable but not the stream, so both are compared.
    package static func isConnected(_ descriptor: Int32, variable: String?) -> Bool {
        guard let parts = variable?.split(separator: ":"), parts.count == 2 else { return false }
        guard let device = UInt64(parts[0]), let inode = UInt64(parts[1]) else { return false }
        var file = stat()
        return fstat(descriptor, &file) == 0 && UInt64(file.st_dev) == device && UInt64(file.st_ino) == inode
    }
}
