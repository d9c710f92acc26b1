/// The file of `-D`: one for all URLs of the command, with one header behind the other.
final class HeaderFile {
    private let name: String
    private var written: [UInt8] = []

    /// - Parameter name: `-` is standard output.
    init(_ name: String) { self.name = name }

    func add(_ header: [UInt8]) throws {
        if name == "-" { return try ResponseOutput.standardOutput().write(header) }
        let file = try ResponseOutput(file: name, createsFolders: false)
        written += header
        // A device, or a pipe, has the others already.
        try file.write(ResponseOutput.isSpecial(name) ? header : written)
        try file.finish()
    }
}
