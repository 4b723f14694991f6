import Testing

@testable import Operations

@Suite struct ArgumentParserTests {
    private let parser = ArgumentParser(commands: [ConfigCommand.description, DispatchCommand.description])

    private func refusal(_ arguments: [String]) -> String? {
        do throws(CommandFailure) {
            _ = try parser.parse(arguments)
            return nil
        } catch {
            #expect(error.code == .usage)
            #expect(error.problems.count == 1)
            return error.problems[0].line
        }
    }

    private func options(_ arguments: [String]) throws -> ParsedOptions? {
        guard case .run(.config, let options) = try parser.parse(["config"] + arguments) else { return nil }
        return options
    }

    @Test(arguments: [
        (["--help"], Invocation.help(nil)), (["-h"], .help(nil)), (["help"], .help(nil)),
        (["help", "config"], .help(.config)), (["config", "--help"], .help(.config)),
        (["config", "--nonsense", "-h"], .help(.config)), (["--version"], .version),
        (["config"], .run(.config, ParsedOptions())),
    ])
    func understood(arguments: [String], invocation: Invocation) throws {
        #expect(try parser.parse(arguments) == invocation)
    }

    @Test func optionsWithAndWithoutValues() throws {
        let options = try #require(try options(["--json", "--env-file", "a.env"]))
        #expect(options.has(.json))
        #expect(options.value(.environmentFile) == "a.env")
        #expect(try self.options(["--env-file=a=b"])?.value(.environmentFile) == "a=b")
        #expect(try self.options([])?.has(.json) == false)
    }

    @Test(arguments: [
        ([], "no command was given; command line; see `postbell --help`"),
        (["confg"], #"there is no command "confg"; argument 1; did you mean config?"#),
        (["frobnicate"], #"there is no command "frobnicate"; argument 1; see `postbell --help`"#),
        (["help", "confg"], #"there is no command "confg"; argument 2; did you mean config?"#),
        (["--json", "config"], #""--json" stands where a command belongs; argument 1; see `postbell --help`"#),
        (["config", "--jsn"], #"there is no option "--jsn"; argument 2 of `postbell config`; did you mean --json?"#),
        (["config", "-x"], #"there is no option "-x"; argument 2 of `postbell config`; see `postbell config --help`"#),
        (
            ["config", "--json", "extra"],
            #""extra" is one argument too many; argument 3 of `postbell config`; see `postbell config --help`"#
        ),
        (["config", "--json=yes"], "--json takes no value; argument 2 of `postbell config`; write --json alone"),
        (
            ["config", "--env-file"],
            "--env-file lacks its value; argument 2 of `postbell config`; write --env-file FILE"
        ),
        (
            ["config", "--env-file", "--json"],
            "--env-file lacks its value; argument 2 of `postbell config`; write --env-file FILE"
        ),
        (
            ["config", "--env-file="],
            "--env-file lacks its value; argument 2 of `postbell config`; write --env-file FILE"
        ),
        (["config", "--json", "--json"], "--json is given twice; argument 3 of `postbell config`; give it once"),
    ])
    func refused(arguments: [String], line: String) {
        #expect(refusal(arguments) == line)
    }

    @Test func statusesAreWhatScriptsDependOn() {
        #expect(ExitCode.allCases.map(\.rawValue) == [0, 1, 2, 3, 4, 5, 6])
        #expect(ExitCode.usage.rawValue == 2)
        #expect(ExitCode.configuration.rawValue == 3)
        #expect(ExitCode.unreachable.rawValue == 4)
        #expect(ExitCode.schema.rawValue == 5)
        #expect(ExitCode.refused.rawValue == 6)
    }

    private static let operand: CommandDescription = {
        var description = CommandDescription(
            name: .config, summary: "", details: "", options: [.json], example: "")
        description.operand = OperandDescription(name: "ID", meaning: "a name")
        return description
    }()

    @Test(arguments: [
        (["x"], "x", false), (["x", "--json"], "x", true), (["--json", "x"], "x", true),
        (["--", "-x"], "-x", false), (["--json", "--", "--json"], "--json", true), (["--", "--"], "--", false),
    ])
    func anOperandStandsAnywhere(arguments: [String], operand: String, json: Bool) throws {
        guard case .run(_, let options) = try ArgumentParser(commands: [Self.operand]).parse(["config"] + arguments)
        else { throw CommandFailure(.usage, what: "no run", place: "", next: "") }
        #expect(options.operand == operand)
        #expect(options.has(.json) == json)
    }

    @Test(arguments: [
        ([], "ID is missing; `postbell config`; see `postbell config --help`"),
        (["x", "y"], #""y" is one argument too many; argument 3 of `postbell config`; see `postbell config --help`"#),
        ([""], #""" is one argument too many; argument 2 of `postbell config`; see `postbell config --help`"#),
    ])
    func anOperandIsGivenOnce(arguments: [String], line: String) {
        do throws(CommandFailure) {
            _ = try ArgumentParser(commands: [Self.operand]).parse(["config"] + arguments)
            Issue.record("\(arguments) was understood")
        } catch {
            #expect(error.problems.map(\.line) == [line])
        }
    }
}
