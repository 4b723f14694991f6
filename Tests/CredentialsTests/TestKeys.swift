import Credentials

/// Keys of public test data: none of them protects anything.
enum TestKeys {
    /// The key of RFC 7515 A.3 as PKCS#8.
    static let rfc7515 = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgjpsQnnGQmL+YBIff
        H1136cspYG6+0iY7X1fCE9+E9LKhRANCAAR/zc4ncPbEXUGDy+5v20t7WAczNXvp
        7xO6z248e9FURcfxRM0bvZt+hyzf7bnuufSzaV1uqQskrYpGIyiFiOWt
        -----END PRIVATE KEY-----

        """
    /// A key on the wrong curve.
    static let p384 = """
        -----BEGIN PRIVATE KEY-----
        MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDCqX0SBJuvVv7UCAImi
        Njnhoo6n2z9Cy45XJXTMxcnl5I3eYv9WwIF6pKVZa4szsRWhZANiAATYUP9lzwq3
        E2nGMDDPdMDagtCoasvHEihDGzoQlxcByD2QZP9sHZFBF3o9uRcb7SYyh4vZEpHf
        4Av3HoN6Co3HgzBCVKzjmd5pDTTnHrimoS44G7FNDxLJQZnR0oS4Mro=
        -----END PRIVATE KEY-----

        """
    /// A key of another algorithm.
    static let ed25519 = """
        -----BEGIN PRIVATE KEY-----
        MC4CAQAwBQYDK2VwBCIEIDfg4p3kHBvldsUH/FL43adDUBzwlM2tlFwvN+NNpxTr
        -----END PRIVATE KEY-----

        """
    /// A P-256 key behind a passphrase.
    static let encrypted = """
        -----BEGIN ENCRYPTED PRIVATE KEY-----
        MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAjX3Dq9blzrQgICCAAw
        DAYIKoZIhvcNAgkFADAdBglghkgBZQMEAQIEEHoYmgBAJOmBXggNv/KmqBwEgZC1
        mJ4XixLFiLCYQ2CfKgD5LmGHG/vn9/wmOR2WwL67n7EHB60DhmbRHFq3meDnnjmj
        +ks5Jj8VDlr7PKSCyEZ1i7HcXlntfqPmvo7tJKsy8jWtW8Pm1JCmoGmGW50JIRQK
        OTtnLLVjxici5VbVM/48HxdTJ4WRG751yZUwHsvwsa25etlLXHElHqQ99z8jwlw=
        -----END ENCRYPTED PRIVATE KEY-----

        """
    /// A P-256 key in the older form.
    static let sec1 = """
        -----BEGIN EC PRIVATE KEY-----
        MHcCAQEEIPqEelkQ5TwoloCw7VDy9625JUrJrz33oqKPAUEI59cfoAoGCCqGSM49
        AwEHoUQDQgAEfWvSFM5138S2jkGKyBDktj4eAmFO7szuryDZEH60JOWgZsU9bexO
        qzXaN9APKfN26QhS//V7m2uucIXyUaUAIQ==
        -----END EC PRIVATE KEY-----

        """
    /// A public key.
    static let publicOnly = """
        -----BEGIN PUBLIC KEY-----
        MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEfWvSFM5138S2jkGKyBDktj4eAmFO
        7szuryDZEH60JOWgZsU9bexOqzXaN9APKfN26QhS//V7m2uucIXyUaUAIQ==
        -----END PUBLIC KEY-----

        """
    /// A certificate.
    static let certificate = """
        -----BEGIN CERTIFICATE-----
        MIIBbTCCAROgAwIBAgIUY5jK6WLq7sTBhcvjRS/h2jN+OD4wCgYIKoZIzj0EAwIw
        DDEKMAgGA1UEAwwBeDAeFw0yNjExMzAwMTU5MTBaFw0zNjExMjcwMTU5MTBaMAwx
        CjAIBgNVBAMMAXgwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAR9a9IUznXfxLaO
        QYrIEOS2Ph4CYU7uzO6vINkQfrQk5aBmxT1t7E6rNdo30A8p83bpCFL/9Xuba65w
        hfJRpQAho1MwUTAdBgNVHQ4EFgQUzy7d42i/IpRvHkwgOiIiATLDa3MwHwYDVR0j
        BBgwFoAUzy7d42i/IpRvHkwgOiIiATLDa3MwDwYDVR0TAQH/BAUwAwEB/zAKBggq
        hkjOPQQDAgNIADBFAiEAujnbsxVxkGdrGaw29ulwbEhAoUKQZDdTxF/wdbBSJX4C
        ICGvuUi77VgzGWDwOJxt2S9nUoI146IMRR2qk9ckNfZ1
        -----END CERTIFICATE-----

