import CGSSAPI
import Foundation
import Synchronization
import TestServers

/// A realm with its own KDC, and a realm whose KDC never responds; once started, the process uses their configuration.
enum KerberosRealm {
    private static let stuck = Mutex<[Int32]>([])
    private static let silentPort = Mutex(0)
    // Keeps the KDC running: it exits at the end of its standard input.
    private static let lifeline = Mutex<ChildProcess?>(nil)

    static var folder: String { TestFolder.path }

    /// `localhost` is in the realm of the user `alice`, who gets a ticket; the KDC of the realm of `stuck.test` never responds.
    static func start() throws {
        // The port stays reserved until the KDC listens on it, which takes seconds.
        let (_, port) = Loopback.reserve()
        try write(client(port, try hole()), to: "krb5.conf")
        try write(
            """
            [realms]
            WATCH.TEST = {
              database_name = \(folder)/principal
              key_stash_file = \(folder)/stash
              kdc_listen = 127.0.0.1:\(port)
              kdc_tcp_listen = 127.0.0.1:\(port)
            }
            """, to: "kdc.conf")
        let environment = ["KRB5_CONFIG": "\(folder)/krb5.conf", "KRB5_KDC_PROFILE": "\(folder)/kdc.conf"]
        try Program.run(["kdb5_util", "create", "-s", "-r", "WATCH.TEST", "-P", "master"], environment)
        let queries = [
            "addprinc -pw alices alice", "addprinc -randkey HTTP/localhost", "addprinc -randkey krbtgt/STUCK.TEST",
            "ktadd -k \(folder)/keytab HTTP/localhost",
        ]
        for query in queries { try Program.run(["kadmin.local", "-r", "WATCH.TEST", "-q", query], environment) }
        try startKDC(environment)
        for _ in 0..<100 {
            if (try? kinit()) != nil { return }
            usleep(50_000)
        }
        try kinit()
    }

    private static func kinit() throws {
        try Program.run(["kinit", "alice"], ["KRB5CCNAME": "FILE:\(tickets("alice"))"], input: "alices\n")
    }

    /// Makes the process use the tickets of a user; `nobody` has no tickets.
    static func logIn(_ user: String) {
        unlink(tickets(nil))
        link(tickets(user), tickets(nil))
    }

    private static func tickets(_ user: String?) -> String { folder + "/tickets" + (user.map { "-\($0)" } ?? "") }

    private static func write(_ text: String, to name: String) throws {
        try text.write(toFile: "\(folder)/\(name)", atomically: true, encoding: .utf8)
    }

    private static func client(_ port: Int, _ hole: Int) -> String {
        """
        [libdefaults]
        default_realm = WATCH.TEST
        dns_lookup_kdc = false
        forwardable = true
        [realms]
        WATCH.TEST = {
          kdc = 127.0.0.1:\(port)
        }
        STUCK.TEST = {
          kdc = 127.0.0.1:\(hole)
        }
        [domain_realm]
        stuck.test = STUCK.TEST
        """
    }

    /// Whether a call of this process's Kerberos library waits for the KDC that never responds: a UDP socket is connected to it.
    static var isWaitingForSilentKDC: Bool {
        let digits = String(silentPort.withLock { $0 }, radix: 16, uppercase: true)
        let peer = " 0100007F:" + String(repeating: "0", count: 4 - digits.count) + digits + " "
        return (try? String(contentsOfFile: "/proc/self/net/udp", encoding: .utf8))?.contains(peer) ?? false
    }

    /// Returns a port that never responds, over UDP or TCP.
    private static func hole() throws -> Int {
        let (listener, port) = Loopback.listen()
        let datagrams = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        address.sin_port = UInt16(port).bigEndian
        _ = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(datagrams, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        stuck.withLock { $0 = [listener, datagrams] }
        silentPort.withLock { $0 = port }
        return port
    }

    private static func startKDC(_ environment: [String: String]) throws {
        let path = getenv("PATH").map { String(cString: $0) } ?? ""
        let variables = ["PATH=\(path):/usr/sbin"] + environment.map { "\($0)=\($1)" }
        let process = try ChildProcess(
            ["/usr/bin/env"] + variables + ["/bin/sh", "-c", "krb5kdc -n -r WATCH.TEST & read line; kill -9 $!"],
            outlivesInput: false)
        lifeline.withLock { $0 = process }
    }
}

/// Accepts a login as the service: returns its user and the proof of the service; `nil` if the token is for another service.
func acceptNegotiate(_ token: Data) -> (user: String, proof: Data, isDelegated: Bool)? {
    var bytes = [UInt8](token)
    return bytes.withUnsafeMutableBytes { bytes in
        var input = gss_buffer_desc(length: bytes.count, value: bytes.baseAddress)
        var (output, shown) = (gss_buffer_desc(), gss_buffer_desc())
        var (context, user): (gss_ctx_id_t?, gss_name_t?) = (nil, nil)
        var (minor, flags): (OM_uint32, OM_uint32) = (0, 0)
        let major = gss_accept_sec_context(
            &minor, &context, nil, &input, nil, &user, nil, &output, &flags, nil, nil)
        guard major == 0 else { return nil }
        gss_display_name(&minor, user, &shown, nil)
        return (
            String(decoding: UnsafeRawBufferPointer(start: shown.value, count: shown.length), as: UTF8.self),
            Data(bytes: output.value, count: output.length), flags & UInt32(GSS_C_DELEG_FLAG) != 0
        )
    }
}
