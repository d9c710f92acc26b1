import ArgumentParser
import JSONText
import WatchwordProtocol

/// The variables of `-w` in curl 7.88, and `watchword_user` and `watchword_source`.
enum WriteOutVariable: String, CaseIterable {
    case certificates = "certs"
    case contentType = "content_type"
    case errorMessage = "errormsg"
    case exitCode = "exitcode"
    case fileName = "filename_effective"
    case entryPath = "ftp_entry_path"
    case headerJSON = "header_json"
    case httpCode = "http_code"
    case connectCode = "http_connect"
    case httpVersion = "http_version"
    case json
    case localAddress = "local_ip"
    case localPort = "local_port"
    case method
    case certificateCount = "num_certs"
    case connectionCount = "num_connects"
    case headerCount = "num_headers"
    case redirectCount = "num_redirects"
    case proxyVerification = "proxy_ssl_verify_result"
    case redirectURL = "redirect_url"
    case referer
    case remoteAddress = "remote_ip"
    case remotePort = "remote_port"
    case responseCode = "response_code"
    case scheme
    case sizeDownload = "size_download"
    case sizeHeader = "size_header"
    case sizeRequest = "size_request"
    case sizeUpload = "size_upload"
    case speedDownload = "speed_download"
    case speedUpload = "speed_upload"
    case verification = "ssl_verify_result"
    case timeTLS = "time_appconnect"
    case timeConnect = "time_connect"
    case timeName = "time_namelookup"
    case timeRequest = "time_pretransfer"
    case timeRedirect = "time_redirect"
    case timeFirstByte = "time_starttransfer"
    case timeTotal = "time_total"
    case url
    case effectiveURL = "url_effective"
    case urlNumber = "urlnum"
    case user = "watchword_user"
    case source = "watchword_source"
}

/// The values of the variables of `-w` for one transfer.
struct WriteOutFacts {
    var item: FetchItem
    var head: ReportedHead?
    /// The broker's result; `nil` for a failure.
    var result: JSON?
    var receivedBytes = 0
    var log = ExchangeLog()
    var code = ExitCode.success
    var errorText = ""

    var hasSucceeded: Bool { code == .success }

    func value(of variable: WriteOutVariable) -> String {
        switch variable {
        case .contentType: header("Content-Type")
        case .errorMessage: hasSucceeded ? "" : errorText
        case .exitCode: "\(code.rawValue)"
        case .fileName: item.file ?? ""
        case .headerJSON: headerJSON
        case .httpCode, .responseCode: Self.padded(head?.status ?? 0)
        case .connectCode: "000"
        case .httpVersion: head?.httpVersion ?? "0"
        case .json: (result ?? [:]).line
        case .method: log.method ?? item.params.method
        case .headerCount: "\(head?.headers.count ?? 0)"
        case .redirectCount: "\(log.redirects)"
        case .redirectURL: redirectURL
        case .referer: item.params.headers.firstValue(of: "Referer") ?? ""
        case .scheme: url.firstRange(of: "://").map { url[..<$0.lowerBound].uppercased() } ?? ""
        case .sizeDownload: "\(receivedBytes)"
        case .sizeHeader: "\(log.headerBytes)"
        case .sizeUpload: "\(head == nil || log.redirects > 0 ? 0 : item.content?.sizeBytes ?? 0)"
        case .speedDownload: "\(speed(receivedBytes))"
        case .speedUpload: "\(speed(item.content?.sizeBytes ?? 0))"
        case .timeTotal: Self.seconds(total)
        case .timeFirstByte, .timeTLS, .timeConnect, .timeName, .timeRequest, .timeRedirect: Self.seconds(0)
        case .url: item.params.url
        case .effectiveURL: url
        case .urlNumber: "\(item.number)"
        case .user: result?["auth"]?["user"]?.string ?? ""
        case .source: result?["auth"]?["source"]?.string ?? ""
        // These belong to the broker's connection to the server, and are not reported.
        case .certificates, .entryPath, .localAddress, .remoteAddress: ""
        case .localPort, .remotePort, .certificateCount, .connectionCount, .sizeRequest, .proxyVerification,
            .verification:
            "0"
        }
    }

    /// Returns the value of `%header{NAME}`.
    func header(_ name: String) -> String { head?.headers.firstValue(of: name) ?? "" }

    /// The header fields as JSON, with one line for each name in lower case and all its values.
    private var headerJSON: String {
        var names: [String] = []
        for field in head?.headers ?? [] where !names.contains(field.name.lowercased()) {
            names.append(field.name.lowercased())
        }
        let lines = names.map { name in
            let values = head?.headers.filter { $0.name.lowercased() == name }.map { JSON.string($0.value).line } ?? []
            return "\(JSON.string(name).line):[\(values.joined(separator: ","))]"
        }
        return "{\(lines.joined(separator: ",\n"))\n}"
    }

    private var url: String { result?["url"]?.string ?? log.url ?? item.params.url }

    /// The target of a redirect that was not followed; empty if there is none.
    private var redirectURL: String {
        guard let head, (300..<400).contains(head.status), let location = head.headers.firstValue(of: "Location")
        else { return "" }
        return URLText.resolved(location, from: url)
    }

    private var total: Double { result?["timingsMs"]?["total"]?.number ?? 0 }

    private func speed(_ bytes: Int) -> Int { total > 0 ? Int(Double(bytes) * 1000 / total) : 0 }

    /// Returns the status as curl writes it: 000 without a response.
    private static func padded(_ status: Int) -> String { status == 0 ? "000" : "\(status)" }

    private static func seconds(_ milliseconds: Double) -> String {
        let microseconds = Int(milliseconds * 1000)
        let fraction = "\(microseconds % 1_000_000)"
        return "\(microseconds / 1_000_000).\(String(repeating: "0", count: 6 - fraction.count))\(fraction)"
    }
}

extension URLText {
    /// Resolves a reference (RFC 3986 section 5.2) for `%{redirect_url}`. Does not remove dot segments.
    static func resolved(_ reference: String, from base: String) -> String {
        if reference.contains("://") { return reference }
        guard let separator = base.firstRange(of: "://") else { return reference }
        let place = base[separator.upperBound...]
        let end = place.firstIndex { "/?#".contains($0) } ?? place.endIndex
        let (scheme, origin, rest) = (base[..<separator.lowerBound], base[..<end], place[end...])
        if reference.hasPrefix("//") { return "\(scheme):\(reference)" }
        if reference.hasPrefix("/") { return origin + reference }
        let path = rest.prefix { $0 != "?" && $0 != "#" }
        if reference.hasPrefix("?") { return origin + (path.isEmpty ? "/" : path) + reference }
        let folder = path.lastIndex(of: "/").map { path[...$0] } ?? "/"
        return origin + folder + reference
    }
}
