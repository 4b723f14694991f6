import Glibc
import Operations
import Testing

/// What a process can do so that its memory ends with it. Each in a process of its own, because none of it can be
/// undone.
@Suite struct ProcessMemoryTests {
    @Test func nothingIsDumpedAndNobodyLooksIn() async {
        await #expect(processExitsWith: .success) {
            try ProcessMemory.keepPrivate()
            var limit = rlimit()
            #expect(getrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit) == 0)
            #expect(limit.rlim_cur == 0 && limit.rlim_max == 0)
            // prctl is variadic, which Swift cannot call; 3 is PR_GET_DUMPABLE.
            typealias Prctl = @convention(c) (Int32, UInt, UInt, UInt, UInt) -> Int32
            let address = try #require(dlsym(nil, "prctl"))
            #expect(unsafeBitCast(address, to: Prctl.self)(3, 0, 0, 0, 0) == 0)
        }
    }

    /// Swift's backtracer lives in handlers of these signals, and shows the memory that registers point to.
    @Test func nobodyHandlesACrash() async {
        await #expect(processExitsWith: .success) {
            let signals = [SIGQUIT, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP]
            for number in signals { signal(number) { _ in } }
            try ProcessMemory.keepPrivate()
            for number in signals {
                var action = sigaction()
                #expect(sigaction(number, nil, &action) == 0)
                #expect(unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == 0)
            }
        }
    }

    @Test func aCrashIsStillTheDeathThatItIs() async {
        await #expect(processExitsWith: .signal(SIGABRT)) {
            try ProcessMemory.keepPrivate()
            abort()
        }
    }
}
