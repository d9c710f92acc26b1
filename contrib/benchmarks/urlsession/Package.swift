// swift-tools-version: 6.0
import PackageDescription

// A benchmark peer: Foundation's URLSession in the process, with a delegate that answers the challenge.
let package = Package(name: "urlsession", targets: [.executableTarget(name: "urlsession")])
