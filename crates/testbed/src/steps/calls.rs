//! System calls that are steps. The numbers and registers are those of x86-64, the test hosts'
//! architecture.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use nix::libc::{self, c_long, user_regs_struct};

/// Maximum length of a path.
const MAX_PATH: usize = 4096;
/// Registers of the paths or descriptors of a call.
type Arguments = &'static [ArgumentKind];

#[derive(Debug, Clone, Copy)]
enum ArgumentKind {
    /// A pointer to a path.
    Path(usize),
    /// A descriptor.
    Fd(usize),
}

use ArgumentKind::{Fd, Path};

/// System calls with external effects, and their objects.
const CALLS: &[(c_long, &str, Arguments)] = &[
    (libc::SYS_mkdir, "mkdir", &[Path(0)]),
    (libc::SYS_mkdirat, "mkdir", &[Path(1)]),
    (libc::SYS_rmdir, "rmdir", &[Path(0)]),
    (libc::SYS_unlink, "unlink", &[Path(0)]),
    (libc::SYS_unlinkat, "unlink", &[Path(1)]),
    (libc::SYS_rename, "rename", &[Path(0), Path(1)]),
    (libc::SYS_renameat, "rename", &[Path(1), Path(3)]),
    (libc::SYS_renameat2, "rename", &[Path(1), Path(3)]),
    (libc::SYS_link, "link", &[Path(0), Path(1)]),
    (libc::SYS_linkat, "link", &[Path(1), Path(3)]),
    (libc::SYS_symlink, "symlink", &[Path(0), Path(1)]),
    (libc::SYS_symlinkat, "symlink", &[Path(0), Path(2)]),
    (libc::SYS_openat, "create", &[Path(1)]),
    (libc::SYS_open, "create", &[Path(0)]),
    (libc::SYS_write, "write", &[Fd(0)]),
    (libc::SYS_writev, "write", &[Fd(0)]),
    (libc::SYS_pwrite64, "write", &[Fd(0)]),
    (libc::SYS_ftruncate, "truncate", &[Fd(0)]),
    (libc::SYS_fsync, "fsync", &[Fd(0)]),
    (libc::SYS_fdatasync, "fsync", &[Fd(0)]),
    (libc::SYS_chmod, "chmod", &[Path(0)]),
    (libc::SYS_fchmod, "chmod", &[Fd(0)]),
    (libc::SYS_fchmodat, "chmod", &[Path(1)]),
    (libc::SYS_chown, "chown", &[Path(0)]),
    (libc::SYS_fchown, "chown", &[Fd(0)]),
    (libc::SYS_fchownat, "chown", &[Path(1)]),
    (libc::SYS_mount, "mount", &[Path(1)]),
    (libc::SYS_umount2, "umount", &[Path(0)]),
    (libc::SYS_move_mount, "move_mount", &[Path(3)]),
    (libc::SYS_mount_setattr, "mount_setattr", &[]),
    (libc::SYS_fsmount, "fsmount", &[]),
    (libc::SYS_pivot_root, "pivot_root", &[]),
    (libc::SYS_setns, "setns", &[]),
    (libc::SYS_unshare, "unshare", &[]),
    (libc::SYS_clone, "clone", &[]),
    (libc::SYS_clone3, "clone", &[]),
    (libc::SYS_vfork, "clone", &[]),
    (libc::SYS_fork, "clone", &[]),
    (libc::SYS_execve, "execve", &[]),
    (libc::SYS_execveat, "execve", &[]),
    (libc::SYS_kill, "kill", &[]),
    (libc::SYS_pidfd_send_signal, "kill", &[]),
    (libc::SYS_sendmsg, "send", &[]),
    (libc::SYS_sendto, "send", &[]),
    (libc::SYS_bind, "bind", &[]),
];

/// Calls for which a disk must have space.
const NEED_SPACE: &[&str] = &[
    "mkdir", "rename", "link", "symlink", "create", "write", "truncate", "fsync",
];

/// A step that a process is about to take.
#[derive(Debug)]
pub(super) struct Call {
    /// The call and its object, without identifiers.
    pub(super) text: String,
    /// Whether a disk must have space for it.
    pub(super) needs_space: bool,
}

/// The step of these registers, if it is one.
pub(super) fn read(tid: i32, registers: &user_regs_struct) -> Option<Call> {
    let number = registers.orig_rax.cast_signed();
    let (number, name, places) = CALLS.iter().find(|(known, ..)| *known == number)?;
    let arguments = [
        registers.rdi,
        registers.rsi,
        registers.rdx,
        registers.r10,
        registers.r8,
        registers.r9,
    ];
    let creates = |flags: u64| flags & u64::from(libc::O_CREAT.cast_unsigned()) != 0;
    match *number {
        libc::SYS_openat if !creates(arguments[2]) => return None,
        libc::SYS_open if !creates(arguments[1]) => return None,
        // A thread of the same process is not a step.
        libc::SYS_clone if is_thread(arguments[0]) => return None,
        libc::SYS_clone3 if is_thread(word(tid, arguments[0]).unwrap_or(0)) => return None,
        _ => {}
    }
    let mut text = (*name).to_owned();
    let mut on_disk = true;
    for place in *places {
        let object = match place {
            Path(at) => path(tid, arguments[*at]),
            Fd(at) => {
                let open = descriptor(tid, arguments[*at])?;
                // Standard streams, pipes, sockets and eventfds are not persistent state.
                if arguments[*at] <= 2 || !open.starts_with("/") || open.starts_with("/dev") {
                    return None;
                }
                open.to_string_lossy().into_owned()
            }
        };
        on_disk &= !object.starts_with("/sys/") && !object.starts_with("/proc/");
        text.push(' ');
        text.push_str(&plain(&object));
    }
    Some(Call {
        needs_space: on_disk && NEED_SPACE.contains(name),
        text,
    })
}

fn is_thread(flags: u64) -> bool {
    flags & u64::from(libc::CLONE_THREAD.cast_unsigned()) != 0
}

fn descriptor(tid: i32, fd: u64) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{tid}/fd/{fd}")).ok()
}

fn path(tid: i32, at: u64) -> String {
    let mut bytes = vec![0; MAX_PATH];
    let read = memory(tid, at, &mut bytes);
    bytes.truncate(read);
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn word(tid: i32, at: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    (memory(tid, at, &mut bytes) == 8).then(|| u64::from_le_bytes(bytes))
}

fn memory(tid: i32, at: u64, bytes: &mut [u8]) -> usize {
    File::open(format!("/proc/{tid}/mem"))
        .and_then(|memory| memory.read_at(bytes, at))
        .unwrap_or(0)
}

/// Masks what differs between runs: each part of a name with digits.
fn plain(text: &str) -> String {
    let piece = |piece: &str| {
        if piece.contains(|letter: char| letter.is_ascii_digit()) {
            "#".to_owned()
        } else {
            piece.to_owned()
        }
    };
    let name = |name: &str| name.split('.').map(piece).collect::<Vec<_>>().join(".");
    text.split('/').map(name).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_step_of_another_run_has_the_same_text() {
        let one = plain("/tmp/rubelet-tAb/rt/sandboxes/.0a1f.json.77.tmp");
        assert_eq!(one, "/tmp/rubelet-tAb/rt/sandboxes/.#.json.#.tmp");
        assert_eq!(
            plain("/proc/self/fd/9/shim.sock"),
            "/proc/self/fd/#/shim.sock"
        );
    }
}
