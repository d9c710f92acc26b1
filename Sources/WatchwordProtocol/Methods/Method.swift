public import JSONText

/// A method that clients call. A value represents one call with its parameters.
public protocol Method: Sendable {
    static var name: String { get }
    static var access: MethodAccess { get }
    associatedtype Result: Sendable = Void

    init(_ json: JSON?) throws(InvalidParams)
    /// Returns `result` as JSON.
    static func json(_ result: Result) -> JSON
}

/// The clients that may call a method.
public enum MethodAccess: Sendable {
    /// All clients, including those on the restricted socket and in sandboxes: the method only concerns their own fetches.
    case everyClient
    case unconfinedClients
}

extension Method {
    /// The default: a method for confined clients must declare it explicitly.
    public static var access: MethodAccess { .unconfinedClients }
}

extension Method where Result == Void {
    public static func json(_: Void) -> JSON { [:] }
}

/// A method that Swift clients call with typed parameters.
public protocol CallableMethod: Method {
    /// The parameters. They may contain a secret: serialize them with `JSON.write(_:)`.
    var json: JSON { get }
}

public protocol ParameterlessMethod: CallableMethod {
    init()
}

extension ParameterlessMethod {
    public init(_ json: JSON?) throws(InvalidParams) {
        _ = try Members(json)
        self.init()
    }

    public var json: JSON { [:] }
}
