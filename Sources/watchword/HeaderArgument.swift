import ArgumentParser
import WatchwordProtocol

/// The values of `-H`.
enum HeaderArgument {
    /// In their order; for `@FILE` those in its lines, and for `@-` those of standard input.
    static func fields(_ values: [String]) throws -> [HeaderField] {
        try values.flatMap { value in
            guard value.hasPrefix("@") else { return [try field(value)] }
            let file = String(value.dropFirst())
            guard let text = String(validating: try InputFile.content(of: file), as: UTF8.self) else {
                throw InputFile.failure("the file \(file) is not UTF-8; write one header field in each line")
            }
            return try text.split { $0 == "\n" || $0 == "\r\n" }.map { try field(String($0), in: file) }
        }
    }

    /// What is wrong is said without quoting a line of a file: the value in it may be a secret.
    private static func field(_ text: String, in file: String? = nil) throws -> HeaderField {
        guard let colon = text.firstIndex(of: ":") else {
            guard let file else {
                throw ValidationError("\"\(text.shortened)\" is not a header field. Write \"Name: value\".")
            }
            throw InputFile.failure("a line of the file \(file) is not a header field; write \"Name: value\"")
        }
        let value = text[text.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
        return HeaderField(String(text[..<colon]), String(value))
    }
}
