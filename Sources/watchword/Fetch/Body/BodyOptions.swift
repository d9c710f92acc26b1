import ArgumentParser
import Glibc
import WatchwordProtocol

/// The options for the request body.
struct BodyOptions: ParsableArguments {
    @Option(
        name: [.customShort("d"), .customLong("data"), .customLong("data-ascii")],
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "Data to send with POST; @file reads a file and removes its line ends. Can be repeated.", valueName: "data"),
        transform: DataArgument.make(.text))
    var data: [DataArgument] = []

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp("Like --data, but the content of @file is sent unchanged.", valueName: "data"),
        transform: DataArgument.make(.binary))
    var dataBinary: [DataArgument] = []

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp("Like --data, without special handling of \"@\".", valueName: "data"),
        transform: DataArgument.make(.raw))
    var dataRaw: [DataArgument] = []

    @Option(
        name: .customLong("data-urlencode"), parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "Like --data, but percent-encoded: content, =content, name=content, @file or name@file.", valueName: "data"),
        transform: DataArgument.make(.urlEncoded))
    var dataURLEncoded: [DataArgument] = []

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "Add this data to the URL's query, percent-encoded as with --data-urlencode; +content is added unchanged.",
            valueName: "data"),
        transform: DataArgument.make(.query))
    var urlQuery: [DataArgument] = []

    @Flag(name: [.customShort("G"), .long], help: "Send the data in the URL's query, with the method GET.")
    var get = false

    @Option(
        name: [.customShort("F"), .long], parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "A form field: name=content, name=@file or name=<file, with optional ;type= and ;filename=. Can be repeated.",
            valueName: "field"),
        transform: DataArgument.make(.text))
    var form: [DataArgument] = []

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp("A form field whose content is taken literally.", valueName: "name=content"),
        transform: DataArgument.make(.raw))
    var formString: [DataArgument] = []

    @Option(
        name: [.customShort("T"), .long], parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "Upload this file with the method PUT; - is standard input. If the URL ends with a slash, the file name is appended. Can be repeated, once for each URL.",
            valueName: "file"),
        completion: .file())
    var uploadFile: [String] = []

    func validate() throws {
        let ways = [!allData.isEmpty, !fields.isEmpty, !uploadFile.isEmpty]
        guard ways.filter(\.self).count <= 1 else {
            throw ValidationError("use only one of -d, -F and -T")
        }
        _ = try formFields()
    }

    private var allData: [DataArgument] { data + dataBinary + dataRaw + dataURLEncoded }
    private var fields: [DataArgument] { (form + formString).sorted { $0.position < $1.position } }

    private func formFields() throws -> [FormField] {
        try fields.flatMap { field in
            field.kind == .raw ? [try FormField.literal(field.text)] : try FormField.parse(field.text)
        }
    }

    /// A URL and the body to send to it.
    struct Request: Equatable {
        var url: String
        var content: RequestContent?
    }

    /// Returns a request for each URL. The files of `-d` and `-F` are read once for all URLs, because standard input cannot be
    /// read again.
    /// - Parameter arguments: for each URL, the index of the URL argument that it comes from.
    func requests(for urls: [String], arguments: [Int]) throws -> [Request] {
        let extra = try DataArgument.joined(urlQuery).map { try $0.bytes() }
        let urls = extra.map { query in urls.map { Self.adding(query, to: $0) } } ?? urls
        if !uploadFile.isEmpty {
            return try zip(urls, arguments).map { url, index in
                guard index < uploadFile.count else { return Request(url: url) }
                return Request(
                    url: Self.named(url, file: uploadFile[index]), content: try Self.upload(uploadFile[index]))
            }
        }
        let fields = try formFields()
        let content =
            try fields.isEmpty
            ? DataArgument.joined(allData) : Multipart.content(fields, boundary: Multipart.randomBoundary())
        guard get, let query = try content?.bytes() else { return urls.map { Request(url: $0, content: content) } }
        return urls.map { Request(url: Self.adding(query, to: $0)) }
    }

    /// Returns the method that the options imply for a URL argument; `nil` if they send no body.
    func method(at index: Int) -> String? {
        if index < uploadFile.count { return "PUT" }
        return get || (allData.isEmpty && fields.isEmpty) ? nil : "POST"
    }

    /// Adds `query` to the query of `url`.
    private static func adding(_ query: [UInt8], to url: String) -> String {
        guard !query.isEmpty else { return url }
        let fragment = url.firstIndex(of: "#") ?? url.endIndex
        let separator = url[..<fragment].contains("?") ? "&" : "?"
        return url[..<fragment] + separator + String(decoding: query, as: UTF8.self) + url[fragment...]
    }

    /// Appends the name of `file` to a URL for `-T` if the path is missing or ends with a slash.
    static func named(_ url: String, file: String) -> String {
        guard let name = file.split(separator: "/").last, file != "-", file != "." else { return url }
        let place = url.firstRange(of: "://").map { url[$0.upperBound...] } ?? url[...]
        let path = place.prefix { $0 != "?" && $0 != "#" }
        guard path.hasSuffix("/") || !path.contains("/") else { return url }
        let separator = path.hasSuffix("/") ? "" : "/"
        return url[..<path.endIndex] + separator + DataArgument.percentEncoded(name.utf8) + url[path.endIndex...]
    }

    private static func upload(_ file: String) throws -> RequestContent {
        var content = RequestContent()
        // Like curl, treats `.` as standard input too.
        if file == "-" || file == "." {
            content.parts = [.stream(descriptor: STDIN_FILENO)]
        } else if try InputFile.size(file) == nil {
            content.parts = [.stream(descriptor: try InputFile.open(file))]
        } else {
            try content.append(file: file)
        }
        return content
    }
}
