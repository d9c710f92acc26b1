import CCurl
import WatchwordProtocol

@testable import WatchwordCore

private let bases = [
    "http://h/", "https://h/a/b?q", "https://h:8443/x/y", "http://[::1]:81/", "https://h.example./%2e",
]

/// Checks that the target of a `Location` has one spelling, in which libcurl sees the same host, port and path; that the scheme
/// changes only if the field names it; that no redirect leads from https to http after a login; and that only safe fields are sent
/// to another origin.
func checkRedirects(_ bytes: [UInt8]) throws {
    guard let choice = bytes.first, bytes.count <= Limits.urlBytes else { return }
    let location = String(decoding: bytes[1...], as: UTF8.self)
    let base = try FetchURL(bases[Int(choice) % bases.count])
    try checkHop(from: base, location, status: [301, 302, 303, 307, 308][Int(choice) / 5 % 5])
    guard let url = try? base.resolving(location) else { return }
    try hold(try FetchURL(url.text) == url, "\(url.text) has another spelling")
    try hold(url.text.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != 0x5C }, "\(url.text) is not clean")
    try hold(!url.origin.text.contains("@"), "\(url.text) names a user")
    try hold(url.path.hasPrefix("/"), "\(url.text) has no path")
    let segments = url.path.string.split(separator: "/").map { $0.lowercased().replacing("%2e", with: ".") }
    try hold(!segments.contains(".") && !segments.contains(".."), "\(url.text) has dot segments")
    if url.origin.scheme != base.origin.scheme {
        let named = location.utf8.prefix(url.origin.scheme.rawValue.utf8.count).map(\.asciiLowercased)
        try hold(named.elementsEqual(url.origin.scheme.rawValue.utf8), "the scheme changes silently: \(url.text)")
    }
    try checkWithLibcurl(url)
}

private func checkHop(from base: FetchURL, _ location: String, status: Int) throws {
    let headers = ["Accept", "X-Key", "Cookie", "Content-Type"].map { HeaderField($0, "v") }
    let hop = HopRequest(url: base, method: "POST", headers: headers, body: .bytes([1]))
    let response = TransferResponse(status: status, headers: [HeaderField("Location", location)])
    guard let next = try? RedirectPolicy.next(after: hop, response: response, hasAuthenticated: true) else { return }
    try hold(base.origin.scheme == .http || next.url.origin.scheme == .https, "to http after a login: \(next.url.text)")
    guard next.url.origin != base.origin else { return }
    let names = Set(next.headers.map(\.name))
    let allowed: Set = next.body == nil ? ["Accept"] : ["Accept", "Content-Type"]
    try hold(names.isSubset(of: allowed), "\(names) are sent to \(next.url.text)")
}

/// Checks that libcurl parses the URL alike: if the two parsers disagreed on the host, a credential could be sent to another server. A
/// URL that libcurl rejects is not sent.
private func checkWithLibcurl(_ url: FetchURL) throws {
    let parsed = curl_url()
    defer { curl_url_cleanup(parsed) }
    let flags = UInt32(CURLU_PATH_AS_IS | CURLU_DISALLOW_USER)
    guard curl_url_set(parsed, CURLUPART_URL, url.text, flags) == CURLUE_OK else { return }
    func part(_ part: CURLUPart, _ flags: Int32 = 0) -> String? {
        var text: UnsafeMutablePointer<CChar>?
        guard curl_url_get(parsed, part, &text, UInt32(flags)) == CURLUE_OK, let text else { return nil }
        defer { curl_free(text) }
        return String(cString: text)
    }
    try hold(part(CURLUPART_SCHEME) == url.origin.scheme.rawValue, "libcurl reads another scheme in \(url.text)")
    // libcurl normalises IPv6 addresses differently.
    let host = part(CURLUPART_HOST)
    try hold(
        url.origin.host.hasPrefix("[") || host == url.origin.host.string,
        "libcurl reads the host \(host ?? "") in \(url.text)"
    )
    let port = part(CURLUPART_PORT, CURLU_DEFAULT_PORT)
    try hold(port == String(url.origin.port), "libcurl reads the port \(port ?? "") in \(url.text)")
    let path = part(CURLUPART_PATH)
    try hold(path == url.path.string, "libcurl reads the path \(path ?? "") in \(url.text)")
    try hold(part(CURLUPART_USER) == nil, "libcurl reads a user in \(url.text)")
}
