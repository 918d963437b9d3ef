//! The shared libraries that a program needs, and the loader that finds them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::command::stdout_of;

/// Absolute paths of all libraries of a program, including the loader.
pub(super) fn of(program: &Path) -> Result<Vec<PathBuf>> {
    Ok(paths(&stdout_of(Command::new("ldd").arg(program))?))
}

/// The paths in the output of `ldd`, such as `libc.so.6 => /lib/libc.so.6 (0x…)`.
fn paths(text: &str) -> Vec<PathBuf> {
    let path = |line: &str| {
        let mut words = line.split_whitespace();
        words.find(|word| word.starts_with('/')).map(PathBuf::from)
    };
    text.lines().filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_of_the_kernel_have_no_file() {
        let text = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 \
                    (0x00007f)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        let expected = [
            "/lib/x86_64-linux-gnu/libc.so.6",
            "/lib64/ld-linux-x86-64.so.2",
        ];
        assert_eq!(paths(text), expected.map(PathBuf::from));
    }
}
