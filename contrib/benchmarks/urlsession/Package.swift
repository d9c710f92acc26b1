// swift-tools-version: 6.0
import PackageDescription

// A peer: Foundation's URLSession in the process that wants the pages, its delegate answering the challenge.
let package = Package(name: "urlsession", targets: [.executableTarget(name: "urlsession")])
