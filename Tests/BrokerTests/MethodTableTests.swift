import Foundation
import JSONText
import Testing
import WatchwordProtocol

@testable import Broker

/// The broker's table of methods, the OpenRPC document and the specification say the same.
struct MethodTableTests {
    private static let root = URL(filePath: #filePath).appending(path: "../../..").standardized

    private static func text(_ path: String) throws -> [UInt8] {
        Array(try Data(contentsOf: root.appending(path: path)))
    }

    private static func json(_ path: String) throws -> JSON {
        try JSON.parse(text(path), limits: JSONLimits(depth: 64, values: 1_000_000))
    }

    /// The methods of the document that clients call, in its order.
    private static let described: [(name: String, description: JSON)] = {
        let methods = (try? json("Protocol/openrpc.json")["methods"]?.elements) ?? []
        return methods.filter { $0["x-direction"]?.string == "clientToBroker" }.map { ($0["name"]?.string ?? "", $0) }
    }()

    @Test func theDocumentDescribesEachMethodThatHasAHandler() throws {
        #expect(Set(Self.described.map(\.name)) == Set(MethodTable.all.entries.keys))
        for (name, entry) in MethodTable.all.entries { #expect(entry.method.name == name) }
    }

    /// A method type without a handler is not offered to any client.
    @Test func eachTypeHasAHandler() throws {
        let folder = Self.root.appending(path: "Sources/WatchwordProtocol/Methods")
        let conformance = /public (?:struct|enum) (\w+): (?:\w*Method)\b/
        let types = try FileManager.default.contentsOfDirectory(atPath: folder.path).flatMap { file in
            try String(contentsOf: folder.appending(path: file), encoding: .utf8)
                .matches(of: conformance).map { String($0.1) }
        }
        #expect(types.sorted() == MethodTable.all.entries.values.map { "\($0.method)" }.sorted())
    }

    @Test func theSpecificationListsTheAccessOfEachMethod() throws {
        let rows = Self.described.map { name, description in
            let access = MethodTable.all[name]?.method.access
            let summary = description["summary"]?.string ?? ""
            return "| `\(name)` | \(summary) | \(access == .everyClient ? "yes" : "no") |"
        }
        let head = ["| method | purpose | restricted and sandboxed clients |", "| --- | --- | --- |"]
        let table = (head + rows).joined(separator: "\n")
        let specification = String(decoding: try Self.text("Protocol/SPECIFICATION.md"), as: UTF8.self)
        #expect(specification.contains("\n\n\(table)\n\n"), "the table of SPECIFICATION.md has to be:\n\(table)")
    }

    @Test func theExamplesCanBeReadAndNoRequiredParameterIsLeftOut() throws {
        var count = 0
        for (name, description) in Self.described {
            let method = try #require(MethodTable.all[name]?.method)
            let params = description["params"]?.elements ?? []
            let required = params.filter { $0["required"]?.boolean == true }.compactMap { $0["name"]?.string }
            let folder = "Protocol/examples/" + name.replacing("/", with: ".")
            for file in try FileManager.default.contentsOfDirectory(atPath: Self.root.appending(path: folder).path) {
                let example = try Self.json("\(folder)/\(file)")
                guard example["method"]?.string == name, let given = example["params"],
                    !["invalidParams", "notSupported"].contains(example["error"]?["data"]?["kind"]?.string)
                else { continue }
                #expect(throws: Never.self, "\(folder)/\(file)") { _ = try method.init(given) }
                for missing in required {
                    let rest = given.adding([missing: .null])
                    #expect(throws: InvalidParams.self, "\(name) without \(missing)") { _ = try method.init(rest) }
                }
                #expect(throws: InvalidParams.self, "\(name) with an unknown member") {
                    _ = try method.init(given.adding(["unknown": 1]))
                }
                count += 1
            }
        }
        #expect(count > 60)
    }
}
