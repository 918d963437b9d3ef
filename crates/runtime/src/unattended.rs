//! Pods whose runtime does not run. An agent that is configured for another runtime would start
//! them a second time.

use std::{fs, path::Path};

use rubelet_shim::spawn;

use crate::{layout::Layout, ownership};

/// Number of live shims of the run directory `run` while no runtime uses it. Zero if a runtime uses
/// it, since it owns the pods. Blocks.
#[must_use]
pub fn unattended_pods(run: &Path) -> usize {
    let sandboxes = Layout::new(run, run).sandboxes();
    let directories = fs::read_dir(sandboxes).into_iter().flatten().flatten();
    let living = directories
        .filter(|directory| spawn::connect(&directory.path()).is_ok())
        .count();
    if living == 0 {
        return 0;
    }
    match ownership::take(run, &run.join("lock")) {
        // No runtime held the lock; it is released at once.
        Ok(_free) => living,
        Err(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn living_shims_count_while_no_runtime_uses_their_directory() {
        let run = tempfile::tempdir().unwrap();
        assert_eq!(unattended_pods(run.path()), 0);
        assert!(!run.path().join("lock").exists());
        let directory = |name: &str| {
            let directory = run.path().join("sandboxes").join(name);
            fs::create_dir_all(&directory).unwrap();
            directory
        };
        let _living = UnixListener::bind(directory("one").join(spawn::SOCKET)).unwrap();
        drop(UnixListener::bind(directory("dead").join(spawn::SOCKET)).unwrap());
        directory("empty");
        assert_eq!(unattended_pods(run.path()), 1);
        let _runtime = ownership::take(run.path(), &run.path().join("lock")).unwrap();
        assert_eq!(unattended_pods(run.path()), 0);
    }
}
