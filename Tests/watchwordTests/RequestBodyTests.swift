import ArgumentParser
import Foundation
import Testing

@testable import watchword

@Suite struct RequestBodyTests {
    /// Creates a file for one test.
    private func file(_ text: String, name: String = "body") throws -> String {
        let folder = FileManager.default.temporaryDirectory.appending(path: "watchword-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let path = folder.appending(path: name).path
        try Data(text.utf8).write(to: URL(filePath: path))
        return path
    }

    private func text(_ content: RequestContent?) throws -> String? {
        try content.map { String(decoding: try $0.bytes(), as: UTF8.self) }
    }

    private func body(_ arguments: [String]) throws -> String? {
        try text(content(arguments))
    }

    private func content(_ arguments: [String]) throws -> RequestContent? {
        try BodyOptions.parse(arguments).requests(for: ["http://h/x"], arguments: [0]).first?.content
    }

    @Test func dataIsJoinedInTheOrderOfTheCommand() throws {
        let path = try file("one\r\ntwo\n")
        #expect(
            try body(["--data-raw", "@a", "-d", "b=c", "--data-urlencode", "d= &", "-d", "e"]) == "@a&b=c&d=+%26&e")
        #expect(try body(["-d", "@\(path)"]) == "onetwo")
        #expect(try body(["--data-binary", "@\(path)"]) == "one\r\ntwo\n")
        #expect(try body(["--data-binary", "x", "--data-binary", "@\(path)"]) == "x&one\r\ntwo\n")
        #expect(try body(["--data-urlencode", "@\(path)"]) == "one%0D%0Atwo%0A")
        #expect(try body(["--data-urlencode", "n@\(path)"]) == "n=one%0D%0Atwo%0A")
        #expect(try body(["--data-urlencode", "=a=b"]) == "a%3Db" && body(["--data-urlencode", "ü~"]) == "%C3%BC~")
        #expect(try body(["-d", "-L"]) == "-L" && body([]) == nil)
        #expect(throws: (any Error).self) { try body(["-d", "@/nonexistent"]) }
    }

    @Test func filesStayWhereTheyAreUntilTheyAreSent() throws {
        let path = try file("content")
        let content = try #require(try self.content(["--data-binary", "a", "--data-binary", "@\(path)"]))
        #expect(content.parts == [.bytes(Array("a&".utf8)), .file(path: path, sizeBytes: 7)])
        #expect(content.sizeBytes == 9 && content.isRepeatable)
        #expect(try text(content) == "a&content" && text(content) == "a&content")
        try Data("short".utf8).write(to: URL(filePath: path))
        #expect(throws: (any Error).self) { try content.bytes() }
        let stream = try #require(try self.content(["-T", "-"]))
        #expect(stream.sizeBytes == nil && !stream.isRepeatable)
    }

    private static let fields: [(argument: String, fields: [FormField])] = [
        ("a=b", [FormField(name: "a", source: .text("b"))]), ("a=", [FormField(name: "a", source: .text(""))]),
        ("a= b \n", [FormField(name: "a", source: .text("b"))]),
        ("a=@ f ; type=t/u", [FormField(name: "a", source: .upload(path: "f"), type: "t/u")]),
        ("a=b,c", [FormField(name: "a", source: .text("b,c"))]),
        ("a=b;type=text/x", [FormField(name: "a", source: .text("b"), type: "text/x")]),
        ("a=\"b;c\\\"\\\\\\d\"", [FormField(name: "a", source: .text("b;c\"\\\\d"))]),
        ("a=\"b", [FormField(name: "a", source: .text("\"b"))]),
        ("a=@f", [FormField(name: "a", source: .upload(path: "f"))]),
        (
            "a=@f;filename=g;type=text/plain; charset=x;headers=\"X-A: b\"",
            [
                FormField(
                    name: "a", source: .upload(path: "f"), type: "text/plain; charset=x", fileName: "g",
                    headers: ["X-A: b"])
            ]
        ),
        (
            "a=@\"f,1\";type=t/u,g",
            [
                FormField(name: "a", source: .upload(path: "f,1"), type: "t/u"),
                FormField(name: "a", source: .upload(path: "g")),
            ]
        ),
        ("a=<f;type=t/u", [FormField(name: "a", source: .content(path: "f"), type: "t/u")]),
    ]

