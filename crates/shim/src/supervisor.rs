//! The shim process: one thread, one epoll loop, no timers while idle.

mod advance;
mod attach;
mod attachments;
mod background_flush;
mod calls;
mod children;
mod connection;
mod container;
mod container_state;
mod delete;
mod events;
mod exec;
mod exits;
mod input;
mod oom_kills;
mod oom_ledger;
mod output;
mod process;
mod sandbox;
mod shim;
mod signals;
mod start_error;
mod target;
#[cfg(test)]
pub(crate) mod test_mount;
mod watch;

use std::{
    ffi::OsString,
    io,
    os::{fd::AsFd as _, unix::ffi::OsStrExt as _},
    path::PathBuf,
    process::ExitCode,
};

use rubelet_base::ErrorChain;
use rubelet_cgroup_plan::CgroupPath;

use self::start_error::ShimStartError;
use crate::{
    protocol::{self, FromShim},
    wire,
};

/// The command line of a shim.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    dir: PathBuf,
    cgroup: Option<CgroupPath>,
}

impl Options {
    fn parse(args: &[OsString]) -> Result<Self, ShimStartError> {
        let (mut dir, mut cgroup) = (None, None);
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || {
                args.next()
                    .ok_or_else(|| ShimStartError::MissingValue(arg.clone()))
            };
            match arg.as_bytes() {
                b"--dir" => dir = Some(PathBuf::from(value()?)),
                b"--cgroup" => {
                    let path = value()?.to_string_lossy().into_owned();
                    cgroup = Some(CgroupPath::parse(&path)?);
                }
                _ => return Err(ShimStartError::UnknownArgument(arg.clone())),
            }
        }
        let dir = dir.ok_or(ShimStartError::NoDirectory)?;
        if dir.is_relative() {
            return Err(ShimStartError::RelativeDirectory(dir));
        }
        Ok(Self { dir, cgroup })
    }
}

/// Runs a shim: `--dir DIR [--cgroup PATH]`, with a connected socket as standard input; `args` are
/// those after `shim`. Call it first in `main`: the process must have a single thread and no open
/// resources.
///
/// With `--hold` it does nothing until its standard input ends: a placeholder process, because
/// systemd creates no scope without one.
#[must_use]
pub fn main(args: &[OsString]) -> ExitCode {
    if args == ["--hold"] {
        // Errors are ignored: the placeholder exits in any case.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        return ExitCode::SUCCESS;
    }
    let agent = process::take_over_descriptors();
    let mut shim = match begin(args) {
        Ok(shim) => shim,
        Err(error) => {
            if let Some(agent) = agent {
                let reason = ErrorChain(&error).to_string();
                let goodbye = FromShim::Goodbye { reason };
                if let Ok(bytes) = protocol::encode(&goodbye, 0) {
                    // If this fails, the agent still sees the end of the connection.
                    let _ = wire::send(agent.as_fd(), &bytes, &[]);
                }
            }
            return ExitCode::FAILURE;
        }
    };
    if let Some(agent) = agent {
        shim.take_connection(agent);
    }
    match shim.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn begin(args: &[OsString]) -> Result<shim::Shim, ShimStartError> {
    let options = Options::parse(args)?;
    let prepared = process::set_up(options.cgroup.as_ref())?;
    shim::Shim::new(options.dir, prepared)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Options, ShimStartError> {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        Options::parse(&args)
    }

    #[test]
    fn a_shim_needs_an_absolute_directory_and_takes_a_cgroup_that_is_not_the_root() {
        let options = parse(&["--dir", "/run/x", "--cgroup", "/rubelet/shims"]).unwrap();
        assert_eq!(options.dir, PathBuf::from("/run/x"));
        assert_eq!(options.cgroup.unwrap().as_str(), "/rubelet/shims");
        for wrong in [
            &["--cgroup", "/a"][..],
            &["--dir"],
            &["--dir", "x"],
            &["--dir", "/x", "--cgroup", "/"],
            &["--dir", "/x", "more"],
        ] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn an_error_of_the_start_names_what_failed() {
        let text = |args: &[&str]| ErrorChain(&parse(args).unwrap_err()).to_string();
        for (args, expected) in [
            (&["--dir"][..], "--dir needs a value"),
            (&["more"], "unknown argument of the shim: more"),
            (&[], "the shim needs --dir, the directory for its socket"),
            (&["--dir", "x"], "--dir x is not an absolute path"),
            (
                &["--dir", "/x", "--cgroup", "/"],
                "the cgroup path `/` names the root of the hierarchy, which is never ours",
            ),
        ] {
            assert_eq!(text(args), expected);
        }
        let taken = io::Error::other("another shim listens on the socket");
        let error = ShimStartError::step("listen in /run/x", taken);
        assert_eq!(
            ErrorChain(&error).to_string(),
            "the shim cannot listen in /run/x: another shim listens on the socket"
        );
    }
}
