import CLibraries

/// A client's connection. `isDirty` is true while the connection is in the list of connections to flush at the end of the iteration.
final class Connection {
    let fd: Int32
    var input: [UInt8] = [], output: [UInt8] = [], isDirty = false

    init(_ fd: Int32) { self.fd = fd }
}

/// An easy handle and the response it collects, reused for the next fetch.
final class Fetch {
    let easy = curl_easy_init()!
    var connection: Connection?, id = 0, fields: UnsafeMutablePointer<curl_slist>?
    var body: [UInt8] = [], head: [UInt8] = [], spans: [(name: Range<Int>, value: Range<Int>)] = []

    init() {
        let me = Unmanaged.passUnretained(self).toOpaque()
        for option in [CURLOPT_PRIVATE, CURLOPT_WRITEDATA, CURLOPT_HEADERDATA] { set_pointer(easy, option, me) }
        set_callback(easy, CURLOPT_WRITEFUNCTION) { start, size, count, me in
            Fetch.from(me!).body.append(contentsOf: UnsafeRawBufferPointer(start: start, count: size * count))
            return size * count
        }
        set_callback(easy, CURLOPT_HEADERFUNCTION) { start, size, count, me in
            Fetch.from(me!).take(UnsafeRawBufferPointer(start: start, count: size * count))
            return size * count
        }
        set_number(easy, CURLOPT_NOSIGNAL, 1)
        set_number(easy, CURLOPT_TIMEOUT_MS, 300_000)
    }

    static func from(_ pointer: UnsafeMutableRawPointer) -> Fetch {
        Unmanaged<Fetch>.fromOpaque(pointer).takeUnretainedValue()
    }

    func begin(_ id: Int, for connection: Connection) {
        (self.id, self.connection) = (id, connection)
        body.removeAll(keepingCapacity: true)
        forgetHead()
    }

    private func forgetHead() {
        head.removeAll(keepingCapacity: true)
        spans.removeAll(keepingCapacity: true)
    }

    private func take(_ line: UnsafeRawBufferPointer) {
        guard !line.starts(with: "HTTP/".utf8) else { return forgetHead() }
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return }
        var start = colon + 1
        var end = line.count
        while start < end, line[start] == 32 { start += 1 }
        while end > start, line[end - 1] <= 32 { end -= 1 }
        let offset = head.count
        head.append(contentsOf: line[..<end])
        spans.append((offset..<offset + colon, offset + start..<offset + end))
    }

    func writeResult(to output: inout [UInt8]) {
        append("{\"jsonrpc\":\"2.0\",\"id\":", to: &output)
        append(id, to: &output)
        append(",\"result\":{\"fetchId\":\"f", to: &output)
        append(id, to: &output)
        append("\",\"status\":", to: &output)
        append(status_of(easy), to: &output)
        append(",\"headers\":[", to: &output)
        head.withUnsafeBytes { head in
            for (index, span) in spans.enumerated() {
                if index > 0 { append(",", to: &output) }
                append("[", to: &output)
                appendQuoted(UnsafeRawBufferPointer(rebasing: head[span.name]), to: &output)
                append(",", to: &output)
                appendQuoted(UnsafeRawBufferPointer(rebasing: head[span.value]), to: &output)
                append("]", to: &output)
            }
        }
        append("],\"body\":{\"type\":\"text\",\"value\":", to: &output)
        body.withUnsafeBytes { appendQuoted($0, to: &output) }
        append("},\"auth\":{\"scheme\":\"Basic\",\"source\":\"session\"},\"exchanges\":1}}\n", to: &output)
    }
}
