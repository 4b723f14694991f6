import EventLoop
import Glibc

/// Asks a proxy for a tunnel to the host, over a connected non-blocking socket that it does not own.
struct ProxyTunnel {
    /// What a step came to.
    enum Progress {
        /// The socket has to become ready first.
        case blocked(Interest)
        /// From here on the socket leads to the host.
        case open
        /// There will be no tunnel.
        case failed(HTTP2ConnectionError)
    }

    private let descriptor: Int32
    private let proxy: HTTPProxy
    private let peer: String
    private var request: ArraySlice<UInt8>
    private var answer = ProxyAnswer()

    /// A tunnel to `target`, `host:port` in the form of RFC 9112 3.2.3, that nobody has asked for yet.
    init(_ proxy: HTTPProxy, target: String, descriptor: Int32, peer: String) {
        self.descriptor = descriptor
        self.proxy = proxy
        self.peer = peer
        var text = Array("CONNECT \(target) HTTP/1.1\r\nHost: \(target)\r\n".utf8)
        if let credentials = proxy.credentials {
            text += Array("Proxy-Authorization: ".utf8) + credentials.authorization + Array("\r\n".utf8)
        }
        request = (text + Array("\r\n".utf8))[...]
    }

    /// Goes on as far as the socket lets it.
    mutating func step() -> Progress {
        while !request.isEmpty {
            let sent = request.withUnsafeBytes {
                send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard sent > 0 else { return stopped(waitingFor: .writable) }
            request = request.dropFirst(sent)
        }
        return read()
    }

    /// Looks at what is there before it is taken, so that nothing behind the header block is taken away from TLS.
    private mutating func read() -> Progress {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 4096) { buffer in
            while true {
                let seen = recv(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_PEEK))
                guard seen > 0 else {
                    return seen == 0
                        ? failed("the proxy closed the connection before it answered") : stopped(waitingFor: .readable)
                }
                let used = answer.take(UnsafeBufferPointer(rebasing: buffer.prefix(seen)))
                guard recv(descriptor, buffer.baseAddress, used, 0) == used else {
                    return failed("the proxy's answer cannot be read")
                }
                switch answer.verdict {
                case .incomplete: continue
                case .open: return .open
                case .refused(let status): return refused(status)
                case .malformed(let reason): return failed("the proxy's answer makes no sense: \(reason)")
                }
            }
        }
    }

    private func stopped(waitingFor interest: Interest) -> Progress {
        let number = errno
        if number == EAGAIN || number == EINTR { return .blocked(interest) }
        return failed("the connection to the proxy broke: \(TLSFailure.system(number))")
    }

    private func failed(_ reason: String, _ code: HTTP2ConnectionError.Code = .proxy) -> Progress {
        .failed(HTTP2ConnectionError(code, peer: peer, reason: reason))
    }

    /// Its status in our words; the proxy's might be anything.
    private func refused(_ status: Int) -> Progress {
        let words =
            switch status {
            case 403: "403 Forbidden"
            case 407: "407 Proxy Authentication Required"
            case 502: "502 Bad Gateway"
            case 503: "503 Service Unavailable"
            case 504: "504 Gateway Timeout"
            default: "status \(status)"
            }
        let advice =
            switch (status, proxy.credentials) {
            case (407, nil): "; it asks for a user and password"
            case (407, _): "; check the proxy's user and password"
            case (403, _): "; check that it may open tunnels to this host and port"
            default: ""
            }
        return failed("the proxy refuses: \(words)\(advice)", status == 407 ? .proxyAuthentication : .proxy)
    }
}
