// swift-tools-version: 6.0
import PackageDescription

// Measures the cost of a broker in Swift with client sockets and libcurl on one epoll loop. Not an example of style.
//   swift build -c release --static-swift-stdlib && .build/release/one_loop SOCKET
let package = Package(
    name: "one_loop",
    targets: [
        .systemLibrary(name: "CLibraries"),
        .executableTarget(
            name: "one_loop", dependencies: ["CLibraries"], swiftSettings: [.swiftLanguageMode(.v5)],
            linkerSettings: [.linkedLibrary("curl"), .linkedLibrary("jansson")]),
    ])
