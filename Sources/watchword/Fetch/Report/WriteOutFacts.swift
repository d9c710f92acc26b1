import ArgumentParser
import JSONText
import WatchwordProtocol

/// The values of the variables of `-w` for one transfer: those of curl 7.88, and `watchword_user` and `watchword_source`.
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

    /// Returns `nil` if there is no such variable.
    func value(of variable: String) -> String? {
        switch variable {
        case "content_type": header("Content-Type")
        case "errormsg": hasSucceeded ? "" : errorText
        case "exitcode": "\(code.rawValue)"
        case "filename_effective": item.file ?? ""
        case "header_json": headerJSON
        case "http_code", "response_code": Self.padded(head?.status ?? 0)
        case "http_connect": "000"
        case "http_version": head?.httpVersion ?? "0"
        case "json": (result ?? [:]).line
        case "method": log.method ?? item.params.method
        case "num_headers": "\(head?.headers.count ?? 0)"
        case "num_redirects": "\(log.redirects)"
        case "redirect_url": redirectURL
        case "referer": item.params.headers.firstValue(of: "Referer") ?? ""
        case "scheme": url.firstRange(of: "://").map { url[..<$0.lowerBound].uppercased() } ?? ""
        case "size_download": "\(receivedBytes)"
        case "size_header": "\(log.headerBytes)"
        case "size_upload": "\(head == nil || log.redirects > 0 ? 0 : item.content?.sizeBytes ?? 0)"
        case "speed_download": "\(speed(receivedBytes))"
        case "speed_upload": "\(speed(item.content?.sizeBytes ?? 0))"
        case "time_total": Self.seconds(total)
        case "time_starttransfer", "time_appconnect", "time_connect", "time_namelookup", "time_pretransfer",
            "time_redirect":
            Self.seconds(0)
        case "url": item.params.url
        case "url_effective": url
        case "urlnum": "\(item.number)"
        case "watchword_user": result?["auth"]?["user"]?.string ?? ""
        case "watchword_source": result?["auth"]?["source"]?.string ?? ""
        // These belong to the broker's connection to the server, and are not reported.
        case "certs", "ftp_entry_path", "local_ip", "remote_ip": ""
        case "local_port", "remote_port", "num_certs", "num_connects", "size_request", "proxy_ssl_verify_result",
            "ssl_verify_result":
            "0"
        default: nil
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
            let values =
                head?.headers.filter { $0.name.lowercased() == name }.map { JSON.string($0.value.readable).line } ?? []
            return "\(JSON.string(name).line):[\(values.joined(separator: ","))]"
        }
        return "{\(lines.joined(separator: ",\n"))\n}"
    }

    private var url: String { result?["url"]?.string ?? log.url ?? item.params.url }

    /// The target of a redirect that was not followed; empty if there is none.
    private var redirectURL: String {
        guard let head, (300..<400).contains(head.status), let location = head.headers.firstValue(of: "Location")
        else { return "" }
        return URLText.resolved(location.percentEncodingMarks, from: url)
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