    @Test(arguments: fields.indices)
    func parsesFormFields(index: Int) throws {
        #expect(try FormField.parse(Self.fields[index].argument) == Self.fields[index].fields)
    }

    @Test(arguments: [
        "a", "a=b;c", "a=(;type=multipart/mixed", "a=b;headers=@f", "a=b;headers=none", "a=b;encoder=8bit",
    ])
    func refusesOtherFields(argument: String) {
        #expect(throws: (any Error).self) { try FormField.parse(argument) }
    }

    @Test func writesAForm() throws {
        let picture = try file("PNG", name: "a \"b\".PNG")
        let (note, unknown) = (try file("note", name: "note.txt"), try file("?", name: "x"))
        var fields = try FormField.parse("n\"\r\nm=v")
        for argument in ["p=@\(picture)", "x=@\(unknown);filename=u", "c=<\(note)", "d=<\(unknown)"] {
            fields += try FormField.parse(argument)
        }
        fields.append(try FormField.literal("s=@;type=x"))
        let expected = """
            --B\r\nContent-Disposition: form-data; name="n%22%0D%0Am"\r\n\r\nv\r\n\
            --B\r\nContent-Disposition: form-data; name="p"; filename="a %22b%22.PNG"\r\nContent-Type: image/png\r\n\r\nPNG\r\n\
            --B\r\nContent-Disposition: form-data; name="x"; filename="u"\r\nContent-Type: application/octet-stream\r\n\r\n?\r\n\
            --B\r\nContent-Disposition: form-data; name="c"\r\nContent-Type: text/plain\r\n\r\nnote\r\n\
            --B\r\nContent-Disposition: form-data; name="d"\r\n\r\n?\r\n\
            --B\r\nContent-Disposition: form-data; name="s"\r\n\r\n@;type=x\r\n--B--\r\n
            """
        #expect(try text(Multipart.content(fields, boundary: "B")) == expected)
        #expect(Multipart.randomBoundary() != Multipart.randomBoundary() && Multipart.randomBoundary().count == 48)
    }

    @Test func aRequestHasOneBody() throws {
        for arguments in [["-d", "a", "-F", "a=b"], ["-T", "f", "-d", "a"]] {
            #expect(throws: (any Error).self) { try BodyOptions.parse(arguments) }
        }
    }

    @Test func queryDataIsAppendedToTheURL() throws {
        let get = try BodyOptions.parse(["-G", "-d", "a=b", "--data-urlencode", "c=d e"])
        let urls = try get.requests(for: ["http://h/x", "http://h/x?y#z"], arguments: [0, 1]).map(\.url)
        #expect(urls == ["http://h/x?a=b&c=d+e", "http://h/x?y&a=b&c=d+e#z"] && get.method(at: 0) == nil)
        #expect(
            try BodyOptions.parse(["-G", "-d", ""]).requests(for: ["http://h/x"], arguments: [0]).map(\.url) == [
                "http://h/x"
            ])
        let query = try BodyOptions.parse(["--url-query", "a=b c", "--url-query", "+d e", "-d", "x"])
        #expect(try query.requests(for: ["http://h/x?y"], arguments: [0]).map(\.url) == ["http://h/x?y&a=b+c&d e"])
        #expect(BodyOptions.named("http://h/x/", file: "a/b c") == "http://h/x/b%20c")
        #expect(
            BodyOptions.named("http://h", file: "b") == "http://h/b"
                && BodyOptions.named("http://h/x", file: "b") == "http://h/x")
        #expect(
            BodyOptions.named("http://h/", file: "-") == "http://h/"
                && BodyOptions.named("http://h/?q/", file: "b") == "http://h/b?q/"
                && BodyOptions.named("http://h/x?q/", file: "b") == "http://h/x?q/"
                && BodyOptions.named("http://h/", file: ".") == "http://h/")
    }
}
