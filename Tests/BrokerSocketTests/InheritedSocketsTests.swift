import Testing

@testable import BrokerSocket

@Suite struct InheritedSocketsTests {
    private func sockets(_ count: String?, _ names: String?, pid: String? = "42") throws -> InheritedSockets? {
        let variables = ["LISTEN_PID": pid, "LISTEN_FDS": count, "LISTEN_FDNAMES": names]
        return try InheritedSockets(environment: { variables[$0] ?? nil }, pid: 42)
    }

    @Test(arguments: [nil, "", "broker", "watchword.socket", "unknown"])
    func aSingleSocketIsTheMainOneWithAnyName(name: String?) throws {
        let one = try sockets("1", name)
        #expect(one?.main == 3 && one?.restricted == nil && one?.descriptors == [3])
    }

    @Test(arguments: [("broker:restricted", Int32(3), Int32(4)), ("restricted:broker", 4, 3), (":restricted", 3, 4)])
    func theNameIdentifiesTheRestrictedSocketOfTwo(names: String, main: Int32, restricted: Int32) throws {
        let both = try sockets("2", names)
        #expect(both?.main == main && both?.restricted == restricted)
        #expect(both?.descriptors.sorted() == [3, 4])
    }

    @Test(arguments: [("broker:front", Int32(3), nil, Int32(4)), ("front:x:restricted", 4, Int32(5), 3)])
    func theNameIdentifiesTheSocketOfTheProxy(names: String, main: Int32, restricted: Int32?, front: Int32) throws {
        let all = try sockets("\(names.split(separator: ":").count)", names)
        #expect(all?.main == main && all?.restricted == restricted && all?.front == front)
        #expect(all?.descriptors.sorted() == (restricted == nil ? [3, 4] : [3, 4, 5]))
    }

    @Test func socketsForAnotherProcessAreIgnored() throws {
        #expect(try sockets("1", nil, pid: "43") == nil)
        #expect(try sockets("1", nil, pid: nil) == nil)
        #expect(try sockets("1", nil, pid: "x") == nil)
        #expect(try sockets(nil, nil) == nil)
    }

    @Test(arguments: [
        ("0", nil), ("-1", nil), ("3", "a:restricted:b"), ("x", nil), ("1", "restricted"), ("1", "a:b"), ("2", nil),
        ("2", "a:b"), ("2", "restricted:restricted"), ("2", "restricted"), ("2", "broker:restricted:"),
        ("1", "front"), ("2", "front:restricted"), ("3", "a:front:front"), ("4", "a:restricted:front:b"),
    ])
    func invalidValuesAreRefused(count: String, names: String?) {
        #expect(throws: SocketFailure.self) { try sockets(count, names) }
    }
}
