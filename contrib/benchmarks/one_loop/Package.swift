// swift-tools-version: 6.0
import PackageDescription

// A measuring stick and no model of style: what a broker in Swift costs when client sockets and libcurl share one epoll loop.
//   swift build -c release --static-swift-stdlib && .build/release/one_loop SOCKET
let package = Package(
    name: "one_loop",
    targets: [
        .systemLibrary(name: "CLibraries"),
        .executableTarget(
            name: "one_loop", dependencies: ["CLibraries"], swiftSettings: [.swiftLanguageMode(.v5)],
            linkerSettings: [.linkedLibrary("curl"), .linkedLibrary("jansson")]),
    ])
