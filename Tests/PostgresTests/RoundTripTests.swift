import Postgres
import Testing

/// Each type travels to the server and back in binary form, and means there what it means here.
@Suite(.timeLimit(.minutes(2)))
struct RoundTripTests {
    @Test(arguments: TestServer.allCases)
    func `Scalars keep their extremes`(server: TestServer) async throws {
        let statement = PostgresStatement(
            "scalars", "SELECT $1::int2, $2::int4, $3::int8, $4::bool, $5::float8, $6::text, $7::bytea, $8::uuid",
            parameterTypes: [.int2, .int4, .int8, .bool, .float8, .text, .bytea, .uuid])
        try await server.withConnection { connection in
            for isLow in [true, false] {
                var parameters = PostgresParameters()
                parameters.append(isLow ? Int16.min : .max)
                parameters.append(isLow ? Int32.min : .max)
                parameters.append(isLow ? Int64.min : .max)
                parameters.append(isLow)
                parameters.append(isLow ? -Double.infinity : 1.5)
                parameters.append(isLow ? "" : "Grüße 🛎\n\"'\\")
                parameters.append(bytes: isLow ? [] : [0, 255, 92, 39])
                parameters.append(uuid: isLow ? (0, 1) : (.max, 0x0123_4567_89AB_CDEF))
                let result = try await connection.query(statement, parameters)
                #expect(try result.int2(0, 0) == (isLow ? .min : .max))
                #expect(try result.int4(0, 1) == (isLow ? .min : .max))
                #expect(try result.int8(0, 2) == (isLow ? .min : .max))
                #expect(try result.bool(0, 3) == isLow)
                #expect(try result.float8(0, 4) == (isLow ? -Double.infinity : 1.5))
                #expect(try result.text(0, 5) == (isLow ? "" : "Grüße 🛎\n\"'\\"))
                #expect(try result.bytes(0, 6) == (isLow ? [] : [0, 255, 92, 39]))
                #expect(try result.uuid(0, 7) == (isLow ? (0, 1) : (.max, 0x0123_4567_89AB_CDEF)))
            }
        }
    }

    @Test(arguments: TestServer.allCases)
    func `Times, spans and bit strings mean the same on both sides`(server: TestServer) async throws {
        let statement = PostgresStatement(
            "times",
            """
            SELECT $1, $1 = '2026-11-30 01:02:03.000004+00', $2, $2 = interval '-1.5 seconds', $3, $3::text,
                   '2 days 00:00:01'::interval, 'infinity'::timestamptz, '-infinity'::timestamptz,
                   '0001-01-01 00:00+00 BC'::timestamptz, B'101'::varbit
            """, parameterTypes: [.timestamptz, .interval, .varbit])
        var bits = PostgresBits(repeating: false, count: 11)
        bits[0] = true
        bits[10] = true
        try await server.withConnection { connection in
            var parameters = PostgresParameters()
            parameters.append(timestamp: 1_796_000_523_000_004)
            parameters.append(.milliseconds(-1500))
            parameters.append(bits)
            let result = try await connection.query(statement, parameters)
            #expect(try result.timestamp(0, 0) == 1_796_000_523_000_004)
            #expect(try result.bool(0, 1))
            #expect(try result.duration(0, 2) == .milliseconds(-1500))
            #expect(try result.bool(0, 3))
            #expect(try result.bits(0, 4) == bits)
            #expect(try result.text(0, 5) == "10000000001")
            #expect(try result.duration(0, 6) == .seconds(172_801))
            #expect(try result.timestamp(0, 7) == .max)
            #expect(try result.timestamp(0, 8) == .min)
            #expect(try result.timestamp(0, 9) == -62_167_219_200_000_000)
            #expect(try result.bits(0, 10).description == "101")
        }
    }

    @Test(arguments: TestServer.allCases)
    func `Nulls are nulls, and an empty text is none`(server: TestServer) async throws {
        let statement = PostgresStatement(
            "nulls", "SELECT $1::int8, $2::text, $3::int8[]", parameterTypes: [.int8, .text, .int8.array])
        try await server.withConnection { connection in
            var parameters = PostgresParameters()
            parameters.appendNull()
            parameters.append("")
            parameters.appendNull()
            let result = try await connection.query(statement, parameters)
            #expect(result.isNull(0, 0))
            #expect(!result.isNull(0, 1))
            #expect(result.isNull(0, 2))
            let error = try await postgresError { _ = try result.int8(0, 0) }
            #expect(error.kind == .decoding)
        }
    }

