import OutboxCore
import Testing

@Suite struct IdentifierTests {
    @Test func printsTheCanonicalFormAndReadsItInEitherCase() throws {
        let text = "0192f3a4-b5c6-7d8e-9fa0-b1c2d3e4f506"
        let identifier = try #require(Identifier(text))
        #expect(identifier.description == text)
        #expect(Identifier(text.uppercased()) == identifier)
    }

    @Test(arguments: [
        "", "0192f3a4-b5c6-7d8e-9fa0-b1c2d3e4f50", "0192f3a4b5c6-7d8e-9fa0-b1c2d3e4f5060",
        "0192f3a4-b5c6-7d8e-9fa0-b1c2d3e4f50g", "0192f3a4-b5c6-7d8e-9fa0-b1c2d3e4f5-6",
    ])
    func refusesEverythingElse(text: String) {
        #expect(Identifier(text) == nil)
    }

    @Test func versionsAndVariantsAreThoseOfTheStandard() {
        var random = SplitMix(seed: 7)
        for _ in 0..<1000 {
            let four = Identifier.random(using: &random)
            let seven = Identifier.timeOrdered(at: Timestamp(microseconds: 1_700_000_000_123_456), using: &random)
            #expect(four.high >> 12 & 0xF == 4)
            #expect(seven.high >> 12 & 0xF == 7)
            #expect(four.low >> 62 == 0b10)
            #expect(seven.low >> 62 == 0b10)
            #expect(seven.high >> 16 == 1_700_000_000_123)
        }
    }

    @Test func ledgerIdentifiersAscendAlsoWhenTheClockStandsOrGoesBack() {
        var random = SplitMix(seed: 11)
        var identifiers = LedgerIdentifiers()
        var last = Identifier(high: 0, low: 0)
        for step in 0..<10_000 {
            let drift = Int64(random.next() % 5) - 2
            let time = Timestamp(microseconds: 1_700_000_000_000_000 + Int64(step / 10) * 1000 + drift * 1000)
            let next = identifiers.next(at: time, using: &random)
            #expect(next > last)
            #expect(next.high >> 12 & 0xF == 7 && next.low >> 62 == 0b10)
            last = next
        }
    }

    @Test func sameSeedGivesTheSameDraws() {
        var first = SplitMix(seed: 42)
        var second = SplitMix(seed: 42)
        let draws = (0..<100).map { _ in (first.next(), second.next()) }
        #expect(draws.allSatisfy { $0.0 == $0.1 })
        #expect(Set(draws.map(\.0)).count == 100)
        #expect((0..<1000).allSatisfy { _ in (0..<1).contains(first.fraction()) })
    }

    @Test func expirationsAreRoundedUpToWholeSeconds() {
        #expect(Timestamp(microseconds: 5_000_000).secondsRoundedUp == 5)
        #expect(Timestamp(microseconds: 5_000_001).secondsRoundedUp == 6)
        #expect(Timestamp(microseconds: 5_999_999).secondsRoundedUp == 6)
    }
}
