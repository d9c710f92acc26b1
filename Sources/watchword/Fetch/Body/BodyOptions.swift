import ArgumentParser
import Glibc
import WatchwordProtocol

/// What to send.
struct BodyOptions: ParsableArguments {
    @Option(
        name: [.customShort("d"), .customLong("data"), .customLong("data-ascii")],
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "Data to post; @file reads a file, without its line ends. Can be repeated.", valueName: "data"),
        transform: DataArgument.make(.text))
    var data: [DataArgument] = []

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp("The same; @file is sent byte by byte.", valueName: "data"),
        transform: DataArgument.make(.binary))
    var dataBinary: [DataArgument] = []

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp("The same; an @ means nothing.", valueName: "data"), transform: DataArgument.make(.raw))
    var dataRaw: [DataArgument] = []

    @Option(
        name: .customLong("data-urlencode"), parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "The same, percent-encoded: content, =content, name=content, @file or name@file.", valueName: "data"),
        transform: DataArgument.make(.urlEncoded))
    var dataURLEncoded: [DataArgument] = []

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "Add this to the URL's query, percent-encoded as with --data-urlencode; +content is added as it is.",
            valueName: "data"),
        transform: DataArgument.make(.query))
    var urlQuery: [DataArgument] = []

    @Flag(name: [.customShort("G"), .long], help: "Put the data behind the URL's question mark, and get it.")
    var get = false

    @Option(
        name: [.customShort("F"), .long], parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "A field of a form: name=content, name=@file or name=<file, each with ;type= and ;filename=. Can be repeated.",
            valueName: "field"),
        transform: DataArgument.make(.text))
    var form: [DataArgument] = []

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp("A field of a form, in which nothing has a meaning.", valueName: "name=content"),
        transform: DataArgument.make(.raw))
    var formString: [DataArgument] = []

    @Option(
        name: [.customShort("T"), .long], parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "Put this file there; - is standard input. A URL that ends with a slash gets the file's name. Can be repeated, one for each URL.",
            valueName: "file"),
        completion: .file())
    var uploadFile: [String] = []

    func validate() throws {
        let ways = [!allData.isEmpty, !fields.isEmpty, !uploadFile.isEmpty]
        guard ways.filter(\.self).count <= 1 else {
            throw ValidationError("Give one of -d, -F and -T: a request has one body.")
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

    /// What is sent where.
    struct Request: Equatable {
        var url: String
        var content: RequestContent?
    }

    /// One for each URL. Each file is read once, whatever their number: standard input has no second time.
    /// - Parameter arguments: which argument of the command each URL comes from.
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

    /// The method that the options mean.
    func method(at index: Int) -> String? {
        if index < uploadFile.count { return "PUT" }
        return get || (allData.isEmpty && fields.isEmpty) ? nil : "POST"
    }

    /// `-G`.
    private static func adding(_ query: [UInt8], to url: String) -> String {
        guard !query.isEmpty else { return url }
        let fragment = url.firstIndex(of: "#") ?? url.endIndex
        let separator = url[..<fragment].contains("?") ? "&" : "?"
        return url[..<fragment] + separator + String(decoding: query, as: UTF8.self) + url[fragment...]
    }

    /// `-T` to a folder.
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
        // `.` is standard input for curl, too.
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
