import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// A connection whose owner writes down what it would do.
private final class FrontRun {
    private var machine = FrontMachine()
    var backlog = FrontMachine.Backlog(output: 0, hasUploadRoom: false)
    /// Whether each request without an upload is answered at once.
    var answers = true
    private(set) var steps: [String] = []

    init() { machine.admit() }

    func receive(_ text: String) { receive(Array(text.utf8)) }

    func receive(_ bytes: [UInt8]) {
        if let early = bytes.withUnsafeBytes({ machine.receive($0) }) { write(early) }
        process()
    }

    func process() {
        while let command = machine.next(backlog) {
            switch command {
            case .begin(let request, .stream(let size)):
                backlog.hasUploadRoom = true
                steps.append("\(request.method) streams \(size.map(String.init) ?? "?")")
            case .begin(let request, let body):
                if case .bytes(let bytes) = body {
                    steps.append("\(request.method) \(bytes.text.prefix(8)) \(bytes.count)")
                } else {
                    steps.append(request.method)
                }
                if answers { end() }
            case .upload(let bytes): write(bytes)
            case .finishUpload: steps.append("finish")
            case .breakRequest(let refusal): steps.append("break \(refusal.reason)")
            case .refuse(let refusal):
                steps.append("refuse \(refusal.reason)")
                _ = machine.close()
            }
        }
    }

    /// Parts of a body are joined, because their limits are those of the input.
    private func write(_ bytes: [UInt8]) {
        let count = steps.last.flatMap { $0.hasPrefix("write ") ? Int($0.dropFirst(6)) : nil }
        if count != nil { steps.removeLast() }
        steps.append("write \((count ?? 0) + bytes.count)")
    }

    func end(keepsAlive: Bool = true) {
        switch machine.endResponse(keepsAlive: keepsAlive) {
        case .process: steps.append("next")
        case .finish: steps.append("close")
        default: steps.append("no response")
        }
        backlog.hasUploadRoom = false
    }

    var isReading: Bool { machine.isReading(backlog) }
    var isOpen: Bool { machine.isOpen }
    var isEnding: Bool { machine.isEnding }
    var acceptsOutput: Bool { machine.acceptsOutput }
    var outlivesTime: Bool { machine.outlivesTime }
    var rest: FrontMachine.Action { machine.rest(backlog) }

    func takeContinue() -> Bool { machine.takeContinue() }
    func endInput(isPeerOpen: Bool = true) -> FrontMachine.Action {
        machine.endInput(isPeerOpen: isPeerOpen, backlog)
    }
    func sent(before: Int, isLimited: Bool = true) -> FrontMachine.Action {
        machine.sent(backlog, before: before, isLimited: isLimited)
    }
    func continues(before: Int) -> Bool { machine.continues(backlog, before: before) }
    func isDrained(before: Int) -> Bool { machine.isDrained(backlog, before: before) }
    func close() -> FrontMachine.Action { machine.close() }
    func beginTunnel() -> String? { machine.beginTunnel()?.text }
    func switchProtocol() -> (early: [UInt8], isAll: Bool)? { machine.switchProtocol() }
    func endConnection() -> Bool { machine.end() }
}

/// The connections of programs to fronts, without sockets.
@Suite struct FrontMachineTests {
    private static let get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"
    private static let expecting = "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n"
    private static let switching = "GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
    private static let connect = "CONNECT h:443 HTTP/1.1\r\nHost: h\r\n\r\n"

    @Test("Requests are the same in whatever parts they are received")
    func requestsAreTheSameInParts() {
        let chunks = "POST /2 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nde\r\n0\r\n\r\n"
        let text = Self.get + "POST /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc" + chunks + Self.get + "?"
        let expected = ["GET", "next", "POST abc 3", "next", "POST de 2", "next", "GET", "next", "refuse request-line"]
        for end in 0...text.utf8.count {
            let run = FrontRun()
            run.receive(Array(text.utf8.prefix(end)))
            run.receive(Array(text.utf8.dropFirst(end)))
            #expect(run.steps == expected, "split at \(end)")
        }
        let run = FrontRun()
        for byte in text.utf8 { run.receive([byte]) }
        #expect(run.steps == expected)
    }

    @Test("A large body is uploaded while it is received", arguments: [1, 2, 4093, 70_000, 200_000])
    func aLargeBodyIsUploaded(part: Int) {
        let body = [UInt8](repeating: 0x61, count: 66_000)
        let head = "PUT / HTTP/1.1\r\nHost: h\r\n"
        for (framed, size) in [
            (Array("\(head)Content-Length: 66000\r\n\r\n".utf8) + body, "66000"),
            (
                Array("\(head)Transfer-Encoding: chunked\r\n\r\n101D0\r\n".utf8) + body + Array("\r\n0\r\n\r\n".utf8),
                "?"
            ),
        ] {
            let run = FrontRun()
            for start in stride(from: 0, to: framed.count, by: part) {
                run.receive(Array(framed[start...].prefix(part)))
            }
            #expect(run.steps == ["PUT streams \(size)", "write 66000", "finish"])
            run.end()
            #expect(run.steps.last == "next")
        }
    }

    @Test func aProgramThatWaitsIsToldToContinueOnce() {
        let run = FrontRun()
        run.receive(Self.expecting)
        #expect(run.steps == ["PUT streams 3"])
        #expect([run.takeContinue(), run.takeContinue()] == [true, false])
        run.receive("abc")
        #expect(run.steps.dropFirst() == ["write 3", "finish"])
    }

