internal import Glibc

/// The space that temporary files leave free on their file system for other programs.
enum DiskReserve {
    /// Whether a file in `folder` may grow by `count` bytes. `false` if statvfs(3) fails.
    static func allows(_ count: Int, in folder: String) -> Bool {
        var facts = statvfs()
        guard statvfs(folder, &facts) == 0 else { return false }
        let unit = Int(clamping: facts.f_frsize)
        return allows(
            count, free: Int(clamping: facts.f_bavail).scaled(by: unit),
            size: Int(clamping: facts.f_blocks).scaled(by: unit))
    }

    /// Whether a file may grow by `count` bytes, on a file system of `size` bytes of which `free` are free.
    static func allows(_ count: Int, free: Int, size: Int) -> Bool {
        free - count >= min(size / EngineLimits.diskReserveShare, EngineLimits.diskReserveBytes)
    }
}

extension Int {
    fileprivate func scaled(by factor: Int) -> Int {
        let (product, isTooLarge) = multipliedReportingOverflow(by: factor)
        return isTooLarge ? .max : product
    }
}
