//! A virtual machine, emulated in software where the processor can't run one, for tests of cgroup version 2, which this
//! machine's own kernel may not have, and of power cuts. It has no network, and a disk only if it is given one. Its
//! root directory is an [`Image`] in memory, or this machine's own, read only, with one on top of it. Commands and their
//! output use a serial line.

mod accelerator;
mod containerd;
mod cpio;
mod disk;
mod host_root;
mod image;
mod kernel;
mod libraries;
mod stripped;
mod systemd;

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use base64::{Engine as _, engine::general_purpose::STANDARD};

pub use containerd::containerd_socket;
pub use disk::Disk;
pub use image::Image;

use self::accelerator::Accelerator;
use self::host_root::HostRoot;
use crate::scratch::guard::ScratchGuard;
use crate::{clock, packages, report};

/// Debian's kernel supports pressure stall information, but disables it by default. On a busy host an emulated
/// timer can look broken. Emulation is slow: mitigations are disabled, and the time is read without a device. The
/// emulator translates code again for each address that it is at, so programs are always at the same.
const KERNEL_OPTIONS: &str = "console=ttyS0 quiet psi=1 no_timer_check mitigations=off tsc=reliable \
    clocksource=tsc norandmaps panic=-1 rdinit=/init";

/// A running guest. It is stopped when the value is dropped.
#[derive(Debug)]
pub struct Vm {
    child: Child,
    to_guest: ChildStdin,
    from_guest: Receiver<Vec<u8>>,
    /// Received data that is not parsed yet.
    pending: Vec<u8>,
    commands: u32,
    console: PathBuf,
    stream: PathBuf,
    /// Dropped after the emulator.
    host_root: Option<HostRoot>,
    /// The guest's files. Declared last, so that it is dropped after the emulator.
    _directory: ScratchGuard,
}

/// Result of a command in the guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// Its exit code.
    pub code: i32,
    /// Its output, including standard error.
    pub output: String,
}

impl Vm {
    /// Starts a guest with this much memory, in MiB, and waits until it accepts commands.
    ///
    /// # Errors
    /// The emulator or the kernel is missing, or the guest does not boot.
    pub fn boot(image: &Image, memory_mib: u32) -> Result<Self> {
        Self::start(image, memory_mib, None)
    }

    /// As [`Vm::boot`]. The guest has `/tmp`, `/var/lib` and `/var/log` on this disk, which only one
    /// guest may have at a time. Its kernel writes nothing by itself: only flushed data outlives it.
    ///
    /// # Errors
    /// As [`Vm::boot`].
    pub fn boot_on(image: &Image, memory_mib: u32, disk: &Disk) -> Result<Self> {
        Self::start(image, memory_mib, Some(disk))
    }

    fn start(image: &Image, memory_mib: u32, disk: Option<&Disk>) -> Result<Self> {
        let start = |accelerator| Self::start_with(accelerator, image, memory_mib, disk);
        if !Accelerator::has_kvm() {
            return start(Accelerator::Emulated);
        }
        start(Accelerator::Kvm).or_else(|error| {
            report::say(&format!("KVM can't be used: {error:#}"));
            start(Accelerator::Emulated)
        })
    }

