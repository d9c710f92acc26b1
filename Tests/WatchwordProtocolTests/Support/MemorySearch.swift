import Glibc
import Synchronization

/// Searches the writable memory of this process for copies of a secret.
///
/// The secret, and the window through which memory is read, are in one mapping that is excluded from the search.
final class MemorySearch {
    /// Only one search runs at a time, because another would find the bytes in its window.
    private static let turn = Mutex(())
    private static let windowBytes = 1 << 20
    /// An unusual size, so that freed blocks are not soon reused by other code.
    private static let needleBytes = 712
    private static let tailBytes = 32
    private static let pageBytes = UInt(sysconf(Int32(_SC_PAGESIZE)))

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

    /// The searched bytes. They are lent, so that every copy is made by the code under test.
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: needle, count: Self.needleBytes) }

    /// Returns the number of occurrences of the end of the bytes. The end stays longest in freed memory, because the allocator
    /// overwrites the beginning.
    func copies() -> Int { Self.turn.withLock { _ in search() } }

    private func search() -> Int {
        // Searches run in sequence: the window of one search would contain the bytes of another.
        let turn = open("/proc/self/exe", O_RDONLY | O_CLOEXEC)
        precondition(turn >= 0 && flock(turn, LOCK_EX) == 0, "searches cannot take turns: \(errno)")
        defer { close(turn) }
        let memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC)
        precondition(memory >= 0, "/proc/self/mem cannot be read: \(errno)")
        defer { close(memory) }
        let pages = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)
        defer { close(pages) }
        let regions = writableRegions().flatMap { $0.isOwn ? written(in: $0.range, pages) : [$0.range] }
        return regions.reduce(0) { $0 + copies(in: $1, of: memory) }
    }

    /// Returns the pages that were ever written to. The others are most of the memory, with the stacks of a thousand threads
    /// that other tests have, and to read them takes seconds.
    private func written(in region: Range<UInt>, _ pages: CInt) -> [Range<UInt>] {
        var found: [Range<UInt>] = []
        var entries = [UInt64](repeating: 0, count: 4096)
        for start in stride(from: region.lowerBound, to: region.upperBound, by: entries.count * Int(Self.pageBytes)) {
            let wanted = min(entries.count, Int((region.upperBound - start) / Self.pageBytes))
            let count = pread(pages, &entries, wanted * 8, off_t(start / Self.pageBytes * 8))
            guard count == wanted * 8 else { return [region] }
            // Present, or swapped out.
            for index in 0..<wanted where entries[index] >> 62 != 0 {
                let page = start + UInt(index) * Self.pageBytes
                if let last = found.last, last.upperBound == page {
                    found[found.count - 1] = last.lowerBound..<page + Self.pageBytes
                } else {
                    found.append(page..<page + Self.pageBytes)
                }
            }
        }
        return found
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

    /// Whether a region is private: a shared region may contain data of other processes.
    private func writableRegions() -> [(range: Range<UInt>, isOwn: Bool)] {
        guard let maps = fopen("/proc/self/maps", "re") else { preconditionFailure("/proc/self/maps: \(errno)") }
        defer { fclose(maps) }
        let own = UInt(bitPattern: mapping)..<UInt(bitPattern: mapping) + UInt(mappingBytes)
        var regions: [(range: Range<UInt>, isOwn: Bool)] = []
        var line = [CChar](repeating: 0, count: 4096)
        while fgets(&line, CInt(line.count), maps) != nil {
            let text = String(decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
            let fields = text.split(separator: " ")
            let bounds = fields[0].split(separator: "-").compactMap { UInt($0, radix: 16) }
            guard fields[1].hasPrefix("rw"), bounds.count == 2 else { continue }
            let (start, end, isOwn) = (bounds[0], bounds[1], fields[1].hasSuffix("p"))
            // The kernel may merge our mapping with a neighbour, so the parts below and above ours are separate regions.
            regions.append((start..<max(start, min(end, own.lowerBound)), isOwn))
            regions.append((min(end, max(start, own.upperBound))..<end, isOwn))
        }
        return regions.filter { !$0.range.isEmpty }
    }
}
