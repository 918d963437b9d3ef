//! The names of resources in requests and limits.

use crate::{amount, quantity::Quantity, resources::Bytes};

/// The name of processor time.
pub const CPU: &str = "cpu";

/// The name of memory.
pub const MEMORY: &str = "memory";

/// The name of disk space that a pod may use besides volumes.
pub const EPHEMERAL_STORAGE: &str = "ephemeral-storage";

/// What the names of huge pages begin with; the size of a page follows.
pub const HUGEPAGES: &str = "hugepages-";

/// True for huge pages of some size.
#[must_use]
pub fn is_hugepages(name: &str) -> bool {
    name.starts_with(HUGEPAGES)
}

/// The name of huge pages of a size.
#[must_use]
pub fn hugepages_name(page_size: Bytes) -> Box<str> {
    format!("{HUGEPAGES}{}", amount::bytes(page_size)).into()
}

/// The size of the huge pages of a name.
#[must_use]
pub fn hugepages_size(name: &str) -> Option<Bytes> {
    let size = Quantity::parse(name.strip_prefix(HUGEPAGES)?).ok()?;
    Some(size.units())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_are_named_by_their_size() {
        for (size, name) in [(2 << 20, "hugepages-2Mi"), (1 << 30, "hugepages-1Gi")] {
            assert_eq!(&*hugepages_name(size), name);
            assert_eq!(hugepages_size(name), Some(size));
            assert!(is_hugepages(name), "{name}");
        }
        assert_eq!(hugepages_size("hugepages-many"), None);
        assert!(!is_hugepages("memory"));
    }
}
