/// A large value that lists are searched for: copies of the box share it.
@dynamicMemberLookup
final class Boxed<Value: Sendable>: Sendable {
    let value: Value

    init(_ value: Value) { self.value = value }

    subscript<Part>(dynamicMember part: KeyPath<Value, Part>) -> Part { value[keyPath: part] }

    /// Returns a box with a changed copy of the value.
    func changed(_ change: (inout Value) -> Void) -> Boxed {
        var copy = value
        change(&copy)
        return Boxed(copy)
    }
}
