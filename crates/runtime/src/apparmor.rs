//! AppArmor: the profiles that the kernel has, and the runtime's own, which is loaded where it is
//! missing.

use std::{
    fmt, fs,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Mutex, PoisonError},
    thread,
};

use rubelet_host::open_files::limit_as_before;
use rubelet_runtime_plan::profile::{APPARMOR_DEFAULT, apparmor_default_text};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::{AddressFamily, SocketFlags, SocketType, socket_with},
    process::{Pid, PidfdFlags, pidfd_open},
};

use crate::settings::find_program;

/// The file that lists the profiles, below the root.
const PROFILES: &str = "sys/kernel/security/apparmor/profiles";

/// The program that compiles profiles and hands them to the kernel.
const PARSER: &str = "apparmor_parser";

/// How long it may take. It needs some ten milliseconds.
const PATIENCE: Timespec = Timespec {
    tv_sec: 30,
    tv_nsec: 0,
};

/// Whether the own profile denies address families; `None` before this process has tried to load
/// it. Locked while it is loaded, so that calls that find it missing don't load it at the same time.
static OWN: Mutex<Option<bool>> = Mutex::new(None);

/// The address families that the profile denies: `AF_ALG` and `AF_VSOCK`.
const DENIED_FAMILIES: [u16; 2] = [38, 40];

/// What the kernel has.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    /// Names of the profiles.
    pub(crate) names: Vec<String>,
    /// Whether a process under the runtime's own gets no socket of the address families that it
    /// denies.
    pub(crate) denies_families: bool,
}

/// Whether the kernel has AppArmor and it is switched on.
pub(crate) fn is_enabled(root: &Path) -> bool {
    fs::read_to_string(root.join("sys/module/apparmor/parameters/enabled"))
        .is_ok_and(|text| text.trim() == "Y")
}

/// Names of the profiles in the kernel.
///
/// # Errors
/// The list can't be read: mostly because securityfs is not mounted.
pub(crate) fn profiles(root: &Path) -> io::Result<Vec<String>> {
    let text = fs::read_to_string(root.join(PROFILES))?;
    // `name (enforce)`; a name may hold spaces and brackets itself.
    let name = |line: &str| {
        line.rsplit_once(" (")
            .map_or(line, |(name, _)| name)
            .to_owned()
    };
    Ok(text.lines().map(name).collect())
}

/// Why the runtime's own profile can't be loaded here, and what helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Obstacle {
    pub(crate) what: &'static str,
    pub(crate) remedy: &'static str,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.remedy)
    }
}

/// What keeps the runtime's own profile from being loaded; `None` if it is there or can be.
pub(crate) fn obstacle(root: &Path) -> Option<Obstacle> {
    match profiles(root) {
        Ok(profiles) if profiles.iter().any(|one| one == APPARMOR_DEFAULT) => None,
        Ok(_) if find_program(PARSER).is_some() => None,
        Ok(_) => Some(Obstacle {
            what: "the program apparmor_parser, which loads it, is not installed",
            remedy: "install the package apparmor",
        }),
        Err(_) => Some(Obstacle {
            what: "the kernel's list of profiles can't be read",
            remedy: "mount securityfs (`mount -t securityfs none /sys/kernel/security`)",
        }),
    }
}

/// What is in the kernel, after the runtime's own was loaded if it was missing, as it is after a
/// boot, and once in the life of this process, as one of an earlier release says something else.
/// Why it still is missing is logged. Blocks.
pub(crate) fn profiles_with_own() -> Loaded {
    let root = Path::new("/");
    let with_own = |found: &io::Result<Vec<String>>| {
        found
            .as_ref()
            .is_ok_and(|all| all.iter().any(|one| one == APPARMOR_DEFAULT))
    };
    let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut found = profiles(root);
    if own.is_none() || !with_own(&found) {
        let loaded = load(root);
        if loaded.is_ok() {
            found = profiles(root);
        }
        *own = Some(with_own(&found) && denies_families());
        match loaded {
            Ok(()) => {}
            Err(why) if with_own(&found) => tracing::warn!(
                why,
                "the AppArmor profile {APPARMOR_DEFAULT} is left as an earlier start loaded it"
            ),
            Err(why) => tracing::warn!(
                why,
                "the AppArmor profile {APPARMOR_DEFAULT} is not loaded: containers that ask for no profile run without one"
            ),
        }
    }
    Loaded {
        denies_families: *own == Some(true) && with_own(&found),
        names: found.unwrap_or_default(),
    }
}

