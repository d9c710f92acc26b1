import ArgumentParser
import Glibc
import WatchwordProtocol

/// The options for output files.
struct FileOptions: ParsableArguments {
    @Option(
        name: .shortAndLong,
        help: ArgumentHelp(
            "Write the body to this file, which is created or replaced when the body is complete. Can be repeated, once for each URL.",
            valueName: "file"),
        completion: .file(), transform: DataArgument.make(.raw))
    var output: [DataArgument] = []

    @Flag(
        name: [.customShort("O"), .customLong("remote-name")],
        help:
            "Write the body to a file named after the last segment of the URL's path. Can be repeated, once for each URL."
    )
    var remoteName: Int

    @Flag(help: "Use -O for every URL without its own -o.")
    var remoteNameAll = false

    @Flag(help: "Create missing parent directories.")
    var createDirs = false

    @Option(
        help: ArgumentHelp("The directory for the files of -o and -O.", valueName: "directory"), completion: .directory)
    var outputDir: String?

    @Flag(name: [.customShort("R"), .long], help: "Set the modification time of files to that of Last-Modified.")
    var remoteTime = false

    @Flag(
        help:
            "Also remove the incomplete file of a transfer that Ctrl-C, a lost broker or --fail-early ends. Without this, FILE.part remains, which -C - resumes. Other incomplete files are removed, unless -C is given."
    )
    var removeOnError = false

    @Option(
        help: ArgumentHelp("Write error messages and notes to this file; - is standard output.", valueName: "file"),
        completion: .file())
    var stderr: String?

    @Option(
        name: [.customShort("C"), .long], parsing: .unconditional,
        help: ArgumentHelp(
            "Resume at this offset; \"-\" detects it. An incomplete file is stored as FILE.part, and is fetched again from the start if the server has another version.",
            valueName: "offset"))
    var continueAt: String?

    /// The destination of one response.
    enum Place: Equatable {
        case standardOutput
        case file(String)
        /// `-O`: a file named after the URL.
        case remoteName
    }

    func validate() throws {
        if let continueAt, continueAt != "-", Int(continueAt).map({ $0 < 0 }) ?? true {
            throw ValidationError("-C takes a number of bytes, or \"-\" for the size of the partial file")
        }
        if output.contains(where: { $0.text.isEmpty }) { throw ValidationError("-o takes a file name") }
    }

    /// Returns the destination for a URL argument. As in curl, each `-o` or `-O` applies to one URL, in the order of the command.
    func place(at index: Int) -> Place {
        var places = output.map { $0.text == "-" ? Place.standardOutput : .file($0.text) }
        if remoteName > 0 {
            let order = output.isEmpty ? nil : Self.order(of: CurlArguments.current?.rewritten ?? [])
            guard let order else { return index < remoteName || remoteNameAll ? .remoteName : .standardOutput }
            places = order.map { isRemote in isRemote || places.isEmpty ? .remoteName : places.removeFirst() }
        }
        return index < places.count ? places[index] : remoteNameAll ? .remoteName : .standardOutput
    }

    /// Returns, for each option `-o` or `-O` in order, whether it is `-O`.
    static func order(of arguments: [String]) -> [Bool] {
        arguments.prefix { $0 != "--" }.compactMap { argument in
            if argument == "--remote-name" { return true }
            return argument == "--output" || argument.hasPrefix("--output=") ? false : nil
        }
    }

    /// Redirects standard error to the file of `--stderr`; `-` is standard output.
    func redirectErrors() throws {
        guard let stderr else { return }
        if stderr == "-" {
            dup2(STDOUT_FILENO, STDERR_FILENO)
            return
        }
        // If the file cannot be opened, messages remain on standard error, as in curl.
        if access(stderr, F_OK) != 0, errno == ELOOP { return Self.reportUnwritable(stderr) }
        let file = try ResponseOutput.target(of: stderr)
        let isPipe = ExistingFile.isPipe(stderr)
        if !isPipe, access(file, W_OK) == 0, !ResponseOutput.isSpecial(stderr) { _ = try ReplacedFile(file) }
        let descriptor =
            isPipe ? try SpecialFile.open(stderr) : open(stderr, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else { return Self.reportUnwritable(stderr) }
        dup2(descriptor, STDERR_FILENO)
        close(descriptor)
    }

    private static func reportUnwritable(_ file: String) {
        StandardError.note("cannot write to \(file): \(String(cString: strerror(errno))); ignoring --stderr")
    }
}
