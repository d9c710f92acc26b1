import ArgumentParser
import WatchwordProtocol

/// Where responses go.
struct FileOptions: ParsableArguments {
    @Option(
        name: .shortAndLong,
        help: ArgumentHelp(
            "Write the body to a file, which appears when it is complete. Can be repeated, one for each URL.",
            valueName: "file"),
        transform: DataArgument.make(.raw))
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
        if remoteName > 0 && !output.isEmpty && Self.order(of: CommandLine.arguments) == nil {
            throw ValidationError("Which of -o and -O is for which URL cannot be told here. Give only one of them.")
        }
    }

    /// For the URL of this number: the first `-o` or `-O` of the command is for the first URL, and so on, as with curl.
    func place(at index: Int) -> Place {
        var places = output.map { $0.text == "-" ? Place.standardOutput : .file($0.text) }
        if remoteName > 0 {
            let order = output.isEmpty ? nil : Self.order(of: CommandLine.arguments)
            guard let order else { return index < remoteName || remoteNameAll ? .remoteName : .standardOutput }
            places = order.map { isRemote in isRemote || places.isEmpty ? .remoteName : places.removeFirst() }
        }
        return index < places.count ? places[index] : remoteNameAll ? .remoteName : .standardOutput
    }

    /// Whether each one of the options `-o` and `-O` is `-O`; `nil` where they are inside groups of letters.
    static func order(of arguments: [String]) -> [Bool]? {
        var order: [Bool] = []
        for argument in arguments.prefix(while: { $0 != "--" }) {
            if argument == "-O" || argument == "--remote-name" {
                order.append(true)
            } else if argument == "--output" || argument.hasPrefix("--output=") || argument.hasPrefix("-o") {
                order.append(false)
            } else if argument.hasPrefix("-"), !argument.hasPrefix("--"),
                argument.contains(where: { "oO".contains($0) })
            {
                return nil
            }
        }
        return order
    }
}

/// How fast, how much, and how many at once.
struct PaceOptions: ParsableArguments {
    @Flag(help: "Ask for a compressed response, and write it decompressed.")
    var compressed = false

    @Option(help: ArgumentHelp("No faster than this; k, M and G count by 1024.", valueName: "bytes per second"))
    var limitRate: String?

    @Option(help: ArgumentHelp("End with code 63 for a larger body; k, M and G count by 1024.", valueName: "bytes"))
    var maxFilesize: String?

    @Option(
        name: [.customShort("Y"), .long],
        help: ArgumentHelp(
            "End with code 28 when it is slower than this for the time of -y.", valueName: "bytes per second"))
    var speedLimit: Int?

    @Option(
        name: [.customShort("y"), .long], help: ArgumentHelp("The time for -Y, 30 unless given.", valueName: "seconds"))
    var speedTime: Int?

    @Flag(name: [.customShort("Z"), .long], help: "Fetch all URLs at once.")
    var parallel = false

    @Option(help: ArgumentHelp("At most so many at once with -Z.", valueName: "number"))
    var parallelMax = 50

    @Flag(name: .shortAndLong, help: "Show no progress and no errors.")
    var silent = false

    @Flag(name: [.customShort("S"), .long], help: "Show errors, also with -s.")
    var showError = false

    @Flag(name: [.customShort("#"), .long], help: "Show the progress as a bar and nothing else.")
    var progressBar = false

    @Flag(help: "Show no progress. Without a terminal there is none anyway.")
    var noProgressMeter = false

    func validate() throws {
        for (text, name) in [(limitRate, "--limit-rate"), (maxFilesize, "--max-filesize")] {
            if let text, ByteCount.parse(text) == nil {
                throw ValidationError("\(name) takes a number of bytes, such as 500k or 2M.")
            }
        }
        // As many bodies as the broker holds for one connection.
        guard (1...Limits.openBodies).contains(parallelMax) else {
            throw ValidationError("--parallel-max takes 1 to \(Limits.openBodies).")
        }
        guard (speedLimit ?? 1) > 0, (speedTime ?? 1) > 0 else {
            throw ValidationError("-Y and -y take numbers above 0.")
        }
    }

    func set(_ params: inout FetchRunParams) {
        params.decompress = compressed
        params.maxBytesPerSecond = limitRate.flatMap(ByteCount.parse).flatMap { $0 > 0 ? $0 : nil }
        params.maxBodyBytes = maxFilesize.flatMap(ByteCount.parse).flatMap { $0 > 0 ? $0 : nil }
        if speedLimit != nil || speedTime != nil {
            params.lowSpeed = LowSpeed(bytesPerSecond: speedLimit ?? 1, seconds: speedTime ?? 30)
        }
    }
}
