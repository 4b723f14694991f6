import Support
import Testing

/// The search for credentials against one that knows no short cuts: each form alone, in each form of the text.
@Suite(.timeLimit(.minutes(5)))
struct CredentialSearchTests {
    /// What a credential looks like, form by form; the last two in either case of letters.
    private static let forms = [
        "-----BEGIN ", #"eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}"#, "(AKIA|ASIA)[0-9A-Z]{16}", "AIza[A-Za-z0-9_-]{30}",
        #"ya29\.[A-Za-z0-9_-]{10}"#, "GOCSPX-", "gh[opsru]_[A-Za-z0-9]{20}", "github_pat_[A-Za-z0-9_]{20}",
        "glpat-[A-Za-z0-9_-]{16}", "npm_[A-Za-z0-9]{30}", "pypi-[A-Za-z0-9_-]{16}", "hf_[A-Za-z0-9]{20}",
        "xox[abeoprs]-[A-Za-z0-9-]{10}", "xapp-[A-Za-z0-9-]{10}", #"hooks\.slack\.com/services/"#,
        "[0-9]{8,10}:[A-Za-z0-9_-]{35}", #"\m(sk|pk|rk)[-_][A-Za-z0-9_-]{16}"#, "whsec_[A-Za-z0-9]{16}",
        "[a-z][a-z0-9+.-]*://[^/ :@]*:[^/ @]+@", "[0-9a-fA-F]{32}",
        "(?=[A-Za-z0-9+/_=-]*[0-9])(?=[A-Za-z0-9+/_=-]*[a-z])(?=[A-Za-z0-9+/_=-]*[A-Z])[A-Za-z0-9+/_=-]{40}",
        #"(?i)\m(bearer|basic) +[a-z0-9._~+/=-]{12}"#,
        "(?i)(password|passwd|passphrase|passcode|secret|token|api[ _-]?key|access[ _-]?key|private[ _-]?key"
            + #"|credentials?|authorization)["']? *[:=] *["']?[^ "']{4}"#,
    ]

    /// Texts of one to six pieces: marks and words, whole and in part, runs of letters of every kind and length, and
    /// what hides or dresses up either.
    private static let corpus = #"""
        SELECT setseed(0.25);
        CREATE TEMP TABLE texts AS
        SELECT n, (
            SELECT string_agg(p.piece, '' ORDER BY p.i)
            FROM (
                SELECT i, CASE WHEN random() < 0.5 THEN
                    (ARRAY[
                        '-----BEGIN ', '-----BEGIN', 'eyJ', 'eyJabcde.', 'AKIA', 'ASIA', 'AIza', 'ya29.', 'GOCSPX-',
                        'ghu_', 'ghp_', 'gho_', 'ghx_', 'github_pat_', 'glpat-', 'npm_', 'pypi-', 'hf_', 'xoxb-',
                        'xoxy-', 'xapp-', 'hooks.slack.com/services/', 'hooks.slack.com', '12345678:', '1234567:',
                        'sk-', 'pk_', 'rk-', 'task-', 'whsec_', 'https://', 'ftp://u:', 'u:p@', '@', ':', '=', ' ', '.',
                        '/', '-', '_', '"', '''', '  ', 'password', 'PassPhrase', 'Secret', 'TOKEN', 'api key',
                        'access_key', 'private-key', 'Credentials', 'credential', 'Authorization', ': ', ' = ',
                        '": "', 'Bearer ', 'basic  ', 'bearer', 'Weekly report', 'Grüße', '日本語', '🎉', 'ﬁ', '－',
                        'ｓｋ－', 'ｐａｓｓｗｏｒｄ：', E'\u200b', E'\u00ad', E'\n', E'\u2028', E'\u202e', '²', 'K'
                    ])[1 + floor(random() * 73)::int]
                ELSE left(CASE floor(random() * 7)::int
                        WHEN 0 THEN r.hex
                        WHEN 1 THEN upper(r.hex)
                        WHEN 2 THEN translate(r.hex, 'abcdef', '012345')
                        WHEN 3 THEN translate(r.hex, '0123456789', 'ghijklmnop')
                        WHEN 5 THEN upper(translate(r.hex, '0123456789', 'ghijklmnop'))
                        WHEN 4 THEN translate(r.hex, '0123456789abc', 'GHxyz7-_QRstu')
                        ELSE translate(r.hex, '01234567', '+/=-_kZ9')
                    END, 1 + floor(random() * 50)::int)
                END AS piece
                FROM generate_series(1, 1 + n % 6) i
                CROSS JOIN LATERAL (SELECT md5(random()::text || i) || md5(random()::text || i) AS hex) r
            ) p
        ) AS written
        FROM generate_series(1, 15000) n;
        CREATE TEMP TABLE forms AS
        SELECT t.n, f.form, f.text
        FROM texts t
        CROSS JOIN LATERAL postbell.visible_text(t.written) s(shown)
        CROSS JOIN LATERAL (VALUES (0, t.written), (1, s.shown), (2, normalize(s.shown, NFKC))) f(form, text);
        CREATE TEMP TABLE hits (n int, form int, pattern int);
        """#

    @Test(arguments: DatabaseServer.allCases)
    func `The search answers what one for each form alone does, and each form counts`(
        server: DatabaseServer
    ) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.run(Self.corpus)
            for (index, form) in Self.forms.enumerated() {
                let pattern = form.replacing("'", with: "''")
                try await outbox.run(
                    """
                    INSERT INTO hits
                    SELECT f.n, f.form, \(index) FROM forms f WHERE f.text COLLATE "C" ~ '\(pattern)'
                    """)
            }
            #expect(
                try await outbox.texts(
                    """
                    SELECT text FROM forms f
                    WHERE postbell.holds_credential(text)
                        <> EXISTS (SELECT 1 FROM hits h WHERE h.n = f.n AND h.form = f.form)
                    """) == [])
            #expect(
                try await outbox.texts(
                    """
                    SELECT t.written FROM texts t
                    WHERE (postbell.safe_text(t.written, 1000, 'none') = 'none')
                        <> (postbell.visible_text(t.written) = '' OR EXISTS (SELECT 1 FROM hits h WHERE h.n = t.n))
                    """) == [])
            // Each form of a credential is all that speaks against some text. Of the forms of a text, what is shown
            // hardly ever is: it is found folded, too.
            for (column, numbers) in [("pattern", Array(Self.forms.indices)), ("form", [0, 2])] {
                let deciding = try await outbox.texts(
                    """
                    SELECT h.one FROM (
                        SELECT n, min(\(column)) AS one FROM hits GROUP BY n HAVING count(DISTINCT \(column)) = 1
                    ) h GROUP BY h.one
                    """)
                #expect(Set(numbers.map(String.init)).isSubset(of: deciding), "\(column)")
            }
            let clean = try await outbox.value(
                "SELECT count(*) FROM texts t WHERE NOT EXISTS (SELECT 1 FROM hits h WHERE h.n = t.n)")
            #expect(try #require(Int(clean)) > 1000)
        }
    }
}
