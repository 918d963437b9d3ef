//! `/proc/meminfo`, and other files of the kernel in its format.

/// The numbers of `/proc/meminfo` that are used, in bytes; one that the kernel does not have is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemInfo {
    /// All memory.
    pub total: Option<u64>,
    /// Memory that nothing uses.
    pub free: Option<u64>,
    /// The page cache that the kernel reclaims first.
    pub inactive_file: Option<u64>,
    /// Memory of processes that is no file's.
    pub anonymous: Option<u64>,
    /// All swap space.
    pub swap_total: Option<u64>,
    /// Free swap space.
    pub swap_free: Option<u64>,
}

impl MemInfo {
    /// Reads the text of the file.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let field = |name: &str| kib_field(text, name);
        Self {
            total: field("MemTotal"),
            free: field("MemFree"),
            inactive_file: field("Inactive(file)"),
            anonymous: field("AnonPages"),
            swap_total: field("SwapTotal"),
            swap_free: field("SwapFree"),
        }
    }

    /// Memory that the kernel would have to take from somebody: all but the free and the
    /// inactive part of the page cache.
    #[must_use]
    pub fn working_set(&self) -> Option<u64> {
        let reclaimable = self.free?.saturating_add(self.inactive_file?);
        Some(self.total?.saturating_sub(reclaimable))
    }
}

/// The value in bytes of a line like `MemTotal:  24684096 kB`.
pub(crate) fn kib_field(text: &str, name: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.trim()
        .strip_suffix("kB")?
        .trim()
        .parse::<u64>()
        .ok()?
        .checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_working_set_is_neither_free_nor_inactive_page_cache() {
        let text = "MemTotal: 100 kB\nMemFree: 10 kB\nInactive: 90 kB\nInactive(file): 5 kB\n";
        let found = MemInfo::parse(text);
        assert_eq!(found.total, Some(100 << 10));
        assert_eq!(found.working_set(), Some(85 << 10));
        assert_eq!((found.swap_total, found.anonymous), (None, None));
        assert_eq!(MemInfo::parse("MemTotal: 100 kB\n").working_set(), None);
    }
}
