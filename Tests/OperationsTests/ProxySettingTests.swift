import HTTP2
import Testing

@testable import Operations

/// Which proxy is used for which host, and who says so.
@Suite struct ProxySettingTests {
    private func proxy(_ environment: [String: String], to host: String = "api.push.apple.com") throws -> String? {
        let configuration = try Configuration(SettingSources(environment: environment), for: .dispatch)
        return configuration.connections.proxy(to: host)?.description
    }

    private func problems(_ environment: [String: String]) -> [String] {
        do throws(ConfigurationProblems) {
            _ = try Configuration(SettingSources(environment: environment), for: .dispatch)
            return []
        } catch {
            return error.problems.map(\.line)
        }
    }

    private static let own = ["POSTBELL_PROXY": "http://own:1"]
    private static let small = ["https_proxy": "http://small:2"]
    private static let capital = ["HTTPS_PROXY": "http://capital:3"]

    @Test func theMostParticularVariableWins() throws {
        let all = Self.own.merging(Self.small) { a, _ in a }.merging(Self.capital) { a, _ in a }
        #expect(try proxy(all) == "own:1")
        #expect(try proxy(Self.small.merging(Self.capital) { a, _ in a }) == "small:2")
        #expect(try proxy(Self.capital) == "capital:3")
        #expect(try proxy([:]) == nil)
        #expect(try proxy(all.merging(["POSTBELL_PROXY": "none"]) { _, new in new }) == nil)
        #expect(try proxy(all.merging(["POSTBELL_PROXY": " "]) { _, new in new }) == "small:2")
        #expect(try proxy(["http_proxy": "http://plain:4", "all_proxy": "http://all:5"]) == nil)
    }

    @Test(arguments: [
        ("*", true), ("api.push.apple.com", true), ("API.Push.Apple.com", true), ("apple.com", true),
        (".apple.com", true), ("x, apple.com ", true), ("pple.com", false), ("sandbox.push.apple.com", false),
        ("", false),
        (",", false), ("10.0.0.0/8", false),
    ])
    func someHostsAreReachedWithoutIt(list: String, isException: Bool) throws {
        for name in ["no_proxy", "NO_PROXY"] {
            let environment = Self.own.merging([name: list]) { a, _ in a }
            #expect(try proxy(environment) == (isException ? nil : "own:1"), "\(name)")
        }
    }

    @Test func theSmallSpellingOfTheExceptionsWins() throws {
        let environment = ["POSTBELL_PROXY": "http://own:1", "no_proxy": "example.com", "NO_PROXY": "*"]
        #expect(try proxy(environment) == "own:1")
    }

    /// What a URL may look like is tested where it is read (HTTPProxyTests).
    @Test(arguments: [
        ("socks5://hush-hush:1080", "is not one of http://, the only kind of proxy that is spoken"),
        ("http://ada:hush-hush@:3128", "names no host"),
        ("http://proxy:0", "has a port that is no number from 1 to 65535"),
    ])
    func aProxyThatCannotBeUsedIsOneLine(text: String, what: String) {
        let next =
            "write http://host:port or http://user:password@host:port, with %XX for special characters of user and"
            + " password, or set POSTBELL_PROXY to that or to none"
        #expect(problems(["POSTBELL_PROXY": text]) == ["POSTBELL_PROXY \(what); environment; \(next)"])
        #expect(problems(["HTTPS_PROXY": text]) == ["HTTPS_PROXY \(what); environment; \(next)"])
        // What others make of theirs is no matter to whoever set our own.
        #expect(problems(["POSTBELL_PROXY": "none", "HTTPS_PROXY": text]).isEmpty)
    }

    @Test func aLoginIsSeenNowhere() throws {
        let environment = ["POSTBELL_PROXY": "http://ada:hush-hush@proxy:1", "HTTPS_PROXY": "http://x:hush-hush@y:2"]
        let result = try Program.run(["config"], environment: environment)
        #expect(result.status == 0)
        #expect(result.output.contains("proxy:1 (its login is not shown)"))
        #expect(!result.output.contains("hush-hush"))
        let configuration = try Configuration(SettingSources(environment: environment), for: .dispatch)
        var dumped = "\(configuration) \(String(reflecting: configuration))"
        dump(configuration, to: &dumped)
        #expect(!dumped.contains("hush-hush"))
    }
}
