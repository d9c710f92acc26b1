// A minimal fetch broker in Swift on one epoll loop: requests as lines of JSON, with Basic as if from a session cache. It has no
// sender checks, quotas, wiping or challenges. The benchmarks compare the real broker, which has them, with it.
import CLibraries
import Glibc

let epoll = epoll_create1(0)
let multi = curl_multi_init()!
let listener = listen_at(CommandLine.arguments[1])
var connections: [Int32: Connection] = [:]
var dirty: [Connection] = []
var fetches: [Fetch] = []
var idle: [Fetch] = []
/// The Authorization fields by origin; the first request to each origin provides `userpwd`.
var cache: [String: [UInt8]] = [:]
var deadline: UInt64?
let ofListener = UInt64.max
let ofTransfer = UInt64(1) << 40

func milliseconds() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1000 + UInt64(time.tv_nsec) / 1_000_000
}

func start(_ line: UnsafeRawBufferPointer, of connection: Connection) {
    guard let message = json_loadb(line.baseAddress!.assumingMemoryBound(to: CChar.self), line.count, 1, nil) else {
        return
    }
    defer { release(message) }
    let params = json_object_get(message, "params")
    guard let text = json_string_value(json_object_get(params, "url")) else { return }
    let url = String(cString: text)
    let origin = String(url[..<(url.utf8.dropFirst(8).firstIndex(of: UInt8(ascii: "/")) ?? url.endIndex)])
    if cache[origin] == nil, let login = json_string_value(json_object_get(params, "userpwd")) {
        cache[origin] = Array("Authorization: Basic ".utf8) + base64(Array(String(cString: login).utf8)) + [0]
    }
    let fetch = idle.popLast() ?? Fetch()
    if fetch.connection == nil, fetch.id == 0 { fetches.append(fetch) }
    fetch.begin(Int(integer_of(json_object_get(message, "id"))), for: connection)
    set_text(fetch.easy, CURLOPT_URL, text)
    cache[origin]?.withUnsafeBytes {
        fetch.fields = curl_slist_append(nil, $0.baseAddress!.assumingMemoryBound(to: CChar.self))
    }
    set_pointer(fetch.easy, CURLOPT_HTTPHEADER, fetch.fields)
    curl_multi_add_handle(multi, fetch.easy)
}

func act(_ socket: Int32, _ events: Int32) {
    var running: Int32 = 0
    var left: Int32 = 0
    curl_multi_socket_action(multi, socket, events, &running)
    while let message = curl_multi_info_read(multi, &left) {
        guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle else { continue }
        let fetch = Fetch.from(private_of(easy)!)
        curl_multi_remove_handle(multi, easy)
        curl_slist_free_all(fetch.fields)
        fetch.fields = nil
        let connection = fetch.connection!
        fetch.connection = nil
        fetch.writeResult(to: &connection.output)
        idle.append(fetch)
        if !connection.isDirty {
            connection.isDirty = true
            dirty.append(connection)
        }
    }
}

func read(_ connection: Connection) {
    let count = withUnsafeTemporaryAllocation(byteCount: 16384, alignment: 1) { buffer in
        let count = read(connection.fd, buffer.baseAddress, buffer.count)
        if count > 0 { connection.input.append(contentsOf: buffer[..<count]) }
        return count
    }
    if count == 0 {
        close(connection.fd)
        connections[connection.fd] = nil
    }
    var from = 0
    connection.input.withUnsafeBytes { input in
        while let end = input[from...].firstIndex(of: 10) {
            start(UnsafeRawBufferPointer(rebasing: input[from..<end]), of: connection)
            from = end + 1
        }
    }
    connection.input.removeFirst(from)
}

func flush() {
    for connection in dirty {
        connection.isDirty = false
        let count = connection.output.withUnsafeBytes {
            send(connection.fd, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
        connection.output.removeFirst(max(0, count))
    }
    dirty.removeAll(keepingCapacity: true)
}

set_connections(multi, 64)
set_socket_callback(multi) { _, socket, what, _, _ in
    if what == CURL_POLL_REMOVE { return control(epoll, EPOLL_CTL_DEL, socket, 0, 0) }
    let events = (what & CURL_POLL_IN != 0 ? EPOLLIN.rawValue : 0) | (what & CURL_POLL_OUT != 0 ? EPOLLOUT.rawValue : 0)
    if control(epoll, EPOLL_CTL_MOD, socket, events, UInt64(socket) | ofTransfer) != 0 {
        control(epoll, EPOLL_CTL_ADD, socket, events, UInt64(socket) | ofTransfer)
    }
    return 0
}
set_timer_callback(multi) { _, after, _ in
    deadline = after < 0 ? nil : milliseconds() + UInt64(after)
    return 0
}
control(epoll, EPOLL_CTL_ADD, listener, EPOLLIN.rawValue, ofListener)

var events = [UInt32](repeating: 0, count: 64)
var keys = [UInt64](repeating: 0, count: 64)
while true {
    while let due = deadline, due <= milliseconds() {
        deadline = nil
        act(-1, 0)
    }
    flush()
    let wait = deadline.map { Int32(min($0 - min($0, milliseconds()), 1000)) } ?? -1
    for index in 0..<max(0, Int(wait_for(epoll, &events, &keys, wait))) {
        if keys[index] == ofListener {
            let fd = accept_from(listener)
            guard fd >= 0 else { continue }
            connections[fd] = Connection(fd)
            control(epoll, EPOLL_CTL_ADD, fd, EPOLLIN.rawValue, UInt64(fd))
        } else if keys[index] & ofTransfer != 0 {
            let isReadable = events[index] & (EPOLLIN.rawValue | EPOLLHUP.rawValue | EPOLLERR.rawValue) != 0
            let isWritable = events[index] & EPOLLOUT.rawValue != 0
            act(
                Int32(keys[index] & 0xffff_ffff),
                (isReadable ? CURL_CSELECT_IN : 0) | (isWritable ? CURL_CSELECT_OUT : 0))
        } else if let connection = connections[Int32(keys[index])] {
            read(connection)
        }
    }
}
