/// What outcomes mean, in plain words.
enum OutcomeWords {
    static let unknown =
        "the request was sent and its answer was lost, so the phone may have rung; a repetition replaces what it shows"
}