    @Test("The rest of a body that was answered early is not read as a request")
    func anEarlyAnswerClosesTheConnection() {
        let run = FrontRun()
        run.receive(Self.expecting + "a")
        run.end()
        run.receive("bc" + Self.get)
        #expect(run.steps == ["PUT streams 3", "write 1", "close"])
        #expect(!run.acceptsOutput)
    }

    @Test func aBrokenBodyIsReported() {
        let run = FrontRun()
        run.receive(
            "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n1\r\naXX")
        #expect(run.steps == ["PUT streams ?", "write 1", "break chunk"])
        run.end()
        #expect(run.steps.last == "close")
    }

    @Test("A program has to wait that does not read, or sends too much ahead")
    func aProgramHasToWait() {
        let run = FrontRun()
        run.answers = false
        run.backlog.output = FrontMachine.highWaterMark
        run.receive(Self.get)
        #expect(run.steps.isEmpty && !run.isReading && run.rest == .wait(.keep))
        run.backlog.output -= 1
        #expect(run.continues(before: FrontMachine.highWaterMark))
        run.process()
        #expect(run.steps == ["GET"] && run.isReading)
        run.receive([UInt8](repeating: 0x47, count: FrontMachine.ahead - 1))
        #expect(run.isReading)
        run.receive("G")
        #expect(!run.isReading && run.steps == ["GET"])
    }

    @Test func aFullUploadIsNotRead() {
        let run = FrontRun()
        run.receive(Self.expecting)
        #expect(run.isReading && run.rest == .wait(.after(FrontMachine.idleTime)))
        run.backlog.hasUploadRoom = false
        run.receive("abc")
        #expect(run.steps == ["PUT streams 3"] && !run.isReading && run.rest == .wait(.none))
        run.backlog.hasUploadRoom = true
        run.process()
        #expect(run.steps.suffix(2) == ["write 3", "finish"])
    }

    @Test("A program that has ended its input still gets its responses")
    func theEndOfInput() {
        let run = FrontRun()
        run.answers = false
        run.receive(Self.get + Self.get)
        #expect(run.endInput() == .wait(.keep))
        run.end()
        run.process()
        run.end()
        #expect(run.steps == ["GET", "next", "GET", "next"] && run.rest == .finish)

        let gone = FrontRun()
        #expect(gone.endInput(isPeerOpen: false) == .end)
        let partial = FrontRun()
        partial.receive("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\na")
        #expect(partial.endInput() == .end)
        let uploading = FrontRun()
        uploading.receive(Self.expecting)
        #expect(uploading.endInput() == .end)
    }

    @Test("A closed connection sends its output, and then reads for a while")
    func aClosedConnection() {
        let run = FrontRun()
        #expect(run.close() == .finish)
        #expect(run.close() == .nothing)
        #expect(run.isEnding && run.isReading && run.rest == .nothing)
        run.receive(Self.get)
        run.backlog.output = 5
        #expect(run.sent(before: 9) == .wait(.after(FrontMachine.idleTime)))
        #expect(run.sent(before: 5) == .wait(.keep))
        run.backlog.output = 0
        #expect(run.sent(before: 5) == .shutDown)
        #expect(run.endInput() == .end)
        #expect(run.sent(before: 5) == .end)
        #expect([run.endConnection(), run.endConnection()] == [true, false] && run.steps.isEmpty && !run.isOpen)

        var unknown = FrontMachine()
        let closing = unknown.close()
        #expect(closing == .end)
    }

    @Test("A response has no time limit until a part of it waits for the program")
    func theTimeOfAResponse() {
        let run = FrontRun()
        run.answers = false
        run.receive(Self.get)
        #expect(run.rest == .wait(.none))
        run.backlog.output = 1
        #expect(run.sent(before: 1, isLimited: false) == .wait(.after(FrontMachine.idleTime)))
        #expect(run.isDrained(before: 1))
        run.backlog.output = 0
        #expect(run.sent(before: 1) == .wait(.none))
        #expect(!run.isDrained(before: 0))
    }

    @Test func aTunnelGetsTheBytesThatWereSentAhead() {
        let run = FrontRun()
        run.answers = false
        let ofNothing = run.beginTunnel()
        run.receive(Self.connect + "hello")
        let early = run.beginTunnel()
        #expect(ofNothing == nil && early == "hello" && run.steps == ["CONNECT"])
        #expect(run.outlivesTime && !run.isOpen && !run.isReading)
    }

    @Test func anotherProtocolIsPassedOnAsItIs() {
        let run = FrontRun()
        run.receive(Self.switching + "early")
        #expect(run.steps == ["GET streams ?"] && run.isReading)
        let (early, again) = (run.switchProtocol(), run.switchProtocol())
        #expect(early?.early.text == "early" && early?.isAll == false && again == nil)
        run.receive(Self.get)
        #expect(run.steps.last == "write \(Self.get.utf8.count)" && run.outlivesTime)
        #expect(run.rest == .wait(.keep))
        #expect(run.endInput() == .finishUpload)
    }

    @Test func anUpgradeThatWasNotAcceptedIsAnOrdinaryRequest() {
        let run = FrontRun()
        run.receive(Self.switching + Self.get)
        run.end()
        run.process()
        #expect(run.steps == ["GET streams ?", "next", "GET", "next"])
    }
}
