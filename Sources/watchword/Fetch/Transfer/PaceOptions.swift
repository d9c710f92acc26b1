import ArgumentParser
import WatchwordProtocol

/// The options for rates, sizes, concurrency and progress.
struct PaceOptions: ParsableArguments {
    @Flag(help: "Request a compressed response and write it decompressed.")
    var compressed = false

    @Option(
        help: ArgumentHelp("Limit the transfer rate; k, M and G are powers of 1024.", valueName: "bytes per second"))
    var limitRate: String?

    @Option(
        help: ArgumentHelp(
            "Exit with code 63 if the body is larger; k, M and G are powers of 1024.", valueName: "bytes"))
    var maxFilesize: String?

    @Option(
        name: [.customShort("Y"), .long],
        help: ArgumentHelp(
            "Exit with code 28 if the transfer is slower than this for the time of -y.", valueName: "bytes per second"))
    var speedLimit: Int?

    @Option(
        name: [.customShort("y"), .long], help: ArgumentHelp("The time for -Y; default 30.", valueName: "seconds"))
    var speedTime: Int?

    @Flag(name: [.customShort("Z"), .long], help: "Fetch all URLs at once.")
    var parallel = false

    @Option(help: ArgumentHelp("The maximum number of concurrent fetches with -Z.", valueName: "number"))
    var parallelMax = 50

    @Flag(name: .shortAndLong, help: "Show no progress and no errors.")
    var silent = false

    @Flag(name: [.customShort("S"), .long], help: "Show errors even with -s.")
    var showError = false

    @Flag(name: [.customShort("#"), .long], help: "Show only a progress bar.")
    var progressBar = false

    @Flag(help: "Show no progress. Without a terminal, no progress is shown in any case.")
    var noProgressMeter = false

    func validate() throws {
        for (text, name) in [(limitRate, "--limit-rate"), (maxFilesize, "--max-filesize")] {
            if let text, ByteCount.parse(text) == nil {
                throw ValidationError("\(name) takes a number of bytes, such as 500k or 2M")
            }
        }
        // The broker limits the open bodies of one connection.
        guard (1...Limits.openBodies).contains(parallelMax) else {
            throw ValidationError("--parallel-max takes 1 to \(Limits.openBodies)")
        }
        guard (speedLimit ?? 1) > 0, (speedTime ?? 1) > 0 else {
            throw ValidationError("-Y and -y take a number above 0")
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

/// Parses sizes as curl's options do, and formats them for display.
enum ByteCount {
    /// Parses a number of bytes with an optional suffix `k`, `M`, `G`, `T` or `P`, a power of 1024. Returns `nil` for
    /// anything else.
    static func parse(_ text: String) -> Int? {
        var digits = text[...]
        var shift = 0
        if let last = text.last, !last.isNumber {
            guard let power = "kmgtp".firstIndex(of: Character(last.lowercased())) else { return nil }
            shift = 10 * ("kmgtp".distance(from: "kmgtp".startIndex, to: power) + 1)
            digits = digits.dropLast()
            if digits.last == "." { return nil }
        }
        guard let number = Double(digits), digits.allSatisfy({ $0.isNumber || $0 == "." }) else { return nil }
        let bytes = number * Double(1 << shift)
        return bytes < Double(Int.max) && (shift > 0 || !digits.contains(".")) ? Int(bytes) : nil
    }

    /// Formats a size as a number of at most four characters and a unit.
    static func text(_ bytes: Int) -> String {
        var number = Double(bytes)
        for unit in ["B", "KiB", "MiB", "GiB", "TiB"] {
            if number < 999.5 || unit == "TiB" {
                let isSmall = unit != "B" && number < 99.95
                let tenths = Int((number * 10).rounded())
                return isSmall ? "\(tenths / 10).\(tenths % 10) \(unit)" : "\(Int(number.rounded())) \(unit)"
            }
            number /= 1024
        }
        return ""
    }
}
