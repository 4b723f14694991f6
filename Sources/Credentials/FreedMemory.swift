import CLinux
import COpenSSL
import Glibc

/// What OpenSSL gives back to the allocator.
///
/// OpenSSL erases keys when it frees them, but not what it made of them on the way: the DER of a PEM block, encodings
/// that its decoders hand to each other. Those would lie in the heap until something else is put there.
package enum FreedMemory {
    /// Lets OpenSSL overwrite everything that it frees, from now on and for the whole process. Costs next to nothing:
    /// its buffers live as long as their connection. False once OpenSSL has allocated anything, so it comes first.
    package static func eraseAfterOpenSSL() -> Bool {
        CRYPTO_set_mem_functions(
            { size, _, _ in malloc(size) },
            { memory, size, _, _ in clinux_erasing_realloc(memory, size) },
            { memory, _, _ in clinux_erase_and_free(memory) }) == 1
    }
}
