// swift-tools-version: 6.2
import Glibc
import PackageDescription

let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
]

/// How the programs are linked. Only programs have such options: SwiftPM accepts none in a library that another package depends on by
/// its version.
/// - The dynamic linker finds all functions before `main`. Its lazy resolver saves vector registers on the stack, and they may hold
///   a part of a password.
/// - Libraries that nothing is needed of are not loaded: those of the keyring, see CSecretLoader. The option has to be in front of
///   all libraries, where only a configuration file of clang can put it.
/// - In a release the C++ runtime is linked in, and the program's own symbols are not exported.
/// - Relocations are packed where the C library can read that: 10 kB in place of a megabyte to read at each start.
let linking: [LinkerSetting] = [
    .unsafeFlags(
        ["-use-ld=lld", "-Xlinker", "-z", "-Xlinker", "relro", "-Xlinker", "-z", "-Xlinker", "now"]
            + options("as-needed")),
    .unsafeFlags(["-Xlinker", "--no-export-dynamic"] + options("static-runtime"), .when(configuration: .release)),
    .unsafeFlags(libcMinorVersion >= 36 ? ["-Xlinker", "-z", "-Xlinker", "pack-relative-relocs"] : []),
]

func options(_ name: String) -> [String] {
    ["-Xclang-linker", "--config=\(Context.packageDirectory)/contrib/linking/\(name).cfg"]
}

/// The 36 of version 2.36 of the GNU C library.
var libcMinorVersion: Int {
    let text = String(unsafeUninitializedCapacity: 64) { text in
        text.withMemoryRebound(to: CChar.self) {
            max(confstr(Int32(_CS_GNU_LIBC_VERSION), $0.baseAddress, $0.count), 1) - 1
        }
    }
    return Int(text.dropFirst("glibc 2.".count)) ?? 0
}

/// A Swift package of Apple. A Debian source package (contrib/make-deb --source) contains copies, and is built without a network.
func dependency(_ name: String, from version: Version) -> Package.Dependency {
    let copy = "\(Context.packageDirectory)/Dependencies/\(name)"
    let isCopied = access(copy, F_OK) == 0
    return isCopied ? .package(path: copy) : .package(url: "https://github.com/apple/\(name)", from: version)
}

