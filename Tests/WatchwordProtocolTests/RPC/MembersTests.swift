import JSONText
import Testing
import WatchwordProtocol

struct MembersTests {
    private enum Size: String, CaseIterable { case small, large }

    private func members(_ text: String) throws -> Members { try Members(try JSON.parse(text)) }

    @Test func readsEveryKind() throws {
        let members = try members(#"{"s":"x","b":false,"i":7,"l":[1],"o":{"s":"y"},"c":"large","p":"pw"}"#)
        #expect(try members.string("s") == "x")
        #expect(try members.boolean("b") == false)
        #expect(try members.integer("i", in: 0...7) == 7)
        #expect(try members.elements("l") == [1])
        #expect(try members.object("o")?.string("s") == "y")
        #expect(try members.choice("c", as: Size.self) == .large)
        #expect(try members.secret("p", maxBytes: 2)?.count == 2)
    }

    @Test(arguments: ["{}", #"{"x":null}"#])
    func absentAndNullMembersAreNil(text: String) throws {
        let members = try members(text)
        #expect(try members.string("x") == nil)
        #expect(try members.boolean("x") == nil)
        #expect(try members.integer("x", in: 1...2) == nil)
        #expect(try members.elements("x") == nil)
        #expect(try members.object("x") == nil)
        #expect(try members.choice("x", as: Size.self) == nil)
        #expect(try members.choices("x", as: Size.self) == nil)
        #expect(try members.secret("x", maxBytes: 1) == nil)
        #expect(members["x"] == nil)
        #expect(problem { try members.required("x", members.string("x")) } == "params.x is missing")
    }

    @Test func absentParamsAreAnEmptyObject() throws {
        #expect(try Members(nil).string("x") == nil)
    }

    @Test func aWrongKindIsReportedWithItsPath() throws {
        let members = try members(#"{"x":[],"y":1.5,"o":{"inner":{"deep":true}}}"#)
        #expect(problem { try members.string("x") } == "params.x must be a string")
        #expect(problem { try members.boolean("x") } == "params.x must be true or false")
        #expect(problem { try members.integer("y", in: 0...9) } == "params.y must be a whole number from 0 to 9")
        #expect(problem { try members.elements("y") } == "params.y must be a list")
        #expect(problem { try members.object("x") } == "params.x must be an object, not a list")
        #expect(problem { try members.choice("x", as: Size.self) } == "params.x must be one of: small, large")
        #expect(problem { try members.choices("y", as: Size.self) } == "params.y must be a list")
        #expect(problem { try members.secret("x", maxBytes: 9) } == "params.x must be a string of at most 9 bytes")
        #expect(
            problem { try members.object("o")?.object("inner")?.string("deep") }
                == "params.o.inner.deep must be a string")
    }

    @Test(arguments: [
        ("1", true), ("5", true), ("0", false), ("6", false), ("1.0", false), (#""1""#, false), ("true", false),
    ])
    func integersStayInTheirRange(value: String, taken: Bool) throws {
        let members = try members(#"{"x":\#(value)}"#)
        #expect((problem { try members.integer("x", in: 1...5) } == nil) == taken)
    }

    @Test func secretsStayWithinTheirSize() throws {
        let members = try members(#"{"x":"éé"}"#)
        #expect(try members.secret("x", maxBytes: 4)?.count == 4)
        #expect(problem { try members.secret("x", maxBytes: 3) } != nil)
    }

    @Test(arguments: [#"["small","huge"]"#, #"["small",1]"#, #"["Small"]"#, "[null]"])
    func oneUnknownChoiceInvalidatesTheList(list: String) throws {
        let members = try members(#"{"x":\#(list)}"#)
        #expect(problem { try members.choices("x", as: Size.self) } == "params.x must be a list of: small, large")
    }

    @Test func choicesKeepTheirOrder() throws {
        #expect(try members(#"{"x":["large","small"]}"#).choices("x", as: Size.self) == [.large, .small])
    }

    @Test(arguments: ["[]", "[1]", "1", #""x""#, "true"])
    func paramsGoByName(text: String) throws {
        #expect(problem { try members(text) } == "pass params by name, in an object")
    }

    @Test(arguments: [
        ("[]", "a list"), ("1.5", "a number"), (#""x""#, "a string"), ("true", "a boolean"), ("null", "null"),
    ])
    func anythingButAnObjectIsNamedByItsKind(text: String, words: String) throws {
        let json = try JSON.parse(text)
        #expect(problem { try Members(json, at: "answer") } == "answer must be an object, not \(words)")
    }

    private func refusal(_ text: String, after read: (Members) throws -> Void) throws -> String? {
        let members = try members(text)
        try read(members)
        return problem { try members.refuseUnread() }
    }

    @Test func aMemberThatIsNotReadIsNamed() throws {
        let told = try refusal(#"{"known":1,"hint":null}"#) { _ = ($0["known"], $0["other"]) }
        #expect(told == #"params has the unknown member "hint"; it takes known, other"#)
        #expect(try refusal(#"{"known":1,"other":null}"#) { _ = ($0["known"], $0["other"]) } == nil)
        #expect(try refusal(#"{"any":1}"#) { _ in } == #"params has the unknown member "any"; it takes none"#)
    }

    @Test func theNearestNameIsSuggested() throws {
        let told = try refusal(#"{"auth":{"useStorag":false}}"#) {
            _ = try $0.object("auth").map { ($0["interaction"], $0["useStorage"]) }
        }
        #expect(told == #"params.auth has the unknown member "useStorag"; did you mean "useStorage"?"#)
    }

    @Test func aMisspeltMemberIsTheReasonWhyAnotherIsMissing() throws {
        let members = try members(#"{"method":"GET","ulr":"http://h/"}"#)
        let told = problem { try members.required("url", members.string("url")) }
        #expect(told == #"params has the unknown member "ulr"; did you mean "url"?"#)
    }
}
