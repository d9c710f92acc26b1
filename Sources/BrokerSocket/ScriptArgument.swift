/// Finds the script that an interpreter runs, in its command line.
///
/// The result is a hint, because a process can overwrite its command line. It is `nil` for an interpreter that runs code from
/// an option, a module or its input, for options that load other code first, and for unknown options.
enum ScriptArgument {
    /// - Parameters:
    ///   - commandLine: the beginning of `/proc/PID/cmdline` (proc(5)): arguments that end with a zero byte.
    ///   - program: the path of the interpreter.
    /// - Returns: the path of the script, as the interpreter received it.
    static func find(in commandLine: @autoclosure () -> [UInt8], of program: String) -> String? {
        guard let options = InterpreterOptions.of(program) else { return nil }
        // An argument without its zero byte is incomplete.
        var arguments = commandLine().split(separator: 0, omittingEmptySubsequences: false).dropLast().dropFirst()
        while let argument = arguments.popFirst() {
            switch options.read(argument, &arguments) {
            case .option: continue
            case .script(let bytes): return bytes.isEmpty ? nil : String(validating: bytes, as: UTF8.self)
            case .otherCode: return nil
            }
        }
        return nil
    }
}

/// The options of an interpreter that can precede a script.
private struct InterpreterOptions {
    enum Meaning {
        case option
        case script(ArraySlice<UInt8>)
        /// The process runs other code than a script, or the option is unknown.
        case otherCode
    }

    /// Letters without a value, which can share an argument.
    var flags = ""
    /// Letters with a value: the rest of the argument, or the next one if the rest is empty.
    var valued = ""
    /// Letters with a value that is always the rest of the argument.
    var attached = ""
    /// Letters with an optional number in octal digits after them.
    var numbered = ""
    /// Letters whose value is the next argument, while further letters can follow in this one.
    var following = ""
    /// Options that begin with `--`, without it; a value after `=` is ignored.
    var long: Set<String> = []
    /// Options that begin with `--` and whose value is the next argument.
    var longValued: Set<String> = []
    /// Whether `-` ends the options; otherwise it stands for standard input.
    var isEndedByDash = false
    /// Whether `+` begins an option, too.
    var hasPlus = false

    static func of(_ program: String) -> InterpreterOptions? {
        let file = program.split(separator: "/").last ?? ""
        return switch String(file.prefix { !$0.isNumber && $0 != "." && $0 != "-" }) {
        case "python", "pypy": python
        case "perl": perl
        case "node", "nodejs": node
        case "ruby": ruby
        case "bash", "dash", "sh": shell
        default: nil
        }
    }

    /// python(1). Not `-c`, `-m` and `-i`, which run other code.
    private static let python = InterpreterOptions(
        flags: "bBdEIOPqRsStuvx", valued: "WX", longValued: ["check-hash-based-pycs"])

    /// perlrun(1). Not `-e`, `-E`, `-M`, `-m`, `-I`, `-d`, `-x` and `-S`, which run or find other code.
    private static let perl = InterpreterOptions(flags: "acfnpstTUwWX", numbered: "0l")

    /// node(1). Not `-e`, `-p`, `-r`, `--import` and `--loader`, which run other code.
    private static let node = InterpreterOptions(
        long: [
            "enable-source-maps", "expose-gc", "max-old-space-size", "no-deprecation", "no-warnings",
            "preserve-symlinks", "stack-trace-limit", "throw-deprecation", "trace-deprecation", "trace-uncaught",
            "trace-warnings", "use-openssl-ca",
        ],
        longValued: ["max-http-header-size", "unhandled-rejections"])

    /// ruby(1). Not `-e`, `-r`, `-I`, `-C`, `-x` and `-S`, which run or find other code.
    private static let ruby = InterpreterOptions(
        flags: "adlnpsUvw", valued: "E", attached: "W", numbered: "0",
        long: ["disable-gems", "enable-frozen-string-literal", "jit", "verbose", "yjit"],
        longValued: ["disable", "enable", "encoding", "external-encoding", "internal-encoding"])

    /// bash(1) and dash(1). Not `-c`, `-s`, `-i` and `-l`, which run other code.
    private static let shell = InterpreterOptions(
        flags: "abefhkmnprtuvxBCEHPT", following: "oO",
        long: ["noediting", "noprofile", "norc", "posix", "restricted", "verbose"],
        isEndedByDash: true, hasPlus: true)

    func read(_ argument: ArraySlice<UInt8>, _ later: inout ArraySlice<ArraySlice<UInt8>>) -> Meaning {
        let isOption = argument.first == UInt8(ascii: "-") || (hasPlus && argument.first == UInt8(ascii: "+"))
        guard isOption else { return .script(argument) }
        let isEnd = argument.elementsEqual("--".utf8) || (isEndedByDash && argument.elementsEqual("-".utf8))
        if isEnd { return later.popFirst().map { .script($0) } ?? .otherCode }
        guard argument.count > 1 else { return .otherCode }
        let isKnown =
            argument.starts(with: "--".utf8)
            ? readLong(argument.dropFirst(2), &later) : readLetters(argument.dropFirst(), &later)
        return isKnown ? .option : .otherCode  // guard: script-option
    }

    private func readLong(_ option: ArraySlice<UInt8>, _ later: inout ArraySlice<ArraySlice<UInt8>>) -> Bool {
        let text = String(decoding: option, as: UTF8.self)
        if longValued.contains(text) { return later.popFirst() != nil }
        let name = String(text.prefix { $0 != "=" })
        return long.contains(name) || name != text && longValued.contains(name)
    }

    private func readLetters(_ option: ArraySlice<UInt8>, _ later: inout ArraySlice<ArraySlice<UInt8>>) -> Bool {
        var letters = option
        while let letter = letters.popFirst() {
            let letter = Character(Unicode.Scalar(letter))
            if flags.contains(letter) { continue }
            if numbered.contains(letter) {
                letters = letters.drop { (UInt8(ascii: "0")...UInt8(ascii: "7")).contains($0) }
            } else if attached.contains(letter) {
                return true
            } else if valued.contains(letter) {
                return !letters.isEmpty || later.popFirst() != nil
            } else if !following.contains(letter) || later.popFirst() == nil {
                return false
            }
        }
        return true
    }
}
