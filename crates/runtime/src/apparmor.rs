//! AppArmor: the profiles in the kernel, and the runtime's own, which is loaded if it is missing.

use std::{
    fmt, fs,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    thread,
};

use parking_lot::Mutex;
use rubelet_base::ErrorChain;
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

/// Deadline for the parser, which usually takes some ten milliseconds.
const PARSER_TIMEOUT: Timespec = Timespec {
    tv_sec: 30,
    tv_nsec: 0,
};

/// True if the runtime's profile denies address families; `None` before this process has tried to
/// load it. Locked during the load, so that concurrent calls do not load it twice.
static OWN: Mutex<Option<bool>> = Mutex::new(None);

/// The address families that the profile denies: `AF_ALG` and `AF_VSOCK`.
const DENIED_FAMILIES: [u16; 2] = [38, 40];

/// The AppArmor profiles in the kernel.
#[derive(Debug, Default)]
pub(crate) struct AppArmorProfiles {
    /// Names of the profiles.
    pub(crate) names: Vec<String>,
    /// The kernel enforces the address families that the runtime's own profile denies.
    pub(crate) denies_families: bool,
}

/// Reports whether AppArmor is enabled in the kernel.
pub(crate) fn is_enabled(root: &Path) -> bool {
    fs::read_to_string(root.join("sys/module/apparmor/parameters/enabled"))
        .is_ok_and(|text| text.trim() == "Y")
}

/// Names of the profiles in the kernel.
///
/// # Errors
/// The list can't be read, usually because securityfs is not mounted.
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

/// Why the runtime's own profile can't be loaded on this machine, and what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProfileObstacle {
    pub(crate) what: &'static str,
    pub(crate) remedy: &'static str,
}

impl fmt::Display for ProfileObstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.remedy)
    }
}

/// The obstacle to loading the runtime's own profile; `None` if it is loaded or can be.
pub(crate) fn obstacle(root: &Path) -> Option<ProfileObstacle> {
    match profiles(root) {
        Ok(profiles) if profiles.iter().any(|one| one == APPARMOR_DEFAULT) => None,
        Ok(_) if find_program(PARSER).is_some() => None,
        Ok(_) => Some(ProfileObstacle {
            what: "the program apparmor_parser, which loads it, is not installed",
            remedy: "install the package apparmor",
        }),
        Err(_) => Some(ProfileObstacle {
            what: "the kernel's list of profiles cannot be read",
            remedy: "mount securityfs (`mount -t securityfs none /sys/kernel/security`)",
        }),
    }
}

/// The profiles in the kernel. Loads the runtime's own first if it is missing, as after a boot, and
/// once in each process, since the one in the kernel may be of an earlier release. A failure is
/// logged. Blocks.
pub(crate) fn profiles_with_own() -> AppArmorProfiles {
    let root = Path::new("/");
    let with_own = |found: &io::Result<Vec<String>>| {
        found
            .as_ref()
            .is_ok_and(|all| all.iter().any(|one| one == APPARMOR_DEFAULT))
    };
    let mut own = OWN.lock();
    let mut found = profiles(root);
    if own.is_none() || !with_own(&found) {
        let loaded = load(root);
        if loaded.is_ok() {
            found = profiles(root);
        }
        *own = Some(with_own(&found) && denies_families());
        match loaded {
            Ok(()) => {}
            Err(error) if with_own(&found) => tracing::warn!(
                why = %ErrorChain(&error),
                "Failed to reload the AppArmor profile {APPARMOR_DEFAULT}; the profile that an earlier start loaded stays in use"
            ),
            Err(error) => tracing::warn!(
                why = %ErrorChain(&error),
                "Failed to load the AppArmor profile {APPARMOR_DEFAULT}; containers that request no profile run unconfined"
            ),
        }
    }
    AppArmorProfiles {
        denies_families: *own == Some(true) && with_own(&found),
        names: found.unwrap_or_default(),
    }
}

/// Opens such a socket in a short-lived thread under the profile. The kernel's feature list is not
/// enough: a parser silently drops rules about address families that are not in the feature list it
/// is configured with.
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
        ended.unwrap_or_else(|_| Err(io::Error::other("the test panicked")))
    });
    answer.unwrap_or_else(|error| {
        tracing::warn!(%error, "Failed to test which address families the AppArmor profile {APPARMOR_DEFAULT} denies");
        false
    })
}

/// Why the runtime's own profile is not loaded.
#[derive(Debug, thiserror::Error)]
enum LoadError {
    /// The machine can't load it.
    #[error("{0}")]
    Obstacle(ProfileObstacle),
    /// The parser is gone.
    #[error("apparmor_parser: executable file not found")]
    NoParser,
    /// The parser failed.
    #[error("{} failed", parser.display())]
    Parser {
        parser: PathBuf,
        source: ParserError,
    },
}

/// Why the parser did not load the profile.
#[derive(Debug, thiserror::Error)]
enum ParserError {
    /// It can't be started, or not be waited for.
    #[error(transparent)]
    Process(#[from] io::Error),
    /// It hangs.
    #[error("it did not exit within {} s", PARSER_TIMEOUT.tv_sec)]
    TimedOut,
    /// It failed, with this standard error.
    #[error("{status}: {stderr}")]
    Failed { status: ExitStatus, stderr: String },
}

fn load(root: &Path) -> Result<(), LoadError> {
    if let Some(why) = obstacle(root) {
        return Err(LoadError::Obstacle(why));
    }
    let parser = find_program(PARSER).ok_or(LoadError::NoParser)?;
    if let Err(source) = run(&parser) {
        return Err(LoadError::Parser { parser, source });
    }
    tracing::info!("Loaded the AppArmor profile {APPARMOR_DEFAULT}");
    Ok(())
}

fn run(parser: &PathBuf) -> Result<(), ParserError> {
    let mut command = Command::new(parser);
    let mut child = limit_as_before(&mut command)
        .args(["--replace", "--skip-cache", "--quiet"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut ended = || -> io::Result<bool> {
        if let Some(mut stdin) = child.stdin.take() {
            // The profile fits into a pipe's buffer, so this cannot block. A parser that does not
            // read exits with an error, which is reported below.
            let _ = stdin.write_all(apparmor_default_text().as_bytes());
        }
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
        let mut wait = [PollFd::new(&pidfd, PollFlags::IN)];
        Ok(rustix::io::retry_on_intr(|| poll(&mut wait, Some(&PARSER_TIMEOUT)))? > 0)
    };
    let ended = ended();
    if !matches!(ended, Ok(true)) {
        // An unreaped child keeps its PID, so the signal cannot hit another process.
        let _ = child.kill();
    }
    let status = child.wait()?;
    if !ended? {
        return Err(ParserError::TimedOut);
    }
    if status.success() {
        return Ok(());
    }
    let mut said = String::new();
    if let Some(stderr) = child.stderr.take() {
        let _ = stderr.take(4096).read_to_string(&mut said);
    }
    Err(ParserError::Failed {
        status,
        stderr: said.trim().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_profiles_are_read_as_the_kernel_writes_them() {
        let root = tempfile::Builder::new()
            .prefix("rbt-runtime-")
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
