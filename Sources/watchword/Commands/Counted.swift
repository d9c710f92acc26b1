/// Returns the number and the noun in the singular or plural: "1 login", "2 logins".
func counted(_ count: Int, _ noun: String) -> String { count == 1 ? "1 \(noun)" : "\(count) \(noun)s" }
