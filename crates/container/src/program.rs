//! The program of a process: arguments, environment, and lookup.

use std::{
    ffi::{CString, OsStr},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use rubelet_oci::Process;
use rustix::{
    fs::{Access, AtFlags, CWD, FileType, accessat, statat},
    io::Errno,
};

use crate::step::{Step, StepError, reason};
use crate::sys::process::working_directory;

/// The program of a process.
#[derive(Debug)]
pub(crate) struct Program<'a> {
    process: &'a Process,
    args: Vec<CString>,
    env: Vec<CString>,
}

impl<'a> Program<'a> {
    /// Reads the fields of the process.
    pub(crate) fn read(process: &'a Process) -> Result<Self, StepError> {
        if process.args.first().is_none_or(String::is_empty) {
            return Err(StepError::new("the container has no program to execute"));
        }
        if !process.cwd.is_absolute() {
            let cwd = process.cwd.display();
            return Err(StepError(format!(
                "the working directory {cwd:?} is not absolute"
            )));
        }
        Ok(Self {
            process,
            args: strings(&process.args, "an argument")?,
            env: strings(&process.env, "an environment variable")?,
        })
    }

    /// The arguments.
    pub(crate) fn args(&self) -> &[CString] {
        &self.args
    }

    /// The environment.
    pub(crate) fn env(&self) -> &[CString] {
        &self.env
    }

    /// Changes to the working directory. Refuses a directory outside of the root, such as a leaked
    /// descriptor of the host in `/proc/self/fd` (CVE-2024-21626).
    pub(crate) fn enter_directory(&self) -> Result<(), StepError> {
        let cwd = &self.process.cwd;
        let what = || {
            format!(
                "chdir to cwd ({:?}) set in config.json failed",
                cwd.display().to_string()
            )
        };
        rustix::process::chdir(cwd).step(what)?;
        let now = working_directory().step(what)?;
        if now.first() == Some(&b'/') {
            Ok(())
        } else {
            Err(StepError(format!(
                "{}: it is outside of the container's file system",
                what()
            )))
        }
    }

    /// Looks up the program as the current user. The messages are runc's.
    pub(crate) fn find(&self) -> Result<CString, StepError> {
        let name = &self.process.args[0];
        let found = self.search(name).map_err(|reason| {
            StepError(format!(
                "unable to start container process: exec: {name:?}: {reason}"
            ))
        })?;
        CString::new(found.into_os_string().as_bytes())
            .map_err(|_| StepError::new("the program's path has a zero byte"))
    }

    fn search(&self, name: &str) -> Result<PathBuf, String> {
        if name.contains('/') {
            let path = PathBuf::from(name);
            return match executable(&path) {
                Ok(()) => Ok(path),
                Err(Errno::NOENT) => Err(format!("stat {name}: no such file or directory")),
                Err(error) => Err(reason(&error.into())),
            };
        }
        // The last value wins, as in most shells.
        let mut env = self.process.env.iter().rev();
        let path = env.find_map(|one| one.strip_prefix("PATH="));
        let mut denied = false;
        for dir in path.unwrap_or_default().split(':') {
            // Skip relative entries; an empty one means the working directory.
            if !dir.starts_with('/') {
                continue;
            }
            let path = Path::new(dir).join(name);
            match executable(&path) {
                Ok(()) => return Ok(path),
                Err(Errno::ACCESS) => denied = true,
                Err(_) => {}
            }
        }
        if denied {
            return Err("permission denied".to_owned());
        }
        Err("executable file not found in $PATH".to_owned())
    }
}

fn executable(path: &Path) -> Result<(), Errno> {
    let stat = statat(CWD, path, AtFlags::empty())?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
        return Err(Errno::ISDIR);
    }
    // The permission of the effective user, if the kernel has faccessat2(2).
    match accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS) {
        Err(Errno::NOSYS | Errno::INVAL) if stat.st_mode & 0o111 != 0 => Ok(()),
        Err(Errno::NOSYS | Errno::INVAL) => Err(Errno::ACCESS),
        other => other,
    }
}

fn strings(texts: &[String], what: &str) -> Result<Vec<CString>, StepError> {
    let zero = |text: &String| StepError(format!("{what} has a zero byte: {text:?}"));
    let string = |text: &String| CString::new(OsStr::new(text).as_bytes()).map_err(|_| zero(text));
    texts.iter().map(string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(args: &[&str], env: &[&str]) -> Result<String, String> {
        let process = Process {
            args: args.iter().map(|&one| one.to_owned()).collect(),
            env: env.iter().map(|&one| one.to_owned()).collect(),
            cwd: "/".into(),
            ..Process::default()
        };
        let program = Program::read(&process).map_err(|failure| failure.0)?;
        let found = program.find().map_err(|failure| failure.0)?;
        Ok(found.into_string().unwrap())
    }

    #[test]
    fn finds_on_the_path_of_the_process() {
        let env = ["PATH=/nowhere:.:/bin"];
        assert_eq!(find(&["sh"], &env).unwrap(), "/bin/sh");
        assert_eq!(
            find(&["no-such-program"], &env).unwrap_err(),
            "unable to start container process: exec: \"no-such-program\": executable file not found in $PATH"
        );
        assert!(find(&["sh"], &[]).is_err());
    }

    #[test]
    fn says_what_is_wrong_with_a_path() {
        let wrong = |path| find(&[path], &[]).unwrap_err();
        assert!(wrong("/no/such").ends_with("stat /no/such: no such file or directory"));
        assert!(wrong("/etc/passwd").ends_with("\"/etc/passwd\": permission denied"));
        assert!(wrong("/etc").ends_with("\"/etc\": is a directory"));
    }

    #[test]
    fn refuses_what_can_not_be_executed() {
        assert!(find(&[], &[]).is_err());
        assert!(find(&["a\0b"], &[]).unwrap_err().contains("zero byte"));
    }
}
