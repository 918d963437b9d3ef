//! A virtual machine, emulated by software alone, for what this machine's own kernel can't show:
//! cgroup version 2. It has no network and no disk. Its root folder is an [`Image`] in memory, and
//! commands go to it and come back through a serial line.

mod cpio;
mod image;
mod kernel;
mod libraries;

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

pub use image::Image;

use crate::scratch::Scratch;
use crate::scratch::lock::HostLock;
use crate::{cleanup, clock, packages, report};

/// How long a guest may take to come up; two to four seconds are usual, on a busy host a minute.
const BOOT_TIMEOUT: Duration = Duration::from_secs(180);

/// A running guest. It is gone when this value is dropped.
#[derive(Debug)]
pub struct Vm {
    child: Child,
    to_guest: ChildStdin,
    from_guest: Receiver<Vec<u8>>,
    /// What came and was not looked at yet.
    pending: Vec<u8>,
    commands: u32,
    console: PathBuf,
    _folder: Folder,
}

/// The folder with the guest's files. Declared last in [`Vm`], so it goes after the emulator.
#[derive(Debug)]
struct Folder(Scratch);

impl Drop for Folder {
    fn drop(&mut self) {
        let removed = HostLock::take().and_then(|lock| cleanup::remove(&self.0, &lock));
        if let Err(error) = removed {
            report::say(&format!("{error:#}"));
        }
    }
}

/// How a command in the guest ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// Its exit code.
    pub code: i32,
    /// What it printed, errors included.
    pub output: String,
}

impl Vm {
    /// Starts a guest, with that many MiB of memory, and waits until it takes commands.
    ///
    /// # Errors
    /// The emulator or the kernel can't be had, or the guest does not come up.
    pub fn boot(image: &Image, memory_mib: u32) -> Result<Self> {
        let emulator = packages::ensure_emulator()?;
        let folder = Folder(Scratch::create(&HostLock::take()?)?);
        let dir = folder.0.dir();
        let archive = dir.join("initramfs");
        let kernel = image.write(&archive, dir)?;
        let console = dir.join("console");
        let mut command = folder.0.command(emulator);
        command
            .args(["-nodefaults", "-no-user-config", "-display", "none"])
            // Not by hardware: it is missing on many machines that tests run on.
            .args([
                "-machine",
                "q35",
                "-accel",
                "tcg,thread=multi",
                "-cpu",
                "max",
            ])
            .args(["-smp", "2", "-m", &memory_mib.to_string(), "-no-reboot"])
            .arg("-kernel")
            .arg(&kernel.image)
            .arg("-initrd")
            .arg(&archive)
            // Debian's kernel has pressure stall information, but switched off. On a busy host an
            // emulated timer can look like a broken one.
            .args([
                "-append",
                "console=ttyS0 quiet psi=1 no_timer_check panic=-1 rdinit=/init",
            ])
            .arg("-serial")
            .arg(format!("file:{}", console.display()))
            .args([
                "-chardev",
                "stdio,id=line,signal=off",
                "-serial",
                "chardev:line",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(dir.join("errors"))?);
        let mut child = command.spawn().context("cannot start the emulator")?;
        let (Some(to_guest), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("the emulator has no input and output");
        };
        let mut vm = Self {
            child,
            to_guest,
            from_guest: follow(output),
            pending: Vec::new(),
            commands: 0,
            console,
            _folder: folder,
        };
        let deadline = clock::now() + BOOT_TIMEOUT;
        match vm.line(deadline) {
            Ok(line) if line == "ready" => Ok(vm),
            Ok(line) => bail!("the guest said `{line}` instead of `ready`"),
            Err(error) => Err(error.context(vm.said("the guest did not come up"))),
        }
    }

    /// Runs a command line of the shell in the guest, whatever becomes of it.
    ///
    /// # Errors
    /// The guest does not answer in time.
    pub fn try_run(&mut self, command: &str, timeout: Duration) -> Result<Ran> {
        self.commands += 1;
        let number = self.commands;
        let answer = self.exchange(number, command, clock::now() + timeout);
        answer.with_context(|| self.said(&format!("the guest did not answer to `{command}`")))
    }

    /// Runs a command line of the shell in the guest; what it printed.
    ///
    /// # Errors
    /// As [`Vm::try_run`], or its exit code is not 0.
    pub fn run(&mut self, command: &str, timeout: Duration) -> Result<String> {
        let Ran { code, output } = self.try_run(command, timeout)?;
        if code != 0 {
            bail!(
                "`{command}` ended with {code} in the guest: {}",
                output.trim()
            );
        }
        Ok(output)
    }

    fn exchange(&mut self, number: u32, command: &str, deadline: Instant) -> Result<Ran> {
        let request = format!("{number} {}\n", base64(command.as_bytes()));
        self.to_guest.write_all(request.as_bytes())?;
        self.to_guest.flush()?;
        let line = self.line(deadline)?;
        let fields: Vec<i32> = line
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        let [answered, code, length] = fields.as_slice() else {
            bail!("the guest answered `{line}`");
        };
        if u32::try_from(*answered) != Ok(number) {
            bail!("the guest answered to {answered} instead of {number}");
        }
        let length = usize::try_from(*length)?;
        while self.pending.len() < length {
            self.receive(deadline)?;
        }
        let output: Vec<u8> = self.pending.drain(..length).collect();
        Ok(Ran {
            code: *code,
            output: String::from_utf8_lossy(&output).into_owned(),
        })
    }

    /// The next line, without its end.
    fn line(&mut self, deadline: Instant) -> Result<String> {
        loop {
            if let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.pending.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            self.receive(deadline)?;
        }
    }

    fn receive(&mut self, deadline: Instant) -> Result<()> {
        let left = deadline.saturating_duration_since(clock::now());
        match self.from_guest.recv_timeout(left) {
            Ok(bytes) => {
                self.pending.extend(bytes);
                Ok(())
            }
            Err(RecvTimeoutError::Timeout) => bail!("it took too long"),
            Err(RecvTimeoutError::Disconnected) => bail!("the emulator has ended"),
        }
    }

    /// An error's text, with what stands on the guest's console.
    fn said(&self, what: &str) -> String {
        let mut text = what.to_owned();
        for name in ["errors", "console"] {
            let said = report::tail(&self.console.with_file_name(name), 30);
            let _ = write!(text, "\n{name}:\n{said}");
        }
        text
    }
}

impl Drop for Vm {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A thread that hands on all that comes, until the emulator ends.
fn follow(mut output: ChildStdout) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = output.read(&mut buffer) {
            if sender.send(buffer[..count].to_vec()).is_err() {
                break;
            }
        }
    });
    receiver
}

/// Base64, so that a command of several lines is one.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let mut bits = 0_u32;
        for (index, byte) in group.iter().enumerate() {
            bits |= u32::from(*byte) << (16 - 8 * index);
        }
        for index in 0..4 {
            if index <= group.len() {
                let digit = usize::try_from(bits >> (18 - 6 * index) & 63).unwrap_or_default();
                text.push(char::from(DIGITS[digit]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base64_is_as_others_write_it() {
        for (text, expected) in [
            ("", ""),
            ("a", "YQ=="),
            ("ab", "YWI="),
            ("abc", "YWJj"),
            ("echo hi\n", "ZWNobyBoaQo="),
        ] {
            assert_eq!(base64(text.as_bytes()), expected);
        }
    }
}
