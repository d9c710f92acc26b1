internal import CSecret
internal import WatchwordProtocol

/// An owned D-Bus value. Its text is valid UTF-8: GDBus rejects anything else.
final class Variant {
    let pointer: OpaquePointer

    /// Takes ownership of the reference, which may be floating.
    init(taking pointer: OpaquePointer) { self.pointer = g_variant_take_ref(pointer) }

    deinit { g_variant_unref(pointer) }

    /// A string; `nil` if the text contains a NUL, which D-Bus cannot transport.
    static func text(_ text: String) -> Variant? {
        text.utf8.contains(0) ? nil : Variant(taking: g_variant_new_string(text))
    }

    static func name(_ name: StaticString) -> Variant {
        Variant(taking: g_variant_new_string(name.withUTF8Buffer { String(decoding: $0, as: UTF8.self) }))
    }

    /// An object path; `nil` if `path` is not a valid one.
    static func path(_ path: String) -> Variant? {
        guard !path.utf8.contains(0), g_variant_is_object_path(path) != 0 else { return nil }
        return Variant(taking: g_variant_new_object_path(path))
    }

    static func flag(_ value: Bool) -> Variant { Variant(taking: g_variant_new_boolean(value ? 1 : 0)) }

    static func number(_ value: UInt32) -> Variant { Variant(taking: g_variant_new_uint32(value)) }

    static func boxed(_ value: Variant) -> Variant { Variant(taking: g_variant_new_variant(value.pointer)) }

    static func tuple(_ values: [Variant]) -> Variant {
        let pointers: [OpaquePointer?] = values.map(\.pointer)
        return withExtendedLifetime(values) { Variant(taking: g_variant_new_tuple(pointers, gsize(pointers.count))) }
    }

    static func array(of type: String, _ values: [Variant]) -> Variant {
        let elements = g_variant_type_new(type)
        defer { g_variant_type_free(elements) }
        let pointers: [OpaquePointer?] = values.map(\.pointer)
        return withExtendedLifetime(values) {
            Variant(taking: g_variant_new_array(elements, pointers, gsize(pointers.count)))
        }
    }

    static func entry(_ key: Variant, _ value: Variant) -> Variant {
        Variant(taking: g_variant_new_dict_entry(key.pointer, value.pointer))
    }

    /// An `a{ss}`; `nil` if a name or a value contains a NUL.
    static func attributes(_ attributes: [ExactText: ExactText]) -> Variant? {
        var entries: [Variant] = []
        for (name, value) in attributes {
            guard let name = text(name.string), let value = text(value.string) else { return nil }
            entries.append(entry(name, value))
        }
        return array(of: "{ss}", entries)
    }

    // MARK: Reading

    var type: String { String(cString: g_variant_get_type_string(pointer)) }

    /// The elements of an array, a tuple, a dictionary entry or a variant.
    var children: [Variant] {
        (0..<g_variant_n_children(pointer)).map { Variant(taking: g_variant_get_child_value(pointer, $0)) }
    }

    /// The text of a string or an object path.
    var text: String? {
        type == "s" || type == "o" ? String(validatingCString: g_variant_get_string(pointer, nil)) : nil
    }

    var flag: Bool? { type == "b" ? g_variant_get_boolean(pointer) != 0 : nil }

    /// The paths of an `ao`; empty for another type.
    var paths: [String] { type == "ao" ? children.compactMap(\.text) : [] }

    /// The contents of an `a{ss}`; `nil` for another type, or if a text is not UTF-8.
    var attributes: [ExactText: ExactText]? {
        guard type == "a{ss}" else { return nil }
        var attributes: [ExactText: ExactText] = [:]
        for entry in children.map(\.children) {
            guard let name = entry.first?.text, let value = entry.last?.text else { return nil }
            attributes[ExactText(name)] = ExactText(value)
        }
        return attributes
    }

    /// The value for `key` in an `a{sv}`, taken out of its variant.
    subscript(_ key: String) -> Variant? {
        g_variant_lookup_value(pointer, key, nil).map { Variant(taking: $0) }
    }
}
