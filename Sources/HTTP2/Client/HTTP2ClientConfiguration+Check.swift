extension HTTP2ClientConfiguration {
    /// Loads the file of CAs, if there is one, and lets go of it: a client would find out at its first connection only,
    /// and go on trying. Throws an error of code `caFile` that says what is wrong with it.
    package func checkCAFile() throws(HTTP2ConnectionError) {
        _ = try TLSContext(caFile: caFile, peer: peer)
    }
}
