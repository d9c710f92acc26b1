// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
]

/// The dynamic linker finds all functions before `main`. Its lazy resolver saves vector registers on the stack, and they may hold
/// a part of a password.
let boundAtStart: [LinkerSetting] = [
    .unsafeFlags(["-Xlinker", "-z", "-Xlinker", "relro", "-Xlinker", "-z", "-Xlinker", "now"])
]

let package = Package(
    name: "watchword",
    products: [
        .executable(name: "watchwordd", targets: ["watchwordd"]),
        .executable(name: "watchword", targets: ["watchword"]),
        .library(name: "WatchwordClient", targets: ["WatchwordClient"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    ],
    targets: [
        // C: system libraries behind shims with full names, nothing else.
        .systemLibrary(name: "CJansson", pkgConfig: "jansson", providers: [.apt(["libjansson-dev"])]),
        .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CGSSAPI", providers: [.apt(["libkrb5-dev"])]),
        .systemLibrary(name: "CSecret", pkgConfig: "libsecret-1", providers: [.apt(["libsecret-1-dev"])]),
        .target(name: "CPlatform"),
        .target(name: "CProtocolDocument"),
        // Replaces free(3) in whatever program links it.
        .target(name: "CWipingHeap"),
        // C++ behind a C header: toml++ is a header of libtomlplusplus-dev, and nothing to link.
        .target(name: "CToml"),

        // Values and decisions: no sockets, threads or clocks.
        .target(name: "JSONText", dependencies: ["CJansson", "CPlatform"], swiftSettings: strict),
        .target(name: "WatchwordProtocol", dependencies: ["JSONText", "CPlatform"], swiftSettings: strict),
        .target(name: "WatchwordCore", dependencies: ["WatchwordProtocol", "COpenSSL"], swiftSettings: strict),

        // Adapters.
        .target(name: "EventLoop", dependencies: ["CPlatform"], swiftSettings: strict),
        .target(name: "AuditTrail", dependencies: ["WatchwordProtocol", "JSONText"], swiftSettings: strict),
        .target(name: "Configuration", dependencies: ["CToml", "WatchwordProtocol"], swiftSettings: strict),
        .target(
            name: "Transfers",
            dependencies: [
                "EventLoop", "WatchwordCore", "WatchwordProtocol", "CCurl", "CGSSAPI", "COpenSSL", "CPlatform",
            ],
            swiftSettings: strict),
        .target(
            name: "Keyring",
            dependencies: ["WatchwordCore", "WatchwordProtocol", "CSecret", "CPlatform"],
            swiftSettings: strict
        ),
        .target(
            name: "Broker",
            dependencies: [
                "WatchwordCore", "WatchwordProtocol", "JSONText", .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict
        ),
        .target(
            name: "BrokerSocket",
            dependencies: [
                "Broker", "EventLoop", "WatchwordProtocol", "CPlatform",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict
        ),
        .target(
            name: "WatchwordClient",
            dependencies: ["WatchwordProtocol", "JSONText", "CPlatform"],
            swiftSettings: strict
        ),

        // Programs.
        .executableTarget(
            name: "watchwordd",
            dependencies: [
                "AuditTrail", "Broker", "BrokerSocket", "Configuration", "EventLoop", "Keyring", "Transfers",
                "WatchwordCore", "WatchwordProtocol", "JSONText", "CPlatform", "CWipingHeap", "CProtocolDocument",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: strict,
            linkerSettings: boundAtStart
        ),
        .executableTarget(
            name: "watchword",
            dependencies: [
                "WatchwordClient", "WatchwordProtocol", "JSONText", "CPlatform",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: strict
        ),

        // The client's example, so that it is built wherever everything is.
        .executableTarget(
            name: "ClientExample", dependencies: ["WatchwordClient"], path: "contrib/clients/swift",
            swiftSettings: strict),

        // Tests mirror Sources, target for target.
        .target(name: "TestSystemCalls", path: "Tests/TestSystemCalls"),
        .testTarget(name: "CPlatformTests", dependencies: ["CPlatform", "TestSystemCalls"], swiftSettings: strict),
        .testTarget(name: "JSONTextTests", dependencies: ["JSONText"], swiftSettings: strict),
        .testTarget(
            name: "WatchwordProtocolTests", dependencies: ["WatchwordProtocol", "JSONText"], swiftSettings: strict),
        .testTarget(
            name: "WatchwordCoreTests", dependencies: ["WatchwordCore", "WatchwordProtocol", "JSONText"],
            swiftSettings: strict),
        .testTarget(name: "EventLoopTests", dependencies: ["EventLoop"], swiftSettings: strict),
        .testTarget(
            name: "AuditTrailTests", dependencies: ["AuditTrail", "WatchwordProtocol", "JSONText"],
            swiftSettings: strict),
        .testTarget(
            name: "ConfigurationTests", dependencies: ["Configuration", "WatchwordProtocol"], swiftSettings: strict),
        .target(
            name: "TestServers", dependencies: ["WatchwordProtocol", "COpenSSL"], path: "Tests/TestServers",
            swiftSettings: strict),
        .testTarget(
            name: "LibcurlProbeTests", dependencies: ["TestServers", "CCurl", "COpenSSL"], swiftSettings: strict),
        .testTarget(
            name: "TransfersTests",
            dependencies: [
                "TestServers", "Transfers", "EventLoop", "WatchwordCore", "WatchwordProtocol", "CGSSAPI", "COpenSSL",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "KeyringTests", dependencies: ["TestServers", "Keyring", "WatchwordCore", "WatchwordProtocol"],
            swiftSettings: strict),
        .testTarget(
            name: "BrokerTests",
            dependencies: [
                "Broker", "WatchwordCore", "WatchwordProtocol", "JSONText",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "BrokerSocketTests",
            dependencies: [
                "TestServers", "BrokerSocket", "Broker", "EventLoop", "WatchwordProtocol", "CPlatform",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "watchwordTests",
            dependencies: [
                "watchword", "WatchwordProtocol", "JSONText",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "WatchwordClientTests", dependencies: ["WatchwordClient", "WatchwordProtocol", "JSONText"],
            swiftSettings: strict),
    ],
    cxxLanguageStandard: .cxx17
)

// The fuzzers' properties: a test over their corpora in every build, a program of libFuzzer's where contrib/fuzz/run builds it.
let fuzzed: [Target.Dependency] = [
    "Configuration", "Transfers", "WatchwordCore", "WatchwordProtocol", "JSONText", "CCurl", "COpenSSL",
]
if Context.environment["WATCHWORD_FUZZ"] == nil {
    package.targets.append(
        .testTarget(
            name: "FuzzTests", dependencies: fuzzed, path: "contrib/fuzz/Targets", exclude: ["FuzzMain.swift"],
            swiftSettings: strict))
} else {
    package.targets.append(
        .executableTarget(
            name: "fuzz", dependencies: fuzzed, path: "contrib/fuzz/Targets",
            exclude: ["CorpusTests.swift", "MutationTests.swift"],
            swiftSettings: strict + [.unsafeFlags(["-parse-as-library"])]))
}
