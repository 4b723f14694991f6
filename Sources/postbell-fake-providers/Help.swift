extension Arguments {
    static let help = """
        Usage: postbell-fake-providers --certificates DIR [options]

        Imitates Apple's push service, and on request FCM and Google's token endpoint, over real TLS and HTTP/2: checks
        credentials, headers, bodies and sizes, obeys and enforces stream limits, and misbehaves by the beginning of a
        device's token or as a scenario file says (docs/fake-providers.md).

        Example:
          postbell-fake-providers --certificates /tmp/fake --make-key --topic com.example.app --log /tmp/fake/log.jsonl
          curl --http2 --cacert /tmp/fake/ca.pem https://localhost:PORT/3/device/00fc13ad

        Options:
          --certificates DIR   makes a throw-away authority and server certificate for localhost there, each time:
                               ca.pem, server.pem, server.key
          --strict             refuses on top what the real services delay, drop or only refuse sometimes
          --scenario FILE      misbehaves over time as FILE says; read again at SIGHUP
          --speed N            plays the scenario N times as fast (1)
          --log FILE           a line of JSON for each request, before its answer (-: standard output, the default)
          --no-log             no such lines
          --port-file FILE     writes the port of APNs there once it listens, those of FCM and of the token endpoint to
                               FILE.fcm and FILE.token
          --slowness DURATION  wait before the answer to a token with the prefix fa003 (500ms)
          --exit-after DURATION  stops by itself after 500ms, 30s, 5m, 1h
          --help               this text

        APNs:
          --listen HOST:PORT   numeric address to listen on (127.0.0.1:0; port 0 lets the system choose)
          --make-key           makes DIR/apns.p8, a test key, and accepts provider tokens signed with it
          --apns-key FILE      accepts provider tokens signed with this .p8 key (or its public half as PEM)
          --key-id ID          key id of that key (ABC123DEFG)
          --team-id ID         team of that key (DEF123GHIJ)
          --topic BUNDLE       accepted bundle id; may be repeated; without it, all
          --streams N          concurrent streams allowed after a valid token (1000)
          --streams-before-token N  and before it (1); load tools that do not wait for SETTINGS need more
          --sandbox            answers carry apns-unique-id
          --throttle           a rejected push lowers the stream limit to 1 until the next accepted one
          --token-updates DURATION  how old a provider token must be before another may follow on a connection (20m)

        FCM and Google's token endpoint:
          --fcm HOST:PORT      imitates FCM there
          --token-endpoint HOST:PORT  imitates the token endpoint there; FCM then accepts its access tokens only
          --make-account       makes DIR/service-account.json, and accepts assertions signed with its key
          --service-account FILE  accepts assertions signed with the key in this file; may be repeated
          --project ID         project of the account that --make-account makes (demo-project)

        Without --make-key and --apns-key every readable provider token is accepted unverified, and without
        --token-endpoint every bearer by FCM. The first line of output says in JSON where they listen; SIGTERM and
        SIGINT stop them with a summary.
        """
}