        """
    /// An RSA key.
    static let rsa = """
        -----BEGIN PRIVATE KEY-----
        MIICeAIBADANBgkqhkiG9w0BAQEFAASCAmIwggJeAgEAAoGBANCiZLVWPhnMWKrP
        Mz2Y+TCGqGtRsxQU6RQTSPdepIfHMFyv8e5MtYCsMATFjIkvKImRr2kfnDDdydlO
        k/yZlbK2ZTZL78ZW32fJcgFxzMH6fBsdAn2ZFPETRHFC2DA7oTLcStbDX5Gk8eWg
        SNeUt6d1DC4bjZquMtdV6widgbZRAgMBAAECgYAVFYQ16yxFcSg4ws272Ny98a3N
        gqklS2OumrBSB2d7LT8O7tz1Jx1kjoIfyVMFfhWLqYRfjEk9ivxeEJnV+jNteDCv
        h7D5sVoWxoV6luFU1MiqBhBuLWKWFHvtibeU5ANyi/ldf1DWTYI32buzFnQJXEMI
        SMM34LQoHlXBDzHIAQJBAPr2DO2IKOdHgCLJIYGwNYXo7g3VsCdQwb4H7DXK0xwT
        7RQBF799wfm9WAhu0C/VAwwDZBF4RIpBakcIO4EEjNECQQDU0sgaUSSEIGxI/kFe
        ZGCeQzXESUfT1q6JsD8aOnLSxghOuiuG50arJYDNBGZSBIxbQjTsYNcNQJg2+WXo
        xvGBAkEA6tIT4qZG77F9eg8MpRbF3hjHtnY+L2tm/XLYWLUBuAIFEXS8TddUC2RZ
        3PojHr6H7VO27InGSD9RPEm9s8kYIQJBAL9rfrO8+/0jNIJKvfzqh8SRaxDLYKF2
        3LHXJkqu+4v8togpBvFln7hcGQdNx8JJePy0Ben+CC9RRBdeJn1CQwECQQCEw9lx
        hz0GNp7UP3f0XRbmUbNfoWYUZOoSNNfmxjmE4QEC5pXYnTmQmVRbPXRcLXcB7/Nu
        gTn0N6UczxdHSsQ8
        -----END PRIVATE KEY-----

        """
    /// The key of RFC 7515 A.2 as PKCS#8.
    static let rfc7515RSA = """
        -----BEGIN PRIVATE KEY-----
        MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQCh+BYK4uPJtGXO
        jS1lYmM2K5J9vinh8CR3/BYlzJChNuOL2TSXxbbqY913EeZ8dCn5VrD7io8ImtxL
        aYk8wTM/U+3QGbh3hCUv7JFP5IV3aVlL6kKA0ywPVb9ilE8TA5a8bpvfbr3SvaNn
        juygxmj3AbONv/s4yDQs4v5tJ/reSlpIdJed1LnPmt7Ex1sFhSwsD174pcF1A5L5
        ROjtZMEQxrZHYJqkeDrrnGya11UxMFBji4NmXG9veoKjlnAqH2QbgtPr8jkiGUkf
        toaHLFcW9Qr4NY2ai50Xw0Byj3+H2JoY2PyrZ62EWQwuz3WTOTY8BwNNb2BvniHg
        VFbK5emhAgMBAAECggEAEq5xpGnNCivDflJsRQBXHx1hdR1k6Ulwe2JZD50LpXyW
        PEAeP88vLNO97IjlA7/GQ5sLKMgvfTeXZx9SE+7YwVol2NXOoAJe46sui395IW/G
        O+pWJ1O0BkTGoVEn2bKVRUCgu+GjBVaYLU6f3l9kJfFNS3E0QbVdxzubSu3Mkqzj
        kn439X0M/V51gfpRLI9JYanrC4D4qAdGcopV/0ZHHzQlBjudU2QvXt4ehNYTCBr6
        XCLQUShb1juUO1ZdiYoFaFQT5Tw8bGUl/x/jTj3ccPDVZFD9pIuhLhBOneufuBiB
        4cS98l2SR/RQyGWSeWjnczT0QU91p1DhOVRuOopznQKBgQDgHMQQ60imZV1URk0K
        pLttoLhyt3SmqdEf/kgHePDdtzEafpAu+cS191R2JiuoF2yzWXnwFDcqGigp5BNr
        0AHQfD8/Lk8l1Mk09jxxCfui5nYooNyac8YFjm3vItzVCVDnEd3BbVWG8qf6deqE
        lMGAg+C2V0L4oNXnP7LZcPAZRwKBgQC5A8R+CZW2MvRTLLHzwZkUXV866cff7tx6
        kqa0finGG0KgeqlaZPxgCZnFp7AeAcCMtiynVlJ7vMVgePsLq6XtON4tB5kP9jAP
        rq3rbAOal78eUH5OcED6eNuCV8ixEu1eWcPNCS/l1OW1EnXUEoEHKl54Xrrz2uNw
        kgMTP1FZ1wKBgAcCn1dwJKufzBWQxWQp1vsM5fggqPN1qGb5y0MAk3g7/Ls5bkUp
        5u9SN0Ai3Ya6hNnvWJMb7sXQX6U/zyO2M/hTip7tUeh7CXgwo59dkpN75gJLVds2
        9+DAncu3KXU4f2Fa+7bLNrur53k8KwPOq2bbuTG69QtV7Jr5MR0AHWKNAoGBAIf/
        evpitUf+4JYbLpvNXWcY052Mpz22aR84mY3nh3F2LF2mjMJDpTg7FmuyPcVw6EcG
        yoAe9fa65iNqCq+jdw6PVNGo2hxfjSiZ8IIzHdsPXI89//pMjZcQK9r+CCoRjaZj
        OYiIDktVWZzmevJuv6WywUqd57LE3Zar3dLSIkx1AoGAIYd7DHOhrWvxkwPQsRM2
        tOgrjbcrfvtQJipd+DlcxyVuuM9sQLdgjVk2oy26F0EmpScGLq2MowX7fhd/QJQ3
        ydy5cY7YIBi87w93IKLEdfnbJtoOPLUW0ITrJReOgo1cq9SbsxYawBgfp/gh6A56
        03k2+ZQwVK0JKSHuLFkuQ3U=
        -----END PRIVATE KEY-----

        """
}
