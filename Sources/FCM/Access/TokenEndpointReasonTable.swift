extension TokenEndpointReason {
    /// Every answer of Google's token endpoint that is known (RFC 6749 5.2, and the transient errors that
    /// google-auth-library-python repeats), and what Postbell does about each. The first row that fits counts.
    package static let table: [TokenEndpointReason] = [
        TokenEndpointReason(
            nil, "internal_failure", .unavailable, meaning: "a fault of the service"),
        TokenEndpointReason(nil, "server_error", .unavailable, meaning: "a fault of the service"),
        TokenEndpointReason(nil, "temporarily_unavailable", .unavailable, meaning: "the service is unavailable"),
        TokenEndpointReason(429, nil, .unavailable, meaning: "too many requests for tokens"),
        TokenEndpointReason(408, nil, .unavailable, meaning: "the service did not wait for the request"),
        TokenEndpointReason(500, nil, .unavailable, meaning: "a fault of the service, or of the front before it"),
        TokenEndpointReason(
            nil, "invalid_grant", .refused, reading: .clock,
            meaning: "the assertion's times are refused: this machine's clock is wrong",
            remedy: "set the clock"),
        TokenEndpointReason(
            nil, "invalid_grant", .refused, reading: .account,
            meaning: "the key is deleted or of another account, or the account is deleted",
            remedy: "make a new key for the service account"),
        TokenEndpointReason(
            nil, "invalid_scope", .refused, meaning: "the account may not ask for this scope: a defect of ours",
            remedy: "report a defect"),
        TokenEndpointReason(
            nil, "unauthorized_client", .refused, meaning: "the account may not ask for tokens in this way",
            remedy: "check the service account"),
        TokenEndpointReason(
            nil, "invalid_client", .refused, meaning: "the account is unknown", remedy: "check the service account"),
        TokenEndpointReason(
            nil, "unsupported_grant_type", .refused, meaning: "the form is not understood: a defect of ours",
            remedy: "report a defect"),
        TokenEndpointReason(
            nil, "invalid_request", .refused, meaning: "the form is not understood: a defect of ours",
            remedy: "report a defect"),
    ]
}
