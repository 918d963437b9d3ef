//! The log of the kernel, `/dev/kmsg`. See `Documentation/ABI/testing/dev-kmsg` of the kernel.
//!
//! Processes can write to it too: [`KernelRecord::is_of_kernel`] tells them apart.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::OpenOptionsExt as _,
    time::Duration,
};

use rustix::{fs::OFlags, io::Errno};
use tokio::{
    io::{Interest, unix::AsyncFd},
    task::consume_budget,
};

const FILE: &str = "/dev/kmsg";
/// The longest record (kernel: `PRINTK_MESSAGE_MAX`).
const LONGEST: usize = 8192;

/// One record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelRecord {
    /// Who wrote it: 0 is the kernel, and no process can write as that one.
    pub facility: u32,
    /// When it was written, since the boot.
    pub at: Duration,
    /// The message, without line break and tags. Control characters are escaped, as `\x0a`.
    pub message: String,
}

impl KernelRecord {
    /// Whether the kernel wrote it.
    #[must_use]
    pub fn is_of_kernel(&self) -> bool {
        self.facility == 0
    }

    /// Parses what one read returns; `None` if it is not such a record.
    #[must_use]
    pub fn parse(record: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(record);
        let (prefix, rest) = text.split_once(';')?;
        // `priority,sequence,microseconds,flags`, and maybe more in the future.
        let mut fields = prefix.split(',');
        let priority: u32 = fields.next()?.parse().ok()?;
        let _sequence: u64 = fields.next()?.parse().ok()?;
        let at: u64 = fields.next()?.parse().ok()?;
        Some(Self {
            facility: priority >> 3,
            at: Duration::from_micros(at),
            message: rest.lines().next().unwrap_or_default().to_owned(),
        })
    }
}

/// Reads the log.
#[derive(Debug)]
pub struct KernelLog {
    file: AsyncFd<File>,
    buffer: Box<[u8]>,
}

impl KernelLog {
    /// Opens the log at the oldest record that the kernel still has. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// There is none here, or it is not for this process (`kernel.dmesg_restrict`).
    pub fn open() -> io::Result<Self> {
        let flags = OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(FILE)?;
        #[expect(
            deprecated,
            reason = "its unsafe successor asks for what a File guarantees"
        )]
        let file = AsyncFd::with_interest(file, Interest::READABLE)?;
        Ok(Self {
            file,
            buffer: vec![0; LONGEST].into(),
        })
    }

    /// The next record that is there already; `None` at the end of the log. Records that were overwritten before they
    /// were read, and those that can't be parsed, are skipped.
    ///
    /// Cancel safety: nothing is lost.
    ///
    /// # Errors
    /// The log can't be read any more.
    pub async fn next_written(&mut self) -> io::Result<Option<KernelRecord>> {
        loop {
            // A log of some megabytes is read without any wait for the kernel.
            consume_budget().await;
            match self.file.get_ref().read(&mut self.buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => {
                    if let Some(record) = KernelRecord::parse(&self.buffer[..length]) {
                        return Ok(Some(record));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if is_skipped(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The same, but waits at the end of the log.
    ///
    /// Cancel safety: nothing is lost.
    ///
    /// # Errors
    /// The log can't be read any more.
    pub async fn next(&mut self) -> io::Result<KernelRecord> {
        loop {
            if let Some(record) = self.next_written().await? {
                return Ok(record);
            }
            // What is written from here on makes it ready again: the flag is cleared before the next read.
            let mut ready = self.file.readable().await?;
            ready.clear_ready();
            drop(ready);
        }
    }
}

/// Whether the next read returns the record after it: it was overwritten, or is longer than any.
fn is_skipped(error: &io::Error) -> bool {
    let number = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(number, Some(Errno::PIPE | Errno::INVAL | Errno::INTR))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn records_are_parsed_and_what_is_none_is_not() {
        let parse = |text: &str| KernelRecord::parse(text.as_bytes());
        let of = |facility, micros, message: &str| {
            Some(KernelRecord {
                facility,
                at: Duration::from_micros(micros),
                message: message.to_owned(),
            })
        };
        for (text, expected) in [
            (
                "6,339,5140900,-;NET: Registered protocol family 10\n",
                of(0, 5_140_900, "NET: Registered protocol family 10"),
            ),
            (
                "30,340,5690716,-,caller=T1;udevd[80]: starting\n SUBSYSTEM=acpi\n DEVICE=+acpi:1\n",
                of(3, 5_690_716, "udevd[80]: starting"),
            ),
            ("12,1,2,-;a;b\n", of(1, 2, "a;b")),
            ("0,1,2,c;\n", of(0, 2, "")),
            ("", None),
            ("no record", None),
            ("x,1,2,-;text\n", None),
            ("-6,1,2,-;text\n", None),
            ("6,1;text\n", None),
            ("6,1,99999999999999999999,-;text\n", None),
        ] {
            assert_eq!(parse(text), expected, "{text:?}");
        }
        assert!(KernelRecord::parse(&[0xff; 9000]).is_none());
        let odd = KernelRecord::parse(b"6,1,2,-;\xff\xfe").unwrap();
        assert_eq!(odd.message, "\u{fffd}\u{fffd}");
    }

    /// What is written now is read after all that was there, and a process can't pass for the kernel.
    #[tokio::test]
    async fn a_process_that_writes_to_the_log_is_not_the_kernel() {
        let (Ok(mut log), Ok(mut file)) =
            (KernelLog::open(), OpenOptions::new().write(true).open(FILE))
        else {
            // Containers often have none; the agent says so.
            return;
        };
        while log.next_written().await.unwrap().is_some() {}
        let text = format!("rubelet-t{} Killed process 1 (init)", std::process::id());
        // Priority 0 is facility 0. Without the line break it could be continued, and is not there before the next record.
        file.write_all(format!("<0>{text}\n").as_bytes()).unwrap();
        let found = tokio::time::timeout(Duration::from_secs(60), async {
            loop {
                let record = log.next().await.unwrap();
                if record.message == text {
                    return record;
                }
            }
        });
        let record = found.await.expect("the record is read");
        assert!(!record.is_of_kernel(), "{record:?}");
    }
}
