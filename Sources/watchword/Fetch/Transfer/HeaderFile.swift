/// The file of `-D`, which receives the headers of all URLs of the command.
final class HeaderFile {
    private let name: String
    private var written: [UInt8] = []

    /// - Parameter name: `-` is standard output.
    init(_ name: String) { self.name = name }

    func add(_ header: [UInt8]) throws {
        if name == "-" { return try ResponseOutput.standardOutput().write(header) }
        let file = try ResponseOutput(file: name, createsFolders: false)
        written += header
        // A device or pipe has received the previous headers already.
        try file.write(ResponseOutput.isSpecial(name) ? header : written)
        try file.finish()
    }
}
