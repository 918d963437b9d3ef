//! A neighbour on the machine that keeps the cores and the disk busy.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

/// Keeps a core busy.
const BUSY: &str = "while :; do :; done";
/// Writes a gigabyte and syncs it, then a tree of small files, each synced; repeatedly.
const WRITER: &str = r#"
cd "$0" || exit 1
while :; do
    dd if=/dev/zero of=large bs=1M count=1024 conv=fsync 2>/dev/null
    rm -f large
    i=0
    while [ $i -lt 1000 ]; do
        dir=tree/$((i % 20))
        mkdir -p $dir
        echo $i > $dir/$i
        i=$((i + 1))
    done
    sync tree/*/*
    rm -rf tree
done
"#;

/// Busy processes at normal priority; they end with this value, and with the thread that created
/// it.
#[derive(Debug)]
pub struct NoisyNeighbour {
    processes: Vec<Child>,
    directory: Option<PathBuf>,
}

impl NoisyNeighbour {
    /// Starts `busy` processes that never pause, and one that writes files below `directory` and
    /// syncs them.
    ///
    /// # Errors
    /// When a process can't be started or the directory can't be created.
    pub fn start(busy: usize, directory: Option<PathBuf>) -> Result<Self> {
        let mut neighbour = Self {
            processes: Vec::new(),
            directory: None,
        };
        for _ in 0..busy {
            neighbour.spawn(BUSY, Path::new("busy"))?;
        }
        if let Some(directory) = directory {
            std::fs::create_dir_all(&directory)
                .with_context(|| format!("cannot create {}", directory.display()))?;
            neighbour.directory = Some(directory.clone());
            neighbour.spawn(WRITER, &directory)?;
        }
        Ok(neighbour)
    }

    fn spawn(&mut self, script: &str, name: &Path) -> Result<()> {
        let mut command = Command::new("setpriv");
        // A killed run leaves none of them.
        command
            .args(["--pdeathsig", "KILL", "sh", "-c", script])
            .arg(name)
            .stdin(Stdio::null());
        let child = command.spawn().context("cannot start a busy process")?;
        self.processes.push(child);
        Ok(())
    }
}

impl Drop for NoisyNeighbour {
    fn drop(&mut self) {
        for process in &mut self.processes {
            // One may have exited by itself.
            drop(process.kill());
            drop(process.wait());
        }
        if let Some(directory) = &self.directory {
            // The last program that the writer started may still write for a moment.
            while std::fs::remove_dir_all(directory).is_err() && directory.exists() {
                std::thread::yield_now();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::Stat;

    #[test]
    fn the_neighbour_runs_until_it_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let files = dir.path().join("files");
        let neighbour = NoisyNeighbour::start(1, Some(files.clone())).unwrap();
        let pids: Vec<u32> = neighbour.processes.iter().map(Child::id).collect();
        assert_eq!(pids.len(), 2);
        assert!(pids.iter().all(|pid| Stat::of(*pid).is_some()));
        drop(neighbour);
        assert!(pids.iter().all(|pid| Stat::of(*pid).is_none()));
        assert!(!files.exists());
    }
}
