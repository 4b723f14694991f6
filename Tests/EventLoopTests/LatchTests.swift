import EventLoop
import Testing

@Suite(.timeLimit(.minutes(1)))
struct LatchTests {
    @Test
    func `A latch that was opened before it is waited for lets through at once, and later again`() async {
        let latch = Latch()
        latch.open()
        await latch.wait()
        latch.open()
        await latch.wait()
    }
}
