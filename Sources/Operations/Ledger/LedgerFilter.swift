import OutboxCore

/// Which attempts of the ledger are asked for. What is nil does not narrow.
struct LedgerFilter: Equatable, Sendable {
    var tenant: String?
    var principal: String?
    var kind: String?
    var device: Identifier?
    var outcome: OutcomeKind?
    var reason: String?
    var notification: Identifier?
    var since: InstantArgument?
    var until: InstantArgument?
    /// Most rows.
    var limit = 50

    /// How far back a search goes that nothing else bounds: it reads the ledger by time alone.
    static let window = Duration.hours(24)

    /// Whether an index leads from the filter to its rows; without one the search is bounded by time.
    var isAnchored: Bool { principal != nil || device != nil || notification != nil }

    /// The moment before which nothing is looked at: the filter's own, or the window of a search without an anchor.
    var effectiveSince: InstantArgument? { since ?? (isAnchored ? nil : .ago(Self.window)) }
}

extension LedgerFilter {
    static let tenantOption = OptionDescription(
        name: "--tenant", value: "TENANT", meaning: "only this tenant's; a login that is confined to tenants names one")
    static let principalOption = OptionDescription(
        name: "--principal", value: "PRINCIPAL", meaning: "only attempts for this person")
    static let kindOption = OptionDescription(
        name: "--kind", value: "KIND", meaning: "only notifications of this kind")
    static let deviceOption = OptionDescription(
        name: "--device", value: "UUID", meaning: "only attempts on this device, by its id")
    static let outcomeOption = OptionDescription(
        name: "--outcome", value: "OUTCOME",
        meaning: "only this outcome: " + OutcomeKind.allCases.map(\.name).joined(separator: ", "))
    static let reasonOption = OptionDescription(
        name: "--reason", value: "REASON", meaning: "only this reason, as the provider or Postbell worded it")
    static let notificationOption = OptionDescription(
        name: "--notification", value: "UUID", meaning: "only attempts of this notification")
    static let sinceOption = OptionDescription(
        name: "--since", value: "MOMENT", meaning: "only attempts from then on: \(InstantArgument.forms)")
    static let untilOption = OptionDescription(
        name: "--until", value: "MOMENT", meaning: "only attempts before then")
    static let limitOption = OptionDescription(
        name: "--limit", value: "COUNT", meaning: "most rows to show, 1 to \(most); 50 when not given")

    static let options = [
        tenantOption, principalOption, kindOption, deviceOption, outcomeOption, reasonOption, notificationOption,
        sinceOption, untilOption, limitOption,
    ]

    /// What memory and a terminal can reasonably take.
    private static let most = 10_000

    /// The filter that a command line asks for.
    init(_ options: ParsedOptions) throws(CommandFailure) {
        tenant = options.value(Self.tenantOption)
        principal = options.value(Self.principalOption)
        kind = options.value(Self.kindOption)
        reason = options.value(Self.reasonOption)
        device = try Self.identifier(options, Self.deviceOption)
        notification = try Self.identifier(options, Self.notificationOption)
        since = try Self.moment(options, Self.sinceOption)
        until = try Self.moment(options, Self.untilOption)
        if let name = options.value(Self.outcomeOption) {
            guard let known = OutcomeKind.allCases.first(where: { $0.name == name }) else {
                let names = OutcomeKind.allCases.map(\.name)
                throw Self.wrong(
                    Self.outcomeOption, name, "is no outcome",
                    NearestName.find(name, among: names).map { "did you mean \($0)?" }
                        ?? "write one of \(names.joined(separator: ", "))")
            }
            outcome = known
        }
        if let text = options.value(Self.limitOption) {
            guard let count = Int(text), 1...Self.most ~= count else {
                throw Self.wrong(Self.limitOption, text, "is out of range", "write a number from 1 to \(Self.most)")
            }
            limit = count
        }
    }

    private static func identifier(
        _ options: ParsedOptions, _ option: OptionDescription
    ) throws(CommandFailure) -> Identifier? {
        guard let text = options.value(option) else { return nil }
        guard let identifier = Identifier(text) else {
            throw wrong(option, text, "is no uuid", "write it as `postbell show` prints it")
        }
        return identifier
    }

    private static func moment(
        _ options: ParsedOptions, _ option: OptionDescription
    ) throws(CommandFailure) -> InstantArgument? {
        guard let text = options.value(option) else { return nil }
        return try InstantArgument(text, option: option)
    }

    private static func wrong(
        _ option: OptionDescription, _ text: String, _ fault: String, _ next: String
    ) -> CommandFailure {
        CommandFailure(
            .usage, what: "\(option.name) \(QuotedText.quote(text)) \(fault)", place: "command line", next: next)
    }
}
