//! An image registry on the loopback interface, for tests of pulls: it serves one image over plain
//! HTTP, under any name and tag, to anybody or with a password.

mod access;
mod content;
mod peer;
mod request;
mod respond;

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use anyhow::{Context, Result};

pub use access::{Access, PASSWORD, USER};
use content::Content;
pub use content::{Compression, Form};
pub use peer::PeerRegistry;

/// A registry that serves until it is dropped.
#[derive(Debug)]
pub struct Registry {
    address: SocketAddr,
    shared: Arc<RegistryState>,
    servers: Vec<(SocketAddr, JoinHandle<()>)>,
}

/// The behaviour of a registry.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct RegistryBuilder {
    access: Access,
    form: Form,
    compression: Compression,
    redirects: bool,
    cut_off: usize,
    refused: Option<u16>,
    wrong_bytes: bool,
}

#[derive(Debug)]
struct RegistryState {
    rules: RegistryBuilder,
    content: Content,
    resolved: AtomicUsize,
    /// How many more responses are truncated.
    cuts: AtomicUsize,
    /// Credentials that were sent to the blob server, which must not get any.
    leaked: AtomicUsize,
    stop: AtomicBool,
    /// Requests wait here while the gate is closed.
    gate: Mutex<()>,
    /// Address of the blob server if requests are redirected.
    elsewhere: Option<SocketAddr>,
}

impl RegistryBuilder {
    /// Requires the password [`PASSWORD`] of [`USER`], in this way.
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Serves the image in this form.
    pub fn form(mut self, form: Form) -> Self {
        self.form = form;
        self
    }

    /// Serves the layer with this compression.
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Redirects requests for blobs to another server.
    pub fn redirects(mut self) -> Self {
        self.redirects = true;
        self
    }

    /// Closes the connection in the middle of the layer, this many times.
    pub fn cut_off(mut self, times: usize) -> Self {
        self.cut_off = times;
        self
    }

    /// Answers each request for a manifest with this status.
    pub fn refused(mut self, status: u16) -> Self {
        self.refused = Some(status);
        self
    }

    /// Sends a layer whose bytes do not match its digest.
    pub fn wrong_bytes(mut self) -> Self {
        self.wrong_bytes = true;
        self
    }

    /// Starts it.
    ///
    /// # Errors
    /// When the image can't be built, or no port is free.
    pub fn start(self) -> Result<Registry> {
        let mut content = Content::build(self.form, self.compression)?;
        if self.wrong_bytes {
            content.spoil_layer();
        }
        let bind = |host: &str| {
            let listener = TcpListener::bind((host, 0));
            listener.with_context(|| format!("no port is free on {host}"))
        };
        let listener = bind("127.0.0.1")?;
        // A different host for clients, to which credentials must not be sent.
        let second = self.redirects.then(|| bind("127.0.0.2")).transpose()?;
        let address = listener.local_addr()?;
        let elsewhere = match &second {
            Some(second) => Some(second.local_addr()?),
            None => None,
        };
        let shared = Arc::new(RegistryState {
            content,
            resolved: AtomicUsize::new(0),
            cuts: AtomicUsize::new(self.cut_off),
            leaked: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            gate: Mutex::new(()),
            elsewhere,
            rules: self,
        });
        let mut servers = Vec::new();
        for (listener, is_store) in [(Some(listener), false), (second, true)] {
            let Some(listener) = listener else { continue };
            let shared = Arc::clone(&shared);
            let address = listener.local_addr()?;
            let server = std::thread::spawn(move || serve(&listener, is_store, &shared));
            servers.push((address, server));
        }
        Ok(Registry {
            address,
            shared,
            servers,
        })
    }
}

impl Registry {
    /// A registry with configurable behaviour.
    pub fn builder() -> RegistryBuilder {
        RegistryBuilder::default()
    }

    /// Starts one that serves busybox, in a unique image, to anybody.
    ///
    /// # Errors
    /// When the image can't be built, or no port is free.
    pub fn start() -> Result<Self> {
        Self::builder().start()
    }

    /// The name of an image here.
    #[must_use]
    pub fn image(&self, name: &str) -> String {
        format!("{}/{name}", self.address)
    }

    /// The digest of every tag.
    #[must_use]
    pub fn digest(&self) -> &str {
        self.shared.content.top()
    }

    /// Number of resolutions of a tag: one per pull.
    #[must_use]
    pub fn pulls(&self) -> usize {
        self.shared.resolved.load(Ordering::Relaxed)
    }

    /// Number of requests with credentials to the blob server.
    #[must_use]
    pub fn leaked(&self) -> usize {
        self.shared.leaked.load(Ordering::Relaxed)
    }

    /// Blocks all requests while `meanwhile` runs.
    pub fn held<T>(&self, meanwhile: impl FnOnce() -> T) -> T {
        let _closed = self
            .shared
            .gate
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        meanwhile()
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for (address, server) in self.servers.drain(..) {
            // Wakes the server, which then sees that it must stop.
            let _ = TcpStream::connect(address);
            let _ = server.join();
        }
    }
}

fn serve(listener: &TcpListener, is_store: bool, shared: &Arc<RegistryState>) {
    for stream in listener.incoming() {
        if shared.stop.load(Ordering::Relaxed) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let shared = Arc::clone(shared);
        // A client that disconnects early is not an error.
        std::thread::spawn(move || respond::answer(&stream, is_store, &shared).ok());
    }
}
