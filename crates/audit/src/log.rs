//! The log: a bounded queue, and a thread that writes the file. Nothing waits for it.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    time::Duration,
};

use parking_lot::Mutex;
use rubelet_http_core::clock;
use rustls::crypto::{SecureRandom, aws_lc_rs};
use tokio::sync::oneshot;

use super::{
    file::{LogFile, Rotation},
    policy::AuditPolicy,
};

/// Maximum number of queued events.
const QUEUE: usize = 4096;
/// The same in bytes.
const QUEUE_BYTES: usize = 4 * 1024 * 1024;
/// Number of bytes that are written at a time.
const BATCH: usize = 64 * 1024;
/// Time that the agent's shutdown waits for the disk.
const CLOSE: Duration = Duration::from_secs(2);

/// Counts events. Must not wait.
pub trait AuditObserver: Send + Sync + 'static {
    /// Events that were written.
    fn written(&self, events: u64);
    /// Events that were dropped. `reason` is `queue` if the disk is too slow, `write` if it is full
    /// or fails.
    fn dropped(&self, reason: &'static str, events: u64);
}

/// Counts nothing.
impl AuditObserver for () {
    fn written(&self, _: u64) {}
    fn dropped(&self, _: &'static str, _: u64) {}
}

/// Why the log can't be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot open the audit log {}", path.display())]
pub struct AuditOpenError {
    /// The file.
    pub path: PathBuf,
    /// The error.
    #[source]
    pub source: io::Error,
}

/// The audit log. It is closed by [`close`](Self::close).
pub struct AuditLog {
    policy: AuditPolicy,
    queue: SyncSender<Message>,
    shared: Arc<LogState>,
    random: &'static dyn SecureRandom,
}

enum Message {
    Line(String),
    Close(oneshot::Sender<()>),
}

struct LogState {
    path: PathBuf,
    observer: Arc<dyn AuditObserver>,
    queued: AtomicUsize,
    dropped: AtomicU64,
    /// The queue was full, and that was logged.
    too_slow: AtomicBool,
    /// Why the last write failed.
    failure: Mutex<Option<String>>,
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AuditLog({})", self.shared.path.display())
    }
}

impl AuditLog {
    /// Opens the file, with mode 0600, and starts the thread that writes it.
    ///
    /// # Errors
    /// The file can't be opened, is a link or no regular file, or the thread can't be started.
    pub fn open(
        path: &Path,
        rotation: Rotation,
        policy: AuditPolicy,
        observer: Arc<dyn AuditObserver>,
    ) -> Result<Arc<Self>, AuditOpenError> {
        let failed = |source| AuditOpenError {
            path: path.to_owned(),
            source,
        };
        let mut file = LogFile::open(path, rotation, clock::now()).map_err(failed)?;
        let append = move |lines: &[u8]| file.append(lines, clock::now());
        Self::with(path, append, policy, observer).map_err(failed)
    }

    /// A log that passes batches of lines to `append`, on its own thread.
    pub(super) fn with(
        path: &Path,
        append: impl FnMut(&[u8]) -> io::Result<()> + Send + 'static,
        policy: AuditPolicy,
        observer: Arc<dyn AuditObserver>,
    ) -> io::Result<Arc<Self>> {
        let shared = Arc::new(LogState {
            path: path.to_owned(),
            observer,
            queued: AtomicUsize::new(0),
            dropped: AtomicU64::new(0),
            too_slow: AtomicBool::new(false),
            failure: Mutex::new(None),
        });
        let (queue, messages) = sync_channel(QUEUE);
        // A dedicated thread: a disk that hangs would block a thread of the file system pool
        // forever.
        std::thread::Builder::new()
            .name("audit".to_owned())
            .stack_size(256 * 1024)
            .spawn({
                let shared = Arc::clone(&shared);
                move || write(&messages, append, &shared)
            })?;
        Ok(Arc::new(Self {
            policy,
            queue,
            shared,
            random: aws_lc_rs::default_provider().secure_random,
        }))
    }