    fn start_with(
        accelerator: Accelerator,
        image: &Image,
        memory_mib: u32,
        disk: Option<&Disk>,
    ) -> Result<Self> {
        let emulator = packages::ensure_emulator()?;
        let directory = ScratchGuard::create()?;
        let dir = directory.dir();
        let archive = dir.join("initramfs");
        let kernel = image.write(&archive)?;
        let (console, stream) = (dir.join("console"), dir.join("stream"));
        let option = disk.and_then(Disk::mount_option);
        let host_root = match image.is_on_host_root() {
            true => Some(HostRoot::serve(&directory)?),
            false => None,
        };
        let shared = host_root.as_ref().map(|root| root.arguments(memory_mib));
        let mut command = directory.command(emulator);
        command
            .args(["-nodefaults", "-no-user-config", "-display", "none"])
            .args(["-machine", "q35"])
            .args(accelerator.arguments())
            // One processor: emulated processors wait for each other, and a guest with two has hung.
            .args(["-smp", "1", "-m", &memory_mib.to_string(), "-no-reboot"])
            .args(disk.into_iter().flat_map(Disk::arguments))
            .args(shared.into_iter().flatten())
            .arg("-kernel")
            .arg(&kernel.image)
            .arg("-initrd")
            .arg(&archive)
            .arg("-append")
            .arg(format!(
                "{KERNEL_OPTIONS} {} {} {}",
                accelerator.kernel_options(),
                option.unwrap_or_default(),
                host_root.as_ref().map_or("", |_| host_root::OPTION)
            ))
            .arg("-serial")
            .arg(format!("file:{}", console.display()))
            .args([
                "-chardev",
                "stdio,id=line,signal=off",
                "-serial",
                "chardev:line",
            ])
            .arg("-serial")
            .arg(format!("file:{}", stream.display()))
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
            stream,
            host_root,
            _directory: directory,
        };
        let deadline = clock::now() + accelerator.boot_timeout();
        match vm.line(deadline) {
            Ok(line) if line == "ready" => Ok(vm),
            Ok(line) => bail!("the guest sent `{line}` instead of `ready`"),
            Err(error) => Err(error.context(vm.said("the guest did not boot"))),
        }
    }

    /// What was written to `/dev/ttyS2` in the guest, from this byte on. Unlike a command, it takes no time there.
    ///
    /// # Errors
    /// The guest has stopped.
    pub fn streamed(&mut self, from: u64) -> Result<Vec<u8>> {
        if let Some(status) = self.child.try_wait()? {
            bail!(self.said(&format!("the emulator has exited: {status}")));
        }
        let mut stream = File::open(&self.stream)?;
        stream.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Shuts a guest with logind down, and waits until it is off.
    ///
    /// # Errors
    /// It is not off in time.
    pub fn power_off(mut self, timeout: Duration) -> Result<()> {
        let deadline = clock::now() + timeout;
        self.run("systemctl poweroff", timeout)?;
        while self.receive(deadline).is_ok() {}
        if clock::now() >= deadline {
            bail!(self.said("the guest did not shut down"));
        }
        Ok(())
    }

    /// Stops the guest like a power cut.
    pub fn cut_power(self) {
        // The emulator is killed.
        drop(self);
    }

    /// Runs a shell command line in the guest, whatever its exit code.
    ///
    /// # Errors
    /// The guest does not respond in time.
    pub fn try_run(&mut self, command: &str, timeout: Duration) -> Result<Ran> {
        self.commands += 1;
        let number = self.commands;
        let answer = self.exchange(number, command, clock::now() + timeout);
        answer.with_context(|| self.said(&format!("the guest did not respond to `{command}`")))
    }

    /// Runs a shell command line in the guest; returns its output.
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
        // In base64, a command of several lines is a single line.
        let request = format!("{number} {}\n", STANDARD.encode(command));
        self.to_guest.write_all(request.as_bytes())?;
        self.to_guest.flush()?;
        let line = self.line(deadline)?;
        let fields: Vec<i32> = line
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        let [answered, code, length] = fields.as_slice() else {
            bail!("the guest sent `{line}`");
        };
        if u32::try_from(*answered) != Ok(number) {
            bail!("the guest responded to {answered} instead of {number}");
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
            Err(RecvTimeoutError::Timeout) => bail!("timeout"),
            Err(RecvTimeoutError::Disconnected) => bail!("the emulator has exited"),
        }
    }

    /// An error message, with the guest's console output.
    fn said(&self, what: &str) -> String {
        let mut text = what.to_owned();
        let of_daemon = self.host_root.as_ref().map(|_| host_root::LOG);
        for name in ["errors", "console"].into_iter().chain(of_daemon) {
            let said = report::tail(&self.console.with_file_name(name), 30);
            let _ = write!(text, "\n{name}:\n{said}");
        }
        text
    }
}

impl Drop for Vm {
    fn drop(&mut self) {
        // It may have exited by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A thread that forwards all output, until the emulator exits.
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
