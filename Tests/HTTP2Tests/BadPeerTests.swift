import Foundation
import HTTP2
import Testing

/// Servers that must not see a byte of a request, each told from the others by the reason.
@Suite struct BadPeerTests {
    static let authority = TestCertificates.shared.authority
    static let stranger = TestCertificates.shared.stranger
    static let intermediate = CertificateTemplate.authority("test intermediate").issued(by: authority)

    /// Refused for their keys and digests, which a lax configuration of OpenSSL would let pass.
    static let weak = [
        BadPeer(
            "weak key", .certificate, "too weak a key: RSA, 1024 bits",
            certificate: CertificateTemplate(key: .rsa(1024))),
        BadPeer(
            "SHA-1", .certificate, "too weak a digest: ecdsa-with-SHA1", certificate: CertificateTemplate(digest: .sha1)
        ),
        BadPeer("TLS 1.1", .tlsVersion, "no TLS 1.2 or newer") {
            try BadPeer.serving(ServerTLS(speaksOnlyTLS11: true))
        },
    ]

    static let certificates = [
        BadPeer(
            "expired", .certificateExpired, "the certificate of localhost has expired (",
            certificate: CertificateTemplate(end: -3600)),
        BadPeer(
            "not yet valid", .certificateExpired, "the certificate of localhost is not valid yet (before ",
            certificate: CertificateTemplate(begin: 3600)),
        BadPeer(
            "self-signed", .unknownAuthority, "the certificate of localhost is signed by itself",
            certificate: CertificateTemplate(), by: nil),
        BadPeer(
            "unknown CA, sent along", .unknownAuthority, "strange authority, at the end of the chain, is not trusted",
            certificate: CertificateTemplate(), by: stranger, chain: [stranger]),
        BadPeer(
            "unknown CA", .unknownAuthority,
            "issued by strange authority, which is neither trusted here nor sent along",
            certificate: CertificateTemplate(), by: stranger),
        BadPeer(
            "wrong host", .wrongHost, "is for DNS:other.example, not for localhost",
            certificate: CertificateTemplate(alternative: "DNS:other.example")),
        BadPeer(
            "wrong address", host: "127.0.0.1", .wrongHost, "is for DNS:localhost, not for 127.0.0.1",
            certificate: CertificateTemplate(alternative: "DNS:localhost")),
        BadPeer(
            "a wildcard that stands for a part of a label", .wrongHost, "is for DNS:local*, not for localhost",
            certificate: CertificateTemplate(alternative: "DNS:local*")),
        BadPeer(
            "CN only", .wrongHost, "has no subject alternative name", certificate: CertificateTemplate(alternative: nil)
        ),
        BadPeer(
            "wrong usage", .certificate, "the certificate of localhost is not for servers",
            certificate: CertificateTemplate(usage: "clientAuth")),
        BadPeer(
            "missing intermediate", .unknownAuthority,
            "issued by test intermediate, which is neither trusted here nor sent along",
            certificate: CertificateTemplate(), by: intermediate),
        BadPeer(
            "an intermediate that may not sign", .certificate, "test leaf may not sign certificates",
            certificate: CertificateTemplate(), by: leaf, chain: [leaf]),
        BadPeer(
            "an expired intermediate", .certificateExpired, "the certificate of old intermediate has expired",
            certificate: CertificateTemplate(), by: old, chain: [old]),
    ]

    private static let leaf = CertificateTemplate("test leaf").issued(by: authority)
    private static let old: Credential = {
        var template = CertificateTemplate.authority("old intermediate")
        template.end = -3600
        return template.issued(by: authority)
    }()

