import CLinux
import Glibc

/// What the process does so that its memory, which holds keys and tokens, ends with it.
package enum ProcessMemory {
    /// Lets no core be written, no other user look in, and no backtracer print memory when the process crashes: it dies
    /// by its signal and says nothing. To be called before anything secret is read.
    package static func keepPrivate() throws(CommandFailure) {
        guard clinux_keep_memory_private() != 0 else { return }
        throw CommandFailure(
            .bad, what: "the system does not let the process protect its memory: \(String(cString: strerror(errno)))",
            place: "prctl and setrlimit", next: "allow both to this program where it is confined (seccomp, LimitCORE)")
    }
}