    /// The problem with the log, in one line; `None` if no event was lost since the start.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let dropped = self.shared.dropped.load(Ordering::Relaxed);
        let path = self.shared.path.display();
        let lost = match dropped {
            0 => String::new(),
            1 => "1 event is lost since the start".to_owned(),
            count => format!("{count} events are lost since the start"),
        };
        match (&*self.shared.failure(), dropped) {
            (Some(failure), _) => Some(format!("cannot write {path}: {failure}; {lost}")),
            (None, 0) => None,
            (None, _) => Some(lost),
        }
    }

    /// Waits up to two seconds until the queue is written. Later events are dropped.
    pub async fn close(&self) {
        let (done, written) = oneshot::channel();
        let sent = self.queue.try_send(Message::Close(done)).is_ok();
        if !sent || tokio::time::timeout(CLOSE, written).await.is_err() {
            tracing::warn!(path = %self.shared.path.display(), "Exiting with unwritten audit events");
        }
    }

    pub(super) fn policy(&self) -> &AuditPolicy {
        &self.policy
    }

    /// A random UUID, version 4.
    pub(super) fn new_id(&self) -> String {
        let mut bytes = [0; 16];
        if self.random.fill(&mut bytes).is_err() {
            return "00000000-0000-4000-8000-000000000000".to_owned();
        }
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let hex = format!("{:032x}", u128::from_be_bytes(bytes));
        let parts = [
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..],
        ];
        parts.join("-")
    }

    /// Queues a line, or drops it.
    pub(super) fn record(&self, line: String) {
        let length = line.len();
        let before = self.shared.queued.fetch_add(length, Ordering::Relaxed);
        let fits = before + length <= QUEUE_BYTES;
        if fits && self.queue.try_send(Message::Line(line)).is_ok() {
            return;
        }
        self.shared.queued.fetch_sub(length, Ordering::Relaxed);
        self.shared.dropped("queue", 1);
        if !self.shared.too_slow.swap(true, Ordering::Relaxed) {
            tracing::warn!(path = %self.shared.path.display(), "Dropping audit events: the disk is too slow");
        }
    }
}

impl LogState {
    fn failure(&self) -> parking_lot::MutexGuard<'_, Option<String>> {
        self.failure.lock()
    }

    fn dropped(&self, reason: &'static str, events: u64) {
        self.dropped.fetch_add(events, Ordering::Relaxed);
        self.observer.dropped(reason, events);
    }

    /// Records the result of a write. Errors are logged when they begin and when they end.
    fn wrote(&self, result: io::Result<()>, events: u64) {
        let path = self.path.display();
        match result {
            Ok(()) => {
                if self.failure().take().is_some() {
                    tracing::info!(%path, "Writing the audit log again");
                }
                self.observer.written(events);
            }
            Err(error) => {
                let new = self.failure().replace(error.to_string()).is_none();
                self.dropped("write", events);
                if new {
                    tracing::warn!(%path, %error, "Cannot write the audit log; dropping its events");
                }
            }
        }
    }
}

/// The thread. It ends when the log is dropped, or after [`Message::Close`].
fn write(
    messages: &Receiver<Message>,
    mut append: impl FnMut(&[u8]) -> io::Result<()>,
    shared: &LogState,
) {
    let mut batch = String::new();
    while let Ok(first) = messages.recv() {
        batch.clear();
        let mut events = 0;
        let mut close = None;
        let mut next = Some(first);
        while let Some(message) = next.take() {
            match message {
                Message::Line(line) => {
                    batch.push_str(&line);
                    events += 1;
                }
                Message::Close(done) => {
                    close = Some(done);
                    break;
                }
            }
            if batch.len() < BATCH {
                next = messages.try_recv().ok();
            }
        }
        if events > 0 {
            shared.wrote(append(batch.as_bytes()), events);
            let left = shared.queued.fetch_sub(batch.len(), Ordering::Relaxed) - batch.len();
            if left == 0 {
                shared.too_slow.store(false, Ordering::Relaxed);
            }
        }
        if let Some(done) = close {
            // The receiver may have timed out.
            let _ = done.send(());
            return;
        }
    }
}
