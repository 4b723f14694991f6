// swift-tools-version: 6.2
import PackageDescription

// Rings, arrows point down only (scripts/check holds the imports to it):
//   application   postbell, postbell-fake-providers, postbell-bench, Operations, DispatchRuntime
//   adapters      OutboxPostgres, APNS, FCM, Telemetry, FakeProviders
//   technique     EventLoop, Postgres, HTTP2, Credentials, CrashPoints
//   core          OutboxCore
// The C targets below them all are never part of a `package` signature.

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InferIsolatedConformances"),
    .treatAllWarnings(as: .error),
]

// Builds for tests have named steps at which a worker can be made to die (docs/faults.md). A release has none.
let crashPoints: [SwiftSetting] = [.define("CRASH_POINTS", .when(configuration: .debug))]

func library(
    _ name: String, _ dependencies: [Target.Dependency] = [], conditions: [SwiftSetting] = []
) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: settings + conditions)
}

func tool(_ name: String, _ dependencies: [Target.Dependency], conditions: [SwiftSetting] = []) -> Target {
    .executableTarget(name: name, dependencies: dependencies, swiftSettings: settings + conditions)
}

func tests(_ subject: String, _ dependencies: [Target.Dependency], exclude: [String] = []) -> Target {
    .testTarget(name: subject + "Tests", dependencies: dependencies, exclude: exclude, swiftSettings: settings)
}

let package = Package(
    name: "postbell",
    products: [
        .executable(name: "postbell", targets: ["postbell"]),
        .executable(name: "postbell-fake-providers", targets: ["postbell-fake-providers"]),
    ],
    targets: [
        // C
        .target(name: "CLinux"),
        .systemLibrary(name: "CLibPQ", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CNGHTTP2", pkgConfig: "libnghttp2", providers: [.apt(["libnghttp2-dev"])]),

        // core
        library("OutboxCore"),

        // technique
        library("CrashPoints", conditions: crashPoints),
        library("EventLoop", ["CLinux"]),
        library("Postgres", ["EventLoop", "CLibPQ", "COpenSSL", "CrashPoints"], conditions: crashPoints),
        library("HTTP2", ["EventLoop", "CLinux", "CNGHTTP2", "COpenSSL", "CrashPoints"], conditions: crashPoints),
        library("Credentials", ["CLinux", "COpenSSL"]),

        // adapters
        library("OutboxPostgres", ["OutboxCore", "Postgres", "EventLoop"]),
        library("APNS", ["OutboxCore", "HTTP2", "Credentials"]),
        library("FCM", ["OutboxCore", "HTTP2", "Credentials", "EventLoop"]),
        library("Telemetry"),
        library("FakeProviders", ["EventLoop", "CLinux", "CNGHTTP2", "COpenSSL", "Credentials"]),

        // application
        library(
            "DispatchRuntime", ["OutboxCore", "EventLoop", "HTTP2", "Telemetry", "CrashPoints"],
            conditions: crashPoints),
        library(
            "Operations",
            ["OutboxCore", "OutboxPostgres", "Postgres", "EventLoop", "HTTP2", "Telemetry", "CLinux"]
        ),
        tool(
            "postbell",
            [
                "OutboxCore", "OutboxPostgres", "Postgres", "EventLoop", "HTTP2", "Credentials", "APNS",
                "FCM", "Telemetry", "DispatchRuntime", "Operations", "CrashPoints",
            ],
            conditions: crashPoints
        ),
        tool("postbell-fake-providers", ["FakeProviders", "EventLoop"]),
        tool("postbell-bench", ["HTTP2", "EventLoop"]),

        // tests
        .target(
            name: "Support",
            dependencies: ["OutboxCore", "EventLoop", "HTTP2", "Postgres", "OutboxPostgres"],
            path: "Tests/Support",
            exclude: ["Peers"],  // providers in other languages
            swiftSettings: settings
        ),
        .target(
            name: "Simulation", dependencies: ["OutboxCore"], path: "Tests/Simulation", swiftSettings: settings),
        .executableTarget(
            name: "postbell-simulation", dependencies: ["Simulation"], path: "Tests/SimulationProgram",
            swiftSettings: settings),
        .target(
            name: "Races",
            dependencies: ["OutboxCore", "OutboxPostgres", "Postgres", "EventLoop", "FakeProviders", "Support"],
            path: "Tests/Races", swiftSettings: settings),
        .executableTarget(
            name: "postbell-races", dependencies: ["Races", "Support"], path: "Tests/RaceProgram",
            swiftSettings: settings),
        .target(
            name: "HTTP2Simulation", dependencies: ["Simulation", "HTTP2", "EventLoop", "OutboxCore", "CNGHTTP2"],
            path: "Tests/HTTP2Simulation", swiftSettings: settings),
        .executableTarget(
            name: "postbell-http2-simulation", dependencies: ["HTTP2Simulation", "Simulation"],
            path: "Tests/HTTP2SimulationProgram", swiftSettings: settings),
        tests("OutboxCore", ["OutboxCore"]),
        tests("Race", ["Races", "Support"]),
        tests(
            "Simulation", ["Simulation", "OutboxCore", "OutboxPostgres", "Postgres", "EventLoop", "Support"],
            exclude: ["Mutants"]  // patches of the core
        ),
        tests(
            "HTTP2Simulation", ["HTTP2Simulation", "Simulation"],
            exclude: ["Mutants"]  // patches of the client
        ),
        tests("EventLoop", ["EventLoop"]),
        tests("Postgres", ["Postgres", "EventLoop", "Support"], exclude: ["Peers"]),  // a proxy in another language
        tests(
            "HTTP2", ["HTTP2", "EventLoop", "FakeProviders", "CNGHTTP2", "COpenSSL", "CLinux", "Support"],
            exclude: ["Peers"]  // servers in other languages
        ),
        tests("Credentials", ["Credentials"]),
        tests(
            "OutboxPostgres",
            ["OutboxPostgres", "OutboxCore", "APNS", "FCM", "HTTP2", "Postgres", "EventLoop", "Support"],
            exclude: ["Golden"]  // pushes as the shipped catalogs make them
        ),
        tests("APNS", ["APNS", "OutboxCore", "HTTP2", "Credentials", "EventLoop", "FakeProviders", "Support"]),
        tests(
            "FCM", ["FCM", "OutboxCore", "HTTP2", "Credentials", "EventLoop", "FakeProviders", "Support"],
            exclude: ["fcm.v1.discovery.json"]  // Google's schema, read by the tests
        ),
        tests(
            "Providers",
            ["APNS", "FCM", "OutboxCore", "HTTP2", "Credentials", "EventLoop", "FakeProviders", "Support"]),
        tests("Telemetry", ["Telemetry"]),
        tests(
            "Operations",
            [
                "Operations", "OutboxCore", "OutboxPostgres", "Postgres", "HTTP2", "Telemetry", "FakeProviders",
                "Support",
            ]),
        tests("DispatchRuntime", ["DispatchRuntime", "OutboxCore", "EventLoop", "HTTP2", "Telemetry", "Support"]),
        tests("FakeProviders", ["FakeProviders", "EventLoop", "HTTP2", "Credentials"]),
        tests("EndToEnd", ["Support", "EventLoop", "Postgres", "Credentials", "FakeProviders"]),
    ]
)
