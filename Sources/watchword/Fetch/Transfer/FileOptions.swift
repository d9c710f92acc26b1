import ArgumentParser
import Glibc
import WatchwordProtocol

/// Where responses go.
struct FileOptions: ParsableArguments {
    @Option(
        name: .shortAndLong,
        help: ArgumentHelp(
            "Write the body to a file, which appears when it is complete. Can be repeated, one for each URL.",
            valueName: "file"),
        completion: .file(), transform: DataArgument.make(.raw))
    var output: [DataArgument] = []

    @Flag(
        name: [.customShort("O"), .customLong("remote-name")],
        help: "Write it to a file with the last name in the URL's path. Can be repeated, one for each URL.")
    var remoteName: Int

    @Flag(help: "-O for every URL that has no -o of its own.")
    var remoteNameAll = false

    @Flag(help: "Make the folders that the file is in.")
    var createDirs = false

    @Option(
        help: ArgumentHelp("The folder for the files of -o and -O.", valueName: "folder"), completion: .directory)
    var outputDir: String?

    @Flag(name: [.customShort("R"), .long], help: "Give files the time at which the server's were last changed.")
    var remoteTime = false

    @Flag(help: "Leave no incomplete file behind. That is so anyway, unless -C is given.")
    var removeOnError = false

    @Option(
        help: ArgumentHelp("Write messages to this file; - is standard output.", valueName: "file"),
        completion: .file())
    var stderr: String?

    @Option(
        name: [.customShort("C"), .long], parsing: .unconditional,
        help: ArgumentHelp(
            "Go on from this byte; - finds it out. What is not complete stays in FILE.part, and is fetched anew when the server has another version.",
            valueName: "offset"))
    var continueAt: String?

    /// Where one response goes.
    enum Place: Equatable {
        case standardOutput
        case file(String)
        /// `-O`: the URL says it.
        case remoteName
    }

    func validate() throws {
        if let continueAt, continueAt != "-", Int(continueAt).map({ $0 < 0 }) ?? true {
            throw ValidationError("-C takes a number of bytes, or - for what is there.")
        }
        if output.contains(where: { $0.text.isEmpty }) { throw ValidationError("-o takes the name of a file.") }
    }

    /// For the URL argument of this number: the first `-o` or `-O` of the command is for the first URL, and so on, as with curl.
    func place(at index: Int) -> Place {
        var places = output.map { $0.text == "-" ? Place.standardOutput : .file($0.text) }
        if remoteName > 0 {
            let order = output.isEmpty ? nil : Self.order(of: CurlArguments.current?.rewritten ?? [])
            guard let order else { return index < remoteName || remoteNameAll ? .remoteName : .standardOutput }
            places = order.map { isRemote in isRemote || places.isEmpty ? .remoteName : places.removeFirst() }
        }
        return index < places.count ? places[index] : remoteNameAll ? .remoteName : .standardOutput
    }

    /// Whether each one of the options `-o` and `-O` is `-O`.
    static func order(of arguments: [String]) -> [Bool] {
        arguments.prefix { $0 != "--" }.compactMap { argument in
            if argument == "--remote-name" { return true }
            return argument == "--output" || argument.hasPrefix("--output=") ? false : nil
        }
    }

    /// `-` is standard output.
    func redirectErrors() throws {
        guard let stderr else { return }
        if stderr == "-" {
            dup2(STDOUT_FILENO, STDERR_FILENO)
            return
        }
        let file = try ResponseOutput.target(of: stderr)
        let isPipe = FoundFile.isPipe(stderr)
        if !isPipe, access(file, W_OK) == 0, !ResponseOutput.isSpecial(stderr) { _ = try ReplacedFile(file) }
        let descriptor =
            isPipe ? try SpecialFile.open(stderr) : open(stderr, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
        // As with curl, what cannot be said there is said here.
        guard descriptor >= 0 else {
            return StandardError.note("cannot write to \(stderr): \(String(cString: strerror(errno)))")
        }
        dup2(descriptor, STDERR_FILENO)
        close(descriptor)
    }
}
