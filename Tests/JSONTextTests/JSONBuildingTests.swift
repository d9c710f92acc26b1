import JSONText
import Testing

struct JSONBuildingTests {
    @Test func everyKindIsBuilt() {
        #expect(JSON.null.text == "null")
        #expect(JSON.boolean(true).text == "true")
        #expect(JSON.boolean(false).text == "false")
        #expect(JSON.integer(.min).text == "-9223372036854775808")
        #expect(JSON.real(0.5)?.text == "0.5")
        #expect(JSON.string("x").text == #""x""#)
        #expect(JSON.array([1, "two", .null]).text == #"[1,"two",null]"#)
        #expect(JSON.object([("b", 1), ("a", [])]).text == #"{"b":1,"a":[]}"#)
    }

    @Test(arguments: [Double.infinity, -.infinity, .nan, .signalingNaN])
    func nonFiniteNumbersAreNotBuilt(value: Double) {
        #expect(JSON.real(value) == nil)
    }

    @Test func membersWithoutValueAreLeftOut() {
        let absent: String? = nil
        let json: JSON = ["first": 1, "absent": absent.map { .string($0) }, "null": .null, "last": 2]
        #expect(json.text == #"{"first":1,"null":null,"last":2}"#)
    }

    @Test func anEmptyListOfMembersIsAnObject() {
        #expect(JSON.object([]).text == "{}")
        #expect(JSON.array([]).text == "[]")
    }

    @Test func literalsEqualTheParsedText() throws {
        let json: JSON = ["text": "é\n", "number": 7, "flag": false, "list": [1, [2]], "object": ["x": true]]
        #expect(try json == JSON.parse(#"{"text":"é\n","number":7,"flag":false,"list":[1,[2]],"object":{"x":true}}"#))
        #expect(json.members?.map(\.name) == ["text", "number", "flag", "list", "object"])
    }

    @Test(arguments: ["", "plain", "é𝄞", "a\u{0}b", "\u{1}\u{1F}\u{7F}", "\u{FFFF}\u{10FFFF}"])
    func stringsStayTheSameByteForByte(text: String) {
        let json = JSON.string(text)
        #expect(json.withUTF8(Array.init) == Array(text.utf8))
        #expect(Array(text.utf8).withUnsafeBytes { JSON.string(secret: $0) } == json)
    }

    @Test func noBytesAreTheEmptyString() {
        #expect(JSON.string(secret: UnsafeRawBufferPointer(start: nil, count: 0))?.string == "")
    }

    @Test(arguments: JSONConformanceTests.notUTF8)
    func invalidUTF8IsNotAString(bytes: [UInt8]) {
        #expect(bytes.withUnsafeBytes { JSON.string(secret: $0) } == nil)
    }

    /// Contains each kind of value that a writer writes.
    private final class Written: JSONWritable {
        func write(to writer: inout JSONWriter) {
            writer.beginObject()
            writer.member("text", "é\"")
            writer.member("number", -7)
            writer.member("time", 41.2)
            writer.member("tree", ["a": [1, []]])
            writer.name("list")
            writer.beginArray()
            for _ in 0..<2 {
                writer.separate()
                writer.beginArray()
                writer.endArray()
            }
            writer.separate()
            writer.append("z")
            writer.endArray()
            writer.name("none")
            writer.beginObject()
            writer.endObject()
            writer.member("last", .null)
            writer.endObject()
        }
    }

    @Test func aValueThatWritesItselfIsWrittenInPlaceAndReadAsATree() throws {
        let text =
            #"{"text":"é\"","number":-7,"time":41.2,"tree":{"a":[1,[]]},"#
            + #""list":[[],[],"z"],"none":{},"last":null}"#
        let json = JSON.written(Written())
        #expect(json.text == text && JSON.array([1, json, 2]).text == "[1,\(text),2]")
        #expect(try json == JSON.parse(text) && json != .written(Other()))
        #expect(json.kind == .object && json["number"]?.integer == -7 && json.members?.count == 7)
        #expect(json.elements == nil && json.string == nil && json.boolean == nil && json.number == nil)
        #expect(JSON.written(Other()).elements?.first?.string == "one")
        #expect(json.adding(["last": 1])["last"]?.integer == 1)
    }

    private final class Other: JSONWritable {
        func write(to writer: inout JSONWriter) {
            writer.beginArray()
            writer.separate()
            writer.append("one")
            writer.endArray()
        }
    }

    @Test func addingPutsNewMembersLastAndReplacesInPlace() {
        let original: JSON = ["a": 1, "b": 2]
        let extended = original.adding(["c": 3, "a": "new", "absent": nil])
        #expect(extended.text == #"{"a":"new","b":2,"c":3}"#)
        #expect(original.text == #"{"a":1,"b":2}"#, "the original value is unchanged")
    }

    @Test func addingToAnythingElseChangesNothing() {
        #expect(JSON.array([1]).adding(["a": 1]) == [1])
    }

    @Test func addingContentsPutsThemLast() {
        let first: JSON = ["a": 1, "b": 2]
        #expect(first.adding(["c": [3], "b": 0]).text == #"{"a":1,"b":0,"c":[3]}"#)
        #expect(first.text == #"{"a":1,"b":2}"#)
    }

    @Test func aPartOfOneMessageIsReusedInAnother() throws {
        func reply() throws -> JSON {
            let request = try JSON.parse(#"{"id":"x-1","params":{"list":[1,2]}}"#)
            return ["id": request["id"], "echo": request["params"]?["list"]]
        }
        #expect(try reply().text == #"{"id":"x-1","echo":[1,2]}"#)
    }
}
