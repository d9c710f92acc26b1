import Glibc
import Synchronization

/// Looks for a run of bytes in the writable memory of this process, to see what a secret leaves behind.
///
/// The bytes looked for, and the window through which memory is read, live in one mapping that is left out of the search.
final class MemorySearch {
    /// One search at a time: what one reads through its window, another would find there.
    private static let turn = Mutex(())
    private static let windowBytes = 1 << 20
    /// An odd size, whose freed blocks are not soon taken by somebody else.
    private static let needleBytes = 712
    private static let tailBytes = 32

    private let mapping: UnsafeMutableRawPointer
    private let mappingBytes = windowBytes + 4096
    private var needle: UnsafeMutableRawPointer { mapping + Self.windowBytes }

    /// Draws letters that occur nowhere else.
    init() {
        mapping = mmap(nil, mappingBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        precondition(mapping != MAP_FAILED)
        for index in 0..<Self.needleBytes {
            needle.storeBytes(of: UInt8.random(in: 0x61...0x7A), toByteOffset: index, as: UInt8.self)
        }
    }

    deinit { munmap(mapping, mappingBytes) }

    /// The bytes looked for: lent, so that every further copy is the doing of the code under test.
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: needle, count: Self.needleBytes) }

    /// How often the end of the bytes is found: freed memory keeps it longest, since the allocator writes its own notes over
    /// the beginning.
    func copies() -> Int { Self.turn.withLock { _ in search() } }

    private func search() -> Int {
        let memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC)
        precondition(memory >= 0, "/proc/self/mem cannot be read: \(errno)")
        defer { close(memory) }
        return writableRegions().reduce(0) { $0 + copies(in: $1, of: memory) }
    }

    private func copies(in region: Range<UInt>, of memory: CInt) -> Int {
        var found = 0
        var place = region.lowerBound
        while place < region.upperBound {
            let wanted = min(UInt(Self.windowBytes), region.upperBound - place)
            let count = pread(memory, mapping, Int(wanted), off_t(place))
            guard count >= Self.tailBytes else { break }
            found += copies(inWindowOf: count)
            guard count == Int(wanted), wanted > UInt(Self.tailBytes) else { break }
            place += wanted == UInt(Self.windowBytes) ? wanted - UInt(Self.tailBytes) + 1 : wanted
        }
        memset(mapping, 0, Self.windowBytes)
        return found
    }

    private func copies(inWindowOf count: Int) -> Int {
        let tail = needle + Self.needleBytes - Self.tailBytes
        let first = CInt(tail.load(as: UInt8.self))
        var found = 0
        var start = UnsafeMutableRawPointer(mapping)
        while let hit = memchr(start, first, mapping + count - start), mapping + count - hit >= Self.tailBytes {
            if memcmp(hit, tail, Self.tailBytes) == 0 { found += 1 }
            start = hit + 1
        }
        return found
    }

    private func writableRegions() -> [Range<UInt>] {
        guard let maps = fopen("/proc/self/maps", "re") else { preconditionFailure("/proc/self/maps: \(errno)") }
        defer { fclose(maps) }
        let own = UInt(bitPattern: mapping)..<UInt(bitPattern: mapping) + UInt(mappingBytes)
        var regions: [Range<UInt>] = []
        var line = [CChar](repeating: 0, count: 4096)
        while fgets(&line, CInt(line.count), maps) != nil {
            let text = String(decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
            let fields = text.split(separator: " ")
            let bounds = fields[0].split(separator: "-").compactMap { UInt($0, radix: 16) }
            guard fields[1].hasPrefix("rw"), bounds.count == 2 else { continue }
            let (start, end) = (bounds[0], bounds[1])
            // The kernel may merge our mapping with a neighbour, so what lies below and above ours is kept apart.
            regions.append(start..<max(start, min(end, own.lowerBound)))
            regions.append(min(end, max(start, own.upperBound))..<end)
        }
        return regions.filter { !$0.isEmpty }
    }
}
