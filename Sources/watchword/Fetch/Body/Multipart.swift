/// A body of the type `multipart/form-data` (RFC 7578).
enum Multipart {
    /// Returns a boundary with the length of curl's. It needs no quotation marks in a header field.
    static func randomBoundary() -> String {
        let characters = Array("0123456789abcdefghijklmnopqrstuvwxyz")
        return String(repeating: "-", count: 24) + String((0..<24).map { _ in characters.randomElement() ?? "0" })
    }

    static func content(_ fields: [FormField], boundary: String) throws -> RequestContent {
        var content = RequestContent(contentType: "multipart/form-data; boundary=\(boundary)")
        for field in fields {
            content.append("--\(boundary)\r\n\(header(field))\r\n".utf8)
            switch field.source {
            case .text(let text): content.append(text.utf8)
            case .upload(let path), .content(let path): try content.append(file: path)
            }
            content.append("\r\n".utf8)
        }
        content.append("--\(boundary)--\r\n".utf8)
        return content
    }

    private static func header(_ field: FormField) -> String {
        var disposition = "Content-Disposition: form-data; name=\"\(escaped(field.name))\""
        if let name = field.fileName ?? defaultFileName(field) { disposition += "; filename=\"\(escaped(name))\"" }
        let type = (field.type ?? defaultType(field)).map { "Content-Type: \($0)" }
        return ([disposition, type].compactMap(\.self) + field.headers).map { $0 + "\r\n" }.joined()
    }

    private static func defaultFileName(_ field: FormField) -> String? {
        guard case .upload(let path) = field.source else { return nil }
        return path.split(separator: "/").last.map(String.init) ?? path
    }

    /// Escapes a name as browsers do (HTML, "multipart/form-data encoding algorithm"), and curl since 7.81.
    static func escaped(_ name: String) -> String {
        var result = ""
        for scalar in name.unicodeScalars {
            switch scalar {
            case "\"": result += "%22"
            case "\r": result += "%0D"
            case "\n": result += "%0A"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    /// Returns the type for the file name extensions that curl knows.
    private static func defaultType(_ field: FormField) -> String? {
        let types = [
            ".gif": "image/gif", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".png": "image/png",
            ".svg": "image/svg+xml", ".txt": "text/plain", ".htm": "text/html", ".html": "text/html",
            ".pdf": "application/pdf", ".xml": "application/xml",
        ]
        let (path, other): (String, String?)
        switch field.source {
        case .text: return nil
        case .upload(let file): (path, other) = (file, "application/octet-stream")
        case .content(let file): (path, other) = (file, nil)
        }
        for name in [field.fileName, path].compactMap(\.self) {
            if let type = types.first(where: { name.lowercased().hasSuffix($0.key) }) { return type.value }
        }
        return other
    }
}