    static let protocols = [
        BadPeer("no ALPN", .noHTTP2, "the peer knows no ALPN, so no HTTP/2") {
            try BadPeer.serving(ServerTLS(offersHTTP2: false))
        },
        BadPeer("HTTP/1.1 by ALPN", .noHTTP2, "chose http/1.1 in place of h2") {
            try BadPeer.serving(ServerTLS(choosesHTTP1: true))
        },
        BadPeer("HTTP/1.1 behind ALPN", .protocolViolation, "agreed on h2 and speaks HTTP/1.1", getsPreface: true) {
            try ScriptedServer { connection in
                connection.sendRaw(Array("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n".utf8))
                try connection.expectPreface()
                connection.drain()
            }
        },
        BadPeer("closes in the handshake", .tls, "the peer closed the connection in the handshake") {
            try RecordServer { _, read in _ = read() }
        },
        BadPeer("resets in the handshake", .tls, "in the handshake: Connection reset by peer") {
            try RecordServer { client, read in
                _ = read()
                var linger = linger(l_onoff: 1, l_linger: 0)
                setsockopt(client, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<Glibc.linger>.size))
            }
        },
        BadPeer(
            "stalls in the handshake", .connectTimeout, "not open after", connectTimeout: .milliseconds(500)
        ) {
            try RecordServer { _, read in while read() > 0 {} }
        },
        BadPeer("garbage", .tls, "the peer does not speak TLS") {
            try RecordServer { client, read in
                _ = read()
                let garbage = (0..<2000).map { UInt8(truncatingIfNeeded: $0 * 7 + 129) }
                _ = send(client, garbage, garbage.count, Int32(MSG_NOSIGNAL))
                while read() > 0 {}
            }
        },
        BadPeer("plain HTTP", .tls, "the peer does not speak TLS") {
            try RecordServer { client, read in
                _ = read()
                let answer = Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8)
                _ = send(client, answer, answer.count, Int32(MSG_NOSIGNAL))
                while read() > 0 {}
            }
        },
    ]

    @Test(arguments: weak + certificates + protocols)
    func noByteOfARequestReachesAnUnfitServer(_ peer: BadPeer) async throws {
        try await Self.refuses(peer)
    }

    static func refuses(_ peer: BadPeer) async throws {
        let server = try peer.start()
        defer { server.stop() }
        try await ClientHarness.run(port: server.port) {
            $0.host = peer.host
            $0.connectTimeout = peer.connectTimeout
        } _: { harness in
            await harness.submit()
            let result = try await harness.results(1)[0]
            #expect(result.fault == .notSent(.noConnection))
            #expect(!result.wasSent)
            #expect(await harness.capacity == 0)
            let error = try #require(await harness.downError)
            #expect(error.code == peer.code, "\(error)")
            #expect(error.reason.contains(peer.words), "\(error)")
        }
        #expect(server.waitForEnd())
        #expect(server.connections == 1)
        #expect(server.requestFrames == 0)
        // The preface has 24 bytes and our SETTINGS 9 + 12; a GOAWAY has 17.
        #expect(server.applicationBytes <= (peer.getsPreface ? 100 : 0))
    }

    /// What the system's openssl.cnf allows to others is not allowed to us. In a process of its own, because OpenSSL
    /// reads that file once.
    @Test func aLaxConfigurationOfTheSystemOpensNothing() async {
        await #expect(processExitsWith: .success) {
            let file = FileManager.default.temporaryDirectory.appending(path: "lax-\(UUID()).cnf")
            try """
            openssl_conf = all
            [all]
            ssl_conf = ssl
            [ssl]
            system_default = lax
            [lax]
            MinProtocol = TLSv1
            CipherString = ALL:@SECLEVEL=0
            VerifyMode = Request
            """.write(to: file, atomically: true, encoding: .utf8)
            setenv("OPENSSL_CONF", file.path, 1)
            for peer in BadPeerTests.weak { try await BadPeerTests.refuses(peer) }
            try FileManager.default.removeItem(at: file)
        }
    }

    @Test func eachBadServerHasAReasonOfItsOwn() {
        // Plain HTTP is garbage like any other.
        let words = (Self.weak + Self.certificates + Self.protocols).filter { $0.testDescription != "plain HTTP" }
        #expect(Set(words.map(\.words)).count == words.count)
    }
}
