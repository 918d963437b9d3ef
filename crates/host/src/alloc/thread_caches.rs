//! glibc's caches of freed blocks, one for each thread, switched off.
//!
//! A block in such a cache counts as used: the page around it is never returned to the kernel. Of an idle agent with
//! 100 pods that was more than a MiB. glibc reads the setting only when a program starts, from the environment.
//!
//! Source: "Memory Allocation Tunables" in the manual of glibc.

use std::{
    env,
    ffi::{CString, OsStr, OsString},
    os::unix::{ffi::OsStringExt as _, process::CommandExt as _},
    path::Path,
    process::Command,
};

/// The variable with glibc's settings.
const VARIABLE: &str = "GLIBC_TUNABLES";
/// No blocks in the caches.
const WITHOUT: &str = "glibc.malloc.tcache_count=0";
/// This program, also when its file was replaced.
const SELF: &str = "/proc/self/exe";
/// The longest name of a process. Source: prctl(2), `PR_SET_NAME`.
const LONGEST_NAME: usize = 15;

/// Executes this program once more, in the same process with the same arguments, without these caches. Returns in the
/// second run, whose environment is that of the first, and where that is not possible or of no use: the program is
/// larger then, and works. Settings of glibc that the user has made stay as they are.
///
/// Call it before any thread is started, with nothing open.
pub fn without_thread_caches() {
    if cfg!(not(target_env = "gnu")) {
        return;
    }
    match env::var_os(VARIABLE) {
        Some(settings) if settings == WITHOUT => begin_second_run(),
        Some(_) => {}
        None => {
            let mut arguments = env::args_os();
            let name = arguments.next().unwrap_or_else(|| SELF.into());
            // An error means that the first run goes on.
            let _ = Command::new(SELF)
                .arg0(name)
                .args(arguments)
                .env(VARIABLE, WITHOUT)
                .exec();
        }
    }
}

fn begin_second_run() {
    // SAFETY: the caller has no other thread, so nothing reads the environment meanwhile.
    #[allow(unsafe_code)]
    unsafe {
        // Not for the programs that this one starts.
        env::remove_var(VARIABLE);
    }
    // The kernel named the process after its path, "exe".
    if let Some(name) = env::args_os().next().as_deref().and_then(process_name) {
        let _ = rustix::thread::set_name(&name);
    }
}

/// The name that the kernel gives to a process with this first argument.
fn process_name(argument: &OsStr) -> Option<CString> {
    let mut name = OsString::from(Path::new(argument).file_name()?).into_vec();
    name.truncate(LONGEST_NAME);
    CString::new(name).ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    #[test]
    fn a_process_is_named_after_its_file() {
        for (argument, name) in [
            ("/usr/bin/rubelet", "rubelet"),
            ("kubelet", "kubelet"),
            ("./a-name-that-is-too-long", "a-name-that-is-"),
        ] {
            let expected = CString::new(name).unwrap();
            assert_eq!(process_name(OsStr::new(argument)), Some(expected));
        }
        assert_eq!(process_name(OsStr::new("/")), None);
        assert_eq!(process_name(OsStr::from_bytes(b"a\0b")), None);
    }
}
