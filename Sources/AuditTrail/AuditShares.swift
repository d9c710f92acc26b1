/// Divides the room of a file among the records that would be in it: fairly among their groups, and that of each group among
/// its parts. What a group does not need belongs to the others. So no group can displace the records of a smaller one, however
/// many records it has. The oldest records of a group are removed first.
///
/// Each record is added, then the room is divided, then each record is added again in the same order.
struct AuditShares {
    private struct Group {
        var bytes = 0
        /// The groups into which this group is divided, by their names.
        var parts: [Int: Int] = [:]
        /// The group that removes the records of this one: itself, or the one above it for parts with less room than one record.
        var remover: Int?
        var surplus = 0
    }

    /// The limit of the number of groups. Further parts of a group are one part.
    static let mostGroups = 1 << 16
    private static let others = 0

    private var groups = [Group()]
    /// The number of groups, for tests.
    var count: Int { groups.count }
    private var longestRecord = 0

    /// Counts a record of `count` bytes, which belongs to the group and the parts of groups that `path` names.
    mutating func add(_ path: [Int], _ count: Int) {
        longestRecord = max(longestRecord, count)
        groups[0].bytes += count
        var group = 0
        for name in path {
            group = part(name, of: group)
            groups[group].bytes += count
        }
    }

    private mutating func part(_ name: Int, of group: Int) -> Int {
        if let part = groups[group].parts[name] { return part }
        guard groups.count < Self.mostGroups || name == Self.others else { return part(Self.others, of: group) }
        groups.append(Group())
        groups[group].parts[name] = groups.count - 1
        return groups.count - 1
    }

    /// Divides `budget` bytes.
    mutating func divide(_ budget: Int) {
        if groups[0].bytes > budget { divide(0, budget) }
    }

    private mutating func divide(_ group: Int, _ budget: Int) {
        let parts = groups[group].parts.values.sorted { groups[$0].bytes < groups[$1].bytes }
        guard !parts.isEmpty else {
            (groups[group].remover, groups[group].surplus) = (group, groups[group].bytes - budget)
            return
        }
        var (budget, small) = (budget, 0)
        // guard: audit-shares
        while small < parts.count, groups[parts[small]].bytes <= budget / (parts.count - small) {
            budget -= groups[parts[small]].bytes
            small += 1
        }
        let large = parts[small...]
        guard let first = large.first else { return }
        let share = budget / large.count
        guard large.count == 1 || share >= longestRecord else {
            groups[group].surplus = large.reduce(-budget) { $0 + groups[$1].bytes }
            for part in large { groups[part].remover = group }
            return
        }
        if large.count == 1 { return divide(first, budget) }
        for part in large { divide(part, share) }
    }

    /// Whether this record exceeds the share of its group.
    mutating func removes(_ path: [Int], _ count: Int) -> Bool {
        var group = 0
        for name in path {
            guard let part = groups[group].parts[name] ?? groups[group].parts[Self.others] else { return false }
            group = part
            guard let remover = groups[group].remover else { continue }
            guard groups[remover].surplus > 0 else { return false }
            groups[remover].surplus -= count
            return true
        }
        return false
    }
}