let package = Package(
    name: "watchword",
    products: [
        .executable(name: "watchwordd", targets: ["watchwordd"]),
        .executable(name: "watchword", targets: ["watchword"]),
        .executable(name: "watchword-pac", targets: ["watchword-pac"]),
        .library(name: "WatchwordClient", targets: ["WatchwordClient"]),
        .library(name: "WatchwordAsync", targets: ["WatchwordAsync"]),
    ],
    dependencies: [
        dependency("swift-argument-parser", from: "1.8.2"),
        dependency("swift-log", from: "1.16.2"),
    ],
    targets: [
        // C: system libraries behind shims with full names, nothing else.
        .systemLibrary(name: "CJansson", pkgConfig: "jansson", providers: [.apt(["libjansson-dev"])]),
        .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CGSSAPI", providers: [.apt(["libkrb5-dev"])]),
        .systemLibrary(name: "CSecret", pkgConfig: "libsecret-1", providers: [.apt(["libsecret-1-dev"])]),
        .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(name: "CDuktape", pkgConfig: "duktape", providers: [.apt(["duktape-dev"])]),
        // Loads libsecret when it is first needed.
        .target(name: "CSecretLoader"),
        .target(name: "CPlatform"),
        .target(name: "CKeyDerivation", dependencies: ["COpenSSL"]),
        .target(name: "CProtocolDocument"),
        .target(name: "COAuthPresets"),
        // Replaces malloc(3) and free(3) in whatever program links it.
        .target(name: "CWipingHeap"),
        // C++ behind a C header: toml++ is a header of libtomlplusplus-dev, and nothing to link.
        .target(name: "CToml"),

        // Values and decisions: no sockets, threads or clocks.
        .target(name: "JSONText", dependencies: ["CJansson", "CPlatform"], swiftSettings: strict),
        .target(name: "WatchwordProtocol", dependencies: ["JSONText", "CPlatform"], swiftSettings: strict),
        .target(name: "WatchwordCore", dependencies: ["WatchwordProtocol", "COpenSSL"], swiftSettings: strict),

        // Adapters.
        .target(name: "Threads", dependencies: ["CPlatform"], swiftSettings: strict),
        .target(name: "EventLoop", dependencies: ["CPlatform", "Threads"], swiftSettings: strict),
        .target(name: "AuditTrail", dependencies: ["WatchwordProtocol", "JSONText"], swiftSettings: strict),
        .target(
            name: "Configuration", dependencies: ["COAuthPresets", "CToml", "WatchwordCore", "WatchwordProtocol"],
            swiftSettings: strict),
        .target(
            name: "Transfers",
            dependencies: [
                "EventLoop", "Threads", "WatchwordCore", "WatchwordProtocol", "CCurl", "CGSSAPI", "CKeyDerivation",
                "COpenSSL", "CPlatform", "CZlib",
            ],
            swiftSettings: strict),
        .target(
            name: "Keyring",
            dependencies: ["WatchwordCore", "WatchwordProtocol", "CSecret", "CSecretLoader", "CPlatform", "Threads"],
            swiftSettings: strict
        ),
        .target(
            name: "Broker",
            dependencies: [
                "WatchwordCore", "WatchwordProtocol", "JSONText", "CProtocolDocument",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict
        ),
        .target(
            name: "BrokerSocket",
            dependencies: [
                "Broker", "EventLoop", "WatchwordCore", "WatchwordProtocol", "CPlatform",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict
        ),
        .target(
            name: "WatchwordClient",
            dependencies: ["WatchwordProtocol", "JSONText", "CPlatform"],
            swiftSettings: strict
        ),

        // Apart from the client, because the helper needs neither its actor nor its thread.
        .target(
            name: "WatchwordAsync", dependencies: ["WatchwordClient", "WatchwordProtocol", "JSONText", "Threads"],
            swiftSettings: strict),

        // Programs.
        .executableTarget(
            name: "watchwordd",
            dependencies: [
                "AuditTrail", "Broker", "BrokerSocket", "Configuration", "EventLoop", "Keyring", "Transfers",
                "WatchwordCore", "WatchwordProtocol", "JSONText", "CPlatform", "CWipingHeap",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: strict,
            linkerSettings: linking
        ),
        .executableTarget(
            name: "watchword",
            dependencies: [
                "WatchwordClient", "WatchwordProtocol", "JSONText", "CPlatform",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: strict,
            linkerSettings: linking
        ),

        // Evaluates PAC files; in C, because its process holds nothing but a script.
        .executableTarget(name: "watchword-pac", dependencies: ["CDuktape"], linkerSettings: linking),

        // The clients' examples, so that they are built wherever everything is.
        .executableTarget(
            name: "ClientExample", dependencies: ["WatchwordClient"], path: "contrib/clients/swift", exclude: ["async"],
            swiftSettings: strict),
        .executableTarget(
            name: "AsyncClientExample", dependencies: ["WatchwordAsync"], path: "contrib/clients/swift/async",
            swiftSettings: strict),

        // Tests mirror Sources, target for target.
        .target(name: "TestSystemCalls", path: "Tests/TestSystemCalls"),
        .target(name: "TestEnvironment", dependencies: ["COpenSSL"], path: "Tests/TestEnvironment"),
        .testTarget(
            name: "CPlatformTests", dependencies: ["CPlatform", "TestServers", "TestSystemCalls"],
            swiftSettings: strict),
        .testTarget(name: "JSONTextTests", dependencies: ["JSONText", "TestServers"], swiftSettings: strict),
        .testTarget(
            name: "WatchwordProtocolTests", dependencies: ["WatchwordProtocol", "JSONText", "TestServers"],
            swiftSettings: strict),
        .testTarget(
            name: "WatchwordCoreTests", dependencies: ["WatchwordCore", "WatchwordProtocol", "JSONText", "COpenSSL"],
            swiftSettings: strict),
        .testTarget(
            name: "CKeyDerivationTests", dependencies: ["CKeyDerivation", "COpenSSL"], swiftSettings: strict),
        .testTarget(name: "ThreadsTests", dependencies: ["Threads"], swiftSettings: strict),
        .testTarget(name: "EventLoopTests", dependencies: ["EventLoop"], swiftSettings: strict),
        .testTarget(
            name: "AuditTrailTests", dependencies: ["AuditTrail", "WatchwordProtocol", "JSONText"],
            swiftSettings: strict),
        .testTarget(
            name: "ConfigurationTests",
            dependencies: ["Configuration", "WatchwordCore", "WatchwordProtocol", "TestServers"],
            swiftSettings: strict),
        .target(
            name: "TestServers", dependencies: ["TestEnvironment", "WatchwordProtocol", "COpenSSL"],
            path: "Tests/TestServers",
            swiftSettings: strict),
        .testTarget(
            name: "LibcurlProbeTests", dependencies: ["TestServers", "TestSystemCalls", "CCurl", "COpenSSL"],
            swiftSettings: strict),
        .testTarget(
            name: "TransfersTests",
            dependencies: [
                "TestEnvironment", "TestServers", "Transfers", "EventLoop", "WatchwordCore", "WatchwordProtocol",
                "CGSSAPI", "COpenSSL",
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
                "TestServers", "BrokerSocket", "Broker", "EventLoop", "WatchwordProtocol", "JSONText", "CPlatform",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "watchwordTests",
            dependencies: [
                "watchword", "Configuration", "WatchwordProtocol", "JSONText",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "WatchwordClientTests",
            dependencies: ["WatchwordClient", "WatchwordAsync", "WatchwordProtocol", "JSONText", "TestServers"],
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
