import ArgumentParser
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
            valueName: "file"))
    var uploadFile: [String] = []

    func validate() throws {
        let ways = [!allData.isEmpty, !fields.isEmpty, !uploadFile.isEmpty]
        guard ways.filter(\.self).count <= 1 else {
            throw ValidationError("Give one of -d, -F and -T: a request has one body.")
        }
        if get && allData.isEmpty { throw ValidationError("-G goes with -d or --data-urlencode.") }
        _ = try formFields()
    }

    private var allData: [DataArgument] { data + dataBinary + dataRaw + dataURLEncoded }
    private var fields: [DataArgument] { (form + formString).sorted { $0.position < $1.position } }

    private func formFields() throws -> [FormField] {
        try fields.flatMap { field in
            field.kind == .raw ? [try FormField.literal(field.text)] : try FormField.parse(field.text)
        }
    }

    /// The body for the URL of this number; `nil` for none.
    func content(at index: Int) throws -> RequestContent? {
        if get { return nil }
        if !uploadFile.isEmpty { return try index < uploadFile.count ? Self.upload(uploadFile[index]) : nil }
        let fields = try formFields()
        if !fields.isEmpty { return try Multipart.content(fields, boundary: Multipart.randomBoundary()) }
        return try DataArgument.joined(allData)
    }

    /// The method that the options mean.
    func method(at index: Int) -> String? {
        if index < uploadFile.count { return "PUT" }
        return get || (allData.isEmpty && fields.isEmpty) ? nil : "POST"
    }

    /// The URL with what the options add to it: `-G` the data, `-T` the file's name.
    func url(_ url: String, at index: Int) throws -> String {
        if index < uploadFile.count { return Self.named(url, file: uploadFile[index]) }
        guard get, let data = try DataArgument.joined(allData)?.bytes() else { return url }
        let fragment = url.firstIndex(of: "#") ?? url.endIndex
        let separator = url[..<fragment].contains("?") ? "&" : "?"
        return url[..<fragment] + separator + String(decoding: data, as: UTF8.self) + url[fragment...]
    }

    static func named(_ url: String, file: String) -> String {
        guard let name = file.split(separator: "/").last, file != "-" else { return url }
        let place = url.firstRange(of: "://").map { url[$0.upperBound...] } ?? url[...]
        guard !place.contains("?"), !place.contains("#") else { return url }
        if !place.contains("/") { return "\(url)/\(DataArgument.percentEncoded(name.utf8))" }
        return place.hasSuffix("/") ? url + DataArgument.percentEncoded(name.utf8) : url
    }

    private static func upload(_ file: String) throws -> RequestContent {
        var content = RequestContent()
        // `.` is standard input for curl, too.
        if file == "-" || file == "." { content.parts = [.standardInput] } else { try content.append(file: file) }
        return content
    }
}
