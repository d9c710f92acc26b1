import JSONText
import Testing

struct JSONTests {
    @Test(arguments: [
        ("null", JSON.Kind.null), ("true", .boolean), ("false", .boolean), ("0", .integer), ("0.0", .real),
        ("1e0", .real),
        (#""""#, .string), ("[]", .array), ("{}", .object),
    ])
    func kindIsThatOfTheText(text: String, kind: JSON.Kind) throws {
        let json = try JSON.parse(text)
        #expect(json.kind == kind)
        #expect(json.isNull == (kind == .null))
    }

    @Test(arguments: ["null", "true", "7", "7.5", #""7""#, "[7]", #"{"a":7}"#])
    func accessorsOfOtherKindsAreNil(text: String) throws {
        let json = try JSON.parse(text)
        #expect((json.boolean != nil) == (json.kind == .boolean))
        #expect((json.integer != nil) == (json.kind == .integer))
        #expect((json.number != nil) == (json.kind == .integer || json.kind == .real))
        #expect((json.string != nil) == (json.kind == .string))
        #expect((json.withUTF8 { $0.count } != nil) == (json.kind == .string))
        #expect((json.elements != nil) == (json.kind == .array))
        #expect((json.members != nil) == (json.kind == .object))
        #expect((json["a"] != nil) == (json.kind == .object))
    }

    @Test func booleansAreDistinguished() throws {
        #expect(try JSON.parse("true").boolean == true)
        #expect(try JSON.parse("false").boolean == false)
    }

    @Test func numbersKeepTheirValue() throws {
        #expect(try JSON.parse("-42").integer == -42)
        #expect(try JSON.parse("-42").number == -42)
        #expect(try JSON.parse("41.25").number == 41.25)
        #expect(
            try JSON.parse("1.0").integer == nil, "a fraction of nothing is still no integer: ids are told apart by it")
    }

    @Test func membersKeepTheirOrder() throws {
        let json = try JSON.parse(#"{"zebra":1,"apple":2,"":3,"é":4}"#)
        #expect(json.members?.map(\.name) == ["zebra", "apple", "", "é"])
        #expect(json.members?.map(\.value.integer) == [1, 2, 3, 4])
    }

    @Test func elementsKeepTheirOrder() throws {
        #expect(try JSON.parse("[3,1,2]").elements?.map(\.integer) == [3, 1, 2])
    }

    @Test func stringsAreLentAsTheirBytes() throws {
        let json = try JSON.parse(#""a\u0000é\ud834\udd1e""#)
        #expect(json.withUTF8(Array.init) == [0x61, 0, 0xC3, 0xA9, 0xF0, 0x9D, 0x84, 0x9E])
        #expect(json.string == "a\u{0}é𝄞")
    }

    @Test func aMemberOutlivesTheMessageItCameFrom() throws {
        func member() throws -> JSON? { try JSON.parse(#"{"outer":{"inner":["kept"]}}"#)["outer"]?["inner"] }
        #expect(try member()?.elements?.first?.string == "kept")
    }

    @Test func namesCompareByteForByte() throws {
        let composed = "\u{E9}"
        let decomposed = "e\u{301}"
        let json = try JSON.parse("{\"\(composed)\":1,\"\(decomposed)\":2}")
        #expect(json[composed]?.integer == 1)
        #expect(json[decomposed]?.integer == 2)
    }

    @Test func equalityIsByContent() throws {
        #expect(try JSON.parse(#"{"a":[1,"x"],"b":null}"#) == JSON.parse(#"{ "b" : null, "a" : [1, "x"] }"#))
        #expect(try JSON.parse("1") != JSON.parse("1.0"))
        #expect(try JSON.parse("[1,2]") != JSON.parse("[2,1]"))
        #expect(try JSON.parse(#"{"a":null}"#) != JSON.parse("{}"))
        #expect(try JSON.parse("\"\u{E9}\"") != JSON.parse("\"e\u{301}\""))
    }

    @Test func nothingOfAValueIsPrinted() throws {
        let json = try JSON.parse(#"{"password":"hunter2","list":["hunter2"]}"#)
        var dumped = ""
        dump(json, to: &dumped)
        let nested: [String: JSON?] = ["message": json]
        for text in [
            json.description, "\(json)", String(reflecting: json), dumped, "\(nested)", String(reflecting: nested),
        ] {
            #expect(!text.contains("hunter2"))
            #expect(!text.contains("password"))
        }
        #expect(json.description == "JSON(object)")
    }

    @Test func aTreeIsReadFromManyThreads() async throws {
        let json = try JSON.parse(#"{"list":[1,2,3],"name":"x"}"#)
        let sums = await withTaskGroup(of: Int.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    (0..<500).reduce(0) { sum, _ in
                        sum + (json["list"]?.elements ?? []).compactMap(\.integer).reduce(0, +)
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(sums == Array(repeating: 3000, count: 8))
        #expect(json["name"]?.string == "x")
    }
}
