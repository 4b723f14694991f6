/// A SQLSTATE: five letters or digits by which the server classifies an error. The first two are its class.
///
/// Codes: PostgreSQL 18, appendix A.
package struct SQLState: Sendable, Hashable, CustomStringConvertible {
    /// The five ASCII bytes, the first one highest.
    private let packed: UInt64

    /// Nil unless `code` is five digits or upper-case letters.
    package init?(_ code: some StringProtocol) {
        guard code.utf8.count == 5, code.utf8.allSatisfy(Self.isAllowed) else { return nil }
        packed = Self.pack(code.utf8)
    }

    /// For the constants below, whose form a test checks.
    private init(constant code: StaticString) {
        packed = code.withUTF8Buffer { Self.pack($0) }
    }

    /// The five characters, for example `40P01`.
    package var code: String { Self.unpack(packed, count: 5) }

    /// The two characters of the class, for example `40`.
    package var classCode: String { Self.unpack(packed >> 24, count: 2) }

    package var description: String { code }

    /// Whether the code belongs to `category`.
    package func isIn(_ category: Category) -> Bool {
        packed >> 24 == category.packed
    }

    /// A class of codes, the first two characters.
    package struct Category: Sendable, Hashable {
        fileprivate let packed: UInt64

        private init(_ code: StaticString) {
            packed = code.withUTF8Buffer { SQLState.pack($0) }
        }

        /// 08: the connection failed or does not exist.
        package static let connectionException = Category("08")
        /// 22: a value does not fit its type or function.
        package static let dataException = Category("22")
        /// 23: a constraint was violated.
        package static let integrityConstraintViolation = Category("23")
        /// 28: the server did not accept who we are.
        package static let invalidAuthorization = Category("28")
        /// 40: the transaction was rolled back by the server.
        package static let transactionRollback = Category("40")
        /// 42: the statement is wrong, or its object or the right to it is missing.
        package static let syntaxErrorOrAccessRuleViolation = Category("42")
        /// 53: the server is short of something.
        package static let insufficientResources = Category("53")
        /// 57: somebody intervened.
        package static let operatorIntervention = Category("57")
    }

    /// A feature is missing; also `cached plan must not change result type`.
    package static let featureNotSupported = SQLState(constant: "0A000")
    /// A unique constraint was violated.
    package static let uniqueViolation = SQLState(constant: "23505")
    /// A check constraint was violated.
    package static let checkViolation = SQLState(constant: "23514")
    /// A writing statement met a read-only transaction, as on a server in recovery.
    package static let readOnlyTransaction = SQLState(constant: "25006")
    /// An earlier statement of the transaction failed.
    package static let inFailedTransaction = SQLState(constant: "25P02")
    /// The named prepared statement does not exist in this session.
    package static let invalidStatementName = SQLState(constant: "26000")
    /// The password is wrong, or the role does not exist.
    package static let invalidPassword = SQLState(constant: "28P01")
    /// The database does not exist.
    package static let undefinedDatabase = SQLState(constant: "3D000")
    /// Concurrent transactions conflict; a repetition may succeed.
    package static let serializationFailure = SQLState(constant: "40001")
    /// The server ended a deadlock at our cost.
    package static let deadlockDetected = SQLState(constant: "40P01")
    /// The role lacks a right.
    package static let insufficientPrivilege = SQLState(constant: "42501")
    /// The table does not exist.
    package static let undefinedTable = SQLState(constant: "42P01")
    /// A prepared statement of that name exists in this session.
    package static let duplicateStatement = SQLState(constant: "42P05")
    /// The disk of the server is full.
    package static let diskFull = SQLState(constant: "53100")
    /// The server has no connection left.
    package static let tooManyConnections = SQLState(constant: "53300")
    /// A lock was not granted in time, or at once with NOWAIT.
    package static let lockNotAvailable = SQLState(constant: "55P03")
    /// The statement was cancelled, by a request or by `statement_timeout`.
    package static let queryCanceled = SQLState(constant: "57014")
    /// The backend was terminated, or the server is being stopped.
    package static let adminShutdown = SQLState(constant: "57P01")
    /// The server restarts after a crash of one of its processes.
    package static let crashShutdown = SQLState(constant: "57P02")
    /// The server is starting up, shutting down or recovering.
    package static let cannotConnectNow = SQLState(constant: "57P03")
    /// The database was dropped under the session.
    package static let databaseDropped = SQLState(constant: "57P04")
    /// The session was idle longer than the server allows.
    package static let idleSessionTimeout = SQLState(constant: "57P05")

    private static func isAllowed(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
    }

    private static func pack(_ bytes: some Sequence<UInt8>) -> UInt64 {
        bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }

    private static func unpack(_ packed: UInt64, count: Int) -> String {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: packed >> UInt64(8 * (count - 1 - $0))) }
        return String(decoding: bytes, as: UTF8.self)
    }
}
