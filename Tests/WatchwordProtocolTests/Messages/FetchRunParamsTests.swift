import JSONText
import Testing
import WatchwordProtocol

struct FetchRunParamsTests {
    private func read(_ text: String) throws -> FetchRunParams { try FetchRun(JSON.parse(text)).params }

    private static let url = "https://intranet.example/report"

    @Test func onlyTheURLIsRequired() throws {
        let params = try read(#"{"url":"\#(Self.url)"}"#)
        #expect(params == FetchRunParams(url: Self.url))
        #expect(params.method == "GET")
        #expect(params.body == nil)
        #expect(params.interaction == .ownClient)
        #expect(params.useStorage && params.preemption == .session)
        #expect(params.methods == nil)
        #expect(params.timeoutMs == nil)
        #expect(params.maxInlineBodyBytes == 1 << 20)
        #expect(params.maxRedirects == 20)
    }

    @Test func theProtocolsExampleIsRead() throws {
        let params = try read(
            """
            {"url":"https://intranet.example/report","method":"PUT","headers":[["Accept","text/csv"],["Accept","*/*"]],
             "body":{"type":"string","value":"é"},
             "credential":{"type":"password","user":"bob","password":"pw","persistence":"none"},
             "auth":{"interaction":"agent","useStorage":false,"preemptive":false,"methods":["httpDigest","httpBasic"]},
             "timeoutMs":30000,"maxInlineBodyBytes":0,"maxRedirects":0,"notify":["headers","progress","redirect"]}
            """)
        #expect(params.url == Self.url)
        #expect(params.method == "PUT")
        #expect(params.headers == [HeaderField("Accept", "text/csv"), HeaderField("Accept", "*/*")])
        #expect(params.body == Array("é".utf8))
        let password = Array("pw".utf8).withUnsafeBytes { Secret(copying: $0) }
        #expect(params.credential == LoginCredential(user: "bob", password: password, persistence: .none))
        #expect(params.interaction == .agent)
        #expect(!params.useStorage && params.preemption == .never)
        #expect(params.methods == [.httpDigest, .httpBasic])
        #expect((params.timeoutMs, params.maxInlineBodyBytes, params.maxRedirects) == (30_000, 0, 0))
        #expect(params.notify == [.headers, .progress, .redirect])
        #expect(try read(FetchRun(params).json.text) == params, "and is read as it is written")
    }

    @Test func redirectsAndOmissionsAreRead() throws {
        let params = try read(
            """
            {"url":"u","redirects":{"keepMethod":true,"keepPost":[301,303],"schemes":["https"]},"connectTimeoutMs":500,
             "omitHeaders":["Accept"],"notify":["exchanges"]}
            """)
        #expect(params.redirects.keepMethod && params.redirects.keepPost == [301, 303])
        #expect(params.redirects.schemes == ["https"])
        #expect((params.connectTimeoutMs, params.omitHeaders, params.notify) == (500, ["Accept"], [.exchanges]))
        #expect(try read(FetchRun(params).json.text) == params, "and is read as it is written")
    }

    @Test(arguments: [
        (#""redirects":{"keepPost":[307]}"#, "keepPost"), (#""redirects":{"keepPost":["301"]}"#, "keepPost"),
        (#""redirects":{"schemes":["ftp"]}"#, "schemes"), (#""redirects":{"keepMethod":1}"#, "keepMethod"),
        (#""connectTimeoutMs":0"#, "connectTimeoutMs"), (#""omitHeaders":[1]"#, "omitHeaders"),
    ])
    func otherRedirectsAndOmissionsAreRefused(member: String, name: String) {
        #expect(problem { try read(#"{"url":"u",\#(member)}"#) }?.contains(name) == true)
    }

    @Test func headersMayBeAnObject() throws {
        let params = try read(#"{"url":"u","headers":{"B":"1","A":"","b":"2"}}"#)
        #expect(params.headers == [HeaderField("B", "1"), HeaderField("A", ""), HeaderField("b", "2")])
        #expect(try read(#"{"url":"u","headers":[]}"#).headers.isEmpty)
        #expect(try read(#"{"url":"u","headers":{}}"#).headers.isEmpty)
    }

    @Test(arguments: [
        "1", #""A: b""#, "[1]", #"["A"]"#, #"[["A"]]"#, #"[["A","b","c"]]"#, #"[["A",1]]"#, #"[[1,"b"]]"#,
        #"[["A",null]]"#,
        #"{"A":1}"#, #"{"A":null}"#, #"{"A":["b"]}"#, #"[["A","b"],[]]"#, #"[{"A":"b"}]"#,
    ])
    func otherHeadersAreRefused(headers: String) {
        #expect(
            problem { try read(#"{"url":"u","headers":\#(headers)}"#) }
                == "params.headers must be a list of pairs of strings, or an object of strings")
    }

    @Test(
        arguments: [
            (#"{"type":"string","value":""}"#, []), (#"{"type":"string","value":"a\u0000"}"#, [0x61, 0]),
            (#"{"type":"base64","value":"AP8="}"#, [0, 0xFF]), (#"{"type":"base64","value":""}"#, []),
        ] as [(String, [UInt8])])
    func bodiesAreRead(body: String, bytes: [UInt8]) throws {
        #expect(try read(#"{"url":"u","body":\#(body)}"#).body == bytes)
    }

    @Test(arguments: [
        (#""text""#, "params.body must be an object, not a string"), ("{}", "params.body.type is missing"),
        (#"{"type":"string"}"#, "params.body.value is missing"), (#"{"type":1}"#, "params.body.type must be a string"),
        (
            #"{"type":"attach","sizeBytes":-1}"#,
            "params.body.sizeBytes must be a whole number from 0 to 9007199254740992"
        ),
        (#"{"type":"text","value":"x"}"#, "params.body.type must be one of: string, base64, attach"),
        (#"{"type":"string","value":1}"#, "params.body.value must be a string"),
        (
            #"{"type":"base64","value":"AP8"}"#,
            "params.body.value must be base64 (RFC 4648 section 4), with padding"
        ),
        (#"{"type":"base64","value":7}"#, "params.body.value must be base64 (RFC 4648 section 4), with padding"),
    ])
    func otherBodiesAreRefused(body: String, reason: String) {
        #expect(problem { try read(#"{"url":"u","body":\#(body)}"#) } == reason)
    }

    @Test(arguments: [
        ("method", "1", "params.method must be a string"), ("timeoutMs", "0", nil), ("timeoutMs", "86400001", nil),
        ("timeoutMs", "1.5", nil), ("timeoutMs", #""1""#, "params.timeoutMs must be a whole number from 1 to 86400000"),
        ("maxInlineBodyBytes", "-1", nil), ("maxInlineBodyBytes", "8388609", nil), ("maxRedirects", "-1", nil),
        ("maxRedirects", "51", "params.maxRedirects must be a whole number from 0 to 50"),
        (
            "notify", #"["headers","body"]"#,
            "params.notify must be a list of: headers, progress, redirect, waiting, exchanges"
        ),
        ("notify", #""headers""#, "params.notify must be a list"),
        ("auth", "[]", "params.auth must be an object, not a list"),
        ("auth", #"{"interaction":"me"}"#, "params.auth.interaction must be one of: self, agent, none"),
        ("auth", #"{"useStorage":"no"}"#, "params.auth.useStorage must be true or false"),
        ("auth", #"{"preemptive":0}"#, #"params.auth.preemptive must be true, false or "always""#),
        ("auth", #"{"methods":["basic"]}"#, nil),
        ("auth", #"{"methods":"httpBasic"}"#, "params.auth.methods must be a list"),
        (
            "credential", #"{"type":"proposed"}"#,
            "params.credential must be a password, a token or a header; certificates go into tls"
        ),
        ("credential", #"{"type":"password","user":"b"}"#, "params.credential.password is missing"),
        ("credential", #"{"type":"password","user":"b","password":"p","realm":"x"}"#, nil),
        ("credential", #""b:p""#, "params.credential must be an object, not a string"),
    ])
    func otherValuesAreRefused(member: String, value: String, reason: String?) throws {
        let told = try #require(problem { try read(#"{"url":"u","\#(member)":\#(value)}"#) })
        #expect(told.hasPrefix("params.\(member)"))
        if let reason { #expect(told == reason) }
    }

    @Test(arguments: [
        #""timeoutMs":1"#, #""timeoutMs":86400000"#, #""maxInlineBodyBytes":8388608"#, #""maxRedirects":50"#,
        #""auth":{"methods":[]}"#, #""notify":[]"#,
    ])
    func limitsAreReached(member: String) throws {
        let params = try read(#"{"url":"u",\#(member)}"#)
        #expect(try read(FetchRun(params).json.text) == params)
    }

    @Test(arguments: [("{}", "params.url is missing"), (#"{"url":null}"#, "params.url is missing")])
    func aFetchNeedsAURL(text: String, reason: String) {
        #expect(problem { try read(text) } == reason)
        #expect(problem { try FetchRunParams(nil) } == reason)
    }

    @Test func aURLStaysWithinItsSize() throws {
        let longest = "http://h/" + String(repeating: "x", count: Limits.urlBytes - 9)
        #expect(try read(#"{"url":"\#(longest)"}"#).url == longest)
        let reason = "params.url must be a string of at most \(Limits.urlBytes) bytes"
        #expect(problem { try read(#"{"url":"\#(longest)x"}"#) } == reason)
        #expect(problem { try read(#"{"url":["u"]}"#) } == reason)
    }

    @Test func aPasswordInTheURLIsTakenOutOfIt() throws {
        let params = try read(#"{"url":"https://bob:hunter2@intranet.example/@x"}"#)
        #expect(params.url == "https://intranet.example/@x")
        #expect(params.userInfo?.withUnsafeBytes { $0.elementsEqual("bob:hunter2".utf8) } == true)
        #expect(!"\(params)".contains("hunter2"))
    }

    @Test func onlyFetchRunHasAnInlineBody() throws {
        let json = try JSON.parse(#"{"url":"u","maxInlineBodyBytes":1}"#)
        #expect(try FetchRun(json).params.maxInlineBodyBytes == 1)
        #expect(FetchRun(try FetchRun(json).params).json["maxInlineBodyBytes"]?.integer == 1)
        #expect(problem { try FetchStart(json) }?.contains("unknown member \"maxInlineBodyBytes\"") == true)
        #expect(FetchStart(try FetchRun(json).params).json["maxInlineBodyBytes"] == nil)
    }

    @Test(
        "Rule P15: a misspelt protection is refused",
        arguments: [
            (
                #""auth":{"useStorag":false}"#,
                #"params.auth has the unknown member "useStorag"; did you mean "useStorage"?"#
            ),
            (#""auth":{"method":[]}"#, #"params.auth has the unknown member "method"; did you mean "methods"?"#),
            (#""tls":{"pins":{}}"#, #"params.tls has the unknown member "pins"; did you mean "pin"?"#),
            (
                #""redirects":{"scheme":[]}"#,
                #"params.redirects has the unknown member "scheme"; did you mean "schemes"?"#
            ),
            (#""maxBodyByte":1"#, #"params has the unknown member "maxBodyByte"; did you mean "maxBodyBytes"?"#),
            (#""prox":"none""#, #"params has the unknown member "prox"; did you mean "proxy"?"#),
            (
                #""body":{"type":"string","value":"","sizeBytes":0}"#,
                #"params.body has the unknown member "sizeBytes"; it takes type, value"#
            ),
        ])
    func aMisspeltMemberIsRefused(member: String, reason: String) {
        #expect(problem { try read(#"{"url":"u",\#(member)}"#) } == reason)
    }
}
