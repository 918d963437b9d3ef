//! Keeps glibc's allocator small. By default each thread that allocates under contention gets an
//! arena of its own that is never returned to the kernel; an agent that should need few megabytes
//! can't afford that.

mod thread_caches;

pub use thread_caches::without_thread_caches;

/// Limits the allocator to one arena and lets it return memory early. Call it first in `main`,
/// before any thread is started. Returns whether the allocator accepted the settings; other C
/// libraries do not have them.
pub fn limit_arena() -> bool {
    #[cfg(target_env = "gnu")]
    {
        [
            (libc::M_ARENA_MAX, 1),
            // Free memory at the top of the heap that is kept, in bytes.
            (libc::M_TRIM_THRESHOLD, 64 << 10),
            // Blocks of this size and more are mapped on their own and unmapped when freed.
            // Setting it also stops glibc from raising it.
            (libc::M_MMAP_THRESHOLD, 128 << 10),
        ]
        .into_iter()
        .all(|(parameter, value)| {
            // SAFETY: mallopt takes two plain numbers and locks the allocator while it changes
            // its settings; it touches no memory of ours.
            #[allow(unsafe_code)]
            let taken = unsafe { libc::mallopt(parameter, value) };
            taken == 1
        })
    }
    #[cfg(not(target_env = "gnu"))]
    false
}

/// Returns free memory of all arenas to the kernel. Returns whether any was returned. Takes about a
/// millisecond; useful after a burst of work, not in a loop.
pub fn trim() -> bool {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: malloc_trim locks each arena while it works on it and releases only pages that
        // hold no live block.
        #[allow(unsafe_code)]
        let released = unsafe { libc::malloc_trim(0) };
        released == 1
    }
    #[cfg(not(target_env = "gnu"))]
    false
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use crate::meminfo::kib_field;

    /// Resident memory of this process, in bytes.
    fn resident_bytes() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").expect("procfs is mounted");
        kib_field(&status, "VmRSS").expect("a field of each process")
    }

    #[test]
    fn freed_memory_goes_back_to_the_kernel() {
        assert!(super::limit_arena());
        let blocks: Vec<Vec<u8>> = (0..4096).map(|n| vec![1; 4096 + n % 7]).collect();
        let full = resident_bytes();
        drop(blocks);
        super::trim();
        let after = resident_bytes();
        assert!(
            full > after + (8 << 20),
            "{full} bytes before, {after} after"
        );
    }
}