/// Tries it, in a thread that is under the profile and ends at once. What the kernel says that it
/// can do is not enough: parsers leave rules about families out that are not in the list of features
/// which they are configured with, without a word.
fn denies_families() -> bool {
    let tries = || {
        let change = format!("changeprofile {APPARMOR_DEFAULT}");
        fs::write("/proc/thread-self/attr/current", change)?;
        let is_denied = |family: &u16| {
            let family = AddressFamily::from_raw(*family);
            let made = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None);
            matches!(made, Err(Errno::ACCESS))
        };
        Ok(DENIED_FAMILIES.iter().all(is_denied))
    };
    let trial = thread::Builder::new().spawn(tries);
    let answer: io::Result<bool> = trial.and_then(|thread| {
        let ended = thread.join();
        ended.unwrap_or_else(|_| Err(io::Error::other("it panicked")))
    });
    answer.unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot try what the AppArmor profile {APPARMOR_DEFAULT} denies");
        false
    })
}

fn load(root: &Path) -> Result<(), String> {
    if let Some(why) = obstacle(root) {
        return Err(why.to_string());
    }
    let parser = find_program(PARSER).ok_or("the program apparmor_parser is gone")?;
    run(&parser).map_err(|why| format!("{} failed: {why}", parser.display()))?;
    tracing::info!("the AppArmor profile {APPARMOR_DEFAULT} is loaded");
    Ok(())
}

fn run(parser: &PathBuf) -> Result<(), String> {
    let text = |error: io::Error| error.to_string();
    let mut command = Command::new(parser);
    let mut child = limit_as_before(&mut command)
        .args(["--replace", "--skip-cache", "--quiet"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(text)?;
    let mut ended = || -> io::Result<bool> {
        if let Some(mut stdin) = child.stdin.take() {
            // The profile is shorter than what a pipe holds. One that doesn't read tells why.
            let _ = stdin.write_all(apparmor_default_text().as_bytes());
        }
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
        let mut wait = [PollFd::new(&pidfd, PollFlags::IN)];
        Ok(poll(&mut wait, Some(&PATIENCE))? > 0)
    };
    let ended = ended();
    if !matches!(ended, Ok(true)) {
        // It is a child that was not waited for, so it is nobody else.
        let _ = child.kill();
    }
    let status = child.wait().map_err(text)?;
    if !ended.map_err(text)? {
        return Err(format!("it did not end within {} s", PATIENCE.tv_sec));
    }
    if status.success() {
        return Ok(());
    }
    let mut said = String::new();
    if let Some(stderr) = child.stderr.take() {
        let _ = stderr.take(4096).read_to_string(&mut said);
    }
    Err(format!("{status}: {}", said.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_profiles_are_read_as_the_kernel_writes_them() {
        let root = tempfile::Builder::new()
            .prefix("rubelet-t")
            .tempdir()
            .unwrap();
        assert!(profiles(root.path()).is_err());
        assert!(obstacle(root.path()).is_some_and(|one| one.remedy.contains("securityfs")));
        let file = root.path().join(PROFILES);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "/usr/bin/man (enforce)\na (b) c (complain)\n").unwrap();
        assert_eq!(
            profiles(root.path()).unwrap(),
            ["/usr/bin/man", "a (b) c"].map(str::to_owned)
        );
        fs::write(&file, format!("{APPARMOR_DEFAULT} (enforce)\n")).unwrap();
        assert_eq!(obstacle(root.path()), None);
    }
}