    @Test(arguments: TestServer.allCases)
    func `Arrays of every type travel with nulls, empty and long`(server: TestServer) async throws {
        let types: [PostgresType] = [
            .int2, .int4, .int8, .bool, .float8, .text, .bytea, .uuid, .timestamptz, .interval, .varbit, .jsonb,
        ]
        let columns = types.indices.map { "$\($0 + 1), $\($0 + 1)::text, cardinality($\($0 + 1))" }
        let statement = PostgresStatement(
            "arrays", "SELECT " + columns.joined(separator: ", "), parameterTypes: types.map(\.array))
        try await server.withConnection { connection in
            _ = try await connection.execute("SET timezone = 'UTC'; SET intervalstyle = 'postgres'")
            for count in [0, 1, 3000] {
                var parameters = PostgresParameters()
                for type in types { parameters.append(Self.array(of: type, count: count)) }
                let result = try await connection.query(statement, parameters)
                for index in types.indices {
                    let length = try result.int4(0, 3 * index + 2)
                    #expect(length == Int32(count == 0 ? 0 : count + 1), "\(types[index])")
                    guard count == 1 else { continue }
                    #expect(try result.text(0, 3 * index + 1) == Self.printed[index])
                }
                let sum = try result.withArray(0, 6, of: .int8) { reader throws(PostgresError) in
                    var sum: Int64 = 0
                    var nulls = 0
                    for _ in 0..<reader.count {
                        if let value = try reader.nextInt8() { sum += value } else { nulls += 1 }
                    }
                    return [sum, Int64(nulls)]
                }
                #expect(sum == [(0..<count).reduce(0) { $0 + Int64($1) * 3 }, count == 0 ? 0 : 1])
            }
        }
    }

    private static let printed = [
        "{0,NULL}", "{0,NULL}", "{0,NULL}", "{t,NULL}", "{0.5,NULL}", "{\"text 0\",NULL}", #"{"\\x00",NULL}"#,
        "{00000000-0000-0001-0000-000000000000,NULL}", "{\"1970-01-01 00:00:00+00\",NULL}", "{00:00:00,NULL}",
        "{101,NULL}", "{[0],NULL}",
    ]

    /// `count` values and a null behind them; nothing at all for a count of 0.
    private static func array(of type: PostgresType, count: Int) -> PostgresArray {
        var array = PostgresArray(of: type, capacity: count)
        for index in 0..<count {
            switch type {
            case .int2: array.append(Int16(index))
            case .int4: array.append(Int32(index))
            case .int8: array.append(Int64(index) * 3)
            case .bool: array.append(index % 2 == 0)
            case .float8: array.append(Double(index) + 0.5)
            case .text: array.append("text \(index)")
            case .bytea: array.append(bytes: [UInt8(truncatingIfNeeded: index)])
            case .uuid: array.append(uuid: (1, UInt64(index)))
            case .timestamptz: array.append(timestamp: Int64(index))
            case .interval: array.append(.seconds(index))
            case .varbit: array.append(PostgresBits(repeating: true, count: 3 + index % 9).alternating)
            default: array.append(jsonb: Array("[\(index)]".utf8))
            }
        }
        if count > 0 { array.appendNull() }
        return array
    }

    @Test(arguments: TestServer.allCases)
    func `A result of a hundred thousand rows arrives whole`(server: TestServer) async throws {
        let statement = PostgresStatement(
            "many", "SELECT i::int8, 'row ' || i FROM generate_series(1, $1::int8) AS i", parameterTypes: [.int8])
        try await server.withConnection { connection in
            var parameters = PostgresParameters()
            parameters.append(Int64(100_000))
            let result = try await connection.query(statement, parameters)
            var arena: [UInt8] = []
            var sum: Int64 = 0
            for row in 0..<result.rowCount {
                sum += try result.int8(row, 0)
                let range = try result.append(row, 1, to: &arena)
                if row == 99_998 { #expect(String(decoding: arena[range], as: UTF8.self) == "row 99999") }
            }
            #expect(result.rowCount == 100_000)
            #expect(sum == 5_000_050_000)
        }
    }

    @Test(arguments: TestServer.allCases)
    func `A value of another type is an error, not a misreading`(server: TestServer) async throws {
        try await server.withConnection { connection in
            let statement = PostgresStatement("types", "SELECT 1::int4 AS number, 'x'::text AS word")
            let result = try await connection.query(statement)
            for read in [
                { _ = try result.int8(0, 0) }, { _ = try result.text(0, 0) }, { _ = try result.uuid(0, 1) },
                { _ = try result.withArray(0, 1, of: .int8) { reader throws(PostgresError) in reader.count } },
            ] {
                let error = try await postgresError { try read() }
                #expect(error.kind == .decoding)
                #expect(error.message.contains("column number") || error.message.contains("column word"))
            }
        }
    }
}

extension PostgresBits {
    /// Every second bit cleared, the first one kept.
    fileprivate var alternating: PostgresBits {
        var bits = self
        for index in stride(from: 1, to: count, by: 2) { bits[index] = false }
        return bits
    }
}
