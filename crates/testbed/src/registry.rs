//! An image registry on the loopback interface, for tests of what a pull does: it serves one image
//! over plain HTTP, under any name and tag, to anybody.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::images;

/// The first byte of a TLS connection.
const TLS_HANDSHAKE: u8 = 22;

/// A registry that serves until it is dropped.
#[derive(Debug)]
pub struct Registry {
    address: SocketAddr,
    shared: Arc<Shared>,
    server: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    content: Content,
    resolved: AtomicUsize,
    stop: AtomicBool,
    /// Requests wait here while the gate is closed.
    gate: Mutex<()>,
}

/// The image: its manifest and its blobs by digest, each with its media type.
#[derive(Debug)]
struct Content {
    manifest: String,
    blobs: BTreeMap<String, (String, Vec<u8>)>,
}

impl Registry {
    /// Starts one that serves busybox, in an image of its own.
    ///
    /// # Errors
    /// When the image can't be built, or no port is free.
    pub fn start() -> Result<Self> {
        let shared = Arc::new(Shared {
            content: Content::build()?,
            resolved: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            gate: Mutex::new(()),
        });
        let listener = TcpListener::bind("127.0.0.1:0").context("no port is free on 127.0.0.1")?;
        let address = listener.local_addr()?;
        let server = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || serve(&listener, &shared)
        });
        Ok(Self {
            address,
            shared,
            server: Some(server),
        })
    }

    /// The name of an image here.
    #[must_use]
    pub fn image(&self, name: &str) -> String {
        format!("{}/{name}", self.address)
    }

    /// How often somebody asked what a tag stands for: once for each pull.
    #[must_use]
    pub fn pulls(&self) -> usize {
        self.shared.resolved.load(Ordering::Relaxed)
    }

    /// Lets all requests wait while `meanwhile` runs.
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
        // Wakes the server, which then sees that it is to stop.
        let _ = TcpStream::connect(self.address);
        if let Some(server) = self.server.take() {
            let _ = server.join();
        }
    }
}

impl Content {
    fn build() -> Result<Self> {
        // Another configuration, for what has the same one is the same image to a runtime.
        let config = json!({ "Env": ["PATH=/bin"], "Cmd": ["sh"], "Labels": { "from": "afar" } });
        let archive = images::archive_of(&[("served", config)])?;
        let mut files = BTreeMap::new();
        for entry in tar::Archive::new(archive.as_slice()).entries()? {
            let mut entry = entry?;
            let path = entry.path()?.display().to_string();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes)?;
            files.insert(path, bytes);
        }
        let index: Value = json_of(&files, "index.json")?;
        let entry = &index["manifests"][0];
        let (manifest, _) = digest_and_type(entry)?;
        let inner = json_of(&files, &path_of(&manifest))?;
        let layers = inner["layers"].as_array().context("no layers")?;
        let mut blobs = BTreeMap::new();
        for descriptor in [entry, &inner["config"]].into_iter().chain(layers) {
            let (digest, media_type) = digest_and_type(descriptor)?;
            let bytes = files
                .remove(&path_of(&digest))
                .context("a blob is missing")?;
            blobs.insert(digest, (media_type, bytes));
        }
        Ok(Self { manifest, blobs })
    }
}

fn json_of(files: &BTreeMap<String, Vec<u8>>, path: &str) -> Result<Value> {
    let bytes = files.get(path).with_context(|| format!("no file {path}"))?;
    Ok(serde_json::from_slice(bytes)?)
}

fn digest_and_type(descriptor: &Value) -> Result<(String, String)> {
    let field = |name: &str| descriptor[name].as_str().map(str::to_owned);
    field("digest")
        .zip(field("mediaType"))
        .with_context(|| format!("{descriptor} is no descriptor"))
}

fn path_of(digest: &str) -> String {
    format!("blobs/{}", digest.replace(':', "/"))
}

fn serve(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.stop.load(Ordering::Relaxed) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let shared = Arc::clone(shared);
        // A client that goes away in the middle is its own trouble.
        std::thread::spawn(move || answer(&stream, &shared).ok());
    }
}

/// Answers one request and closes the connection.
fn answer(mut stream: &TcpStream, shared: &Shared) -> std::io::Result<()> {
    let mut input = BufReader::new(stream);
    if input.fill_buf()?.first() == Some(&TLS_HANDSHAKE) {
        // A client that tries HTTPS first understands by this that there is only HTTP. It is
        // heard out, for a connection that is closed with bytes unread loses the answer.
        let mut record = [0; 5];
        input.read_exact(&mut record)?;
        let length = u16::from_be_bytes([record[3], record[4]]);
        std::io::copy(&mut input.take(length.into()), &mut std::io::sink())?;
        return write!(
            stream,
            "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"
        );
    }
    let mut head = input.lines();
    let request = head.next().transpose()?.unwrap_or_default();
    for line in head {
        if line?.is_empty() {
            break;
        }
    }
    drop(shared.gate.lock().unwrap_or_else(PoisonError::into_inner));
    let mut words = request.split(' ');
    let (method, path) = (words.next(), words.next().unwrap_or_default());
    let content = &shared.content;
    let digest = match path.rsplit_once('/') {
        Some((folder, tag)) if folder.ends_with("/manifests") && !tag.contains(':') => {
            shared.resolved.fetch_add(1, Ordering::Relaxed);
            content.manifest.as_str()
        }
        Some((_, digest)) => digest,
        None => "",
    };
    let Some((media_type, bytes)) = content.blobs.get(digest) else {
        let status = if path == "/v2/" {
            "200 OK"
        } else {
            "404 Not Found"
        };
        return write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
    };
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nContent-Length: {}\r\n\
         Docker-Content-Digest: {digest}\r\nConnection: close\r\n\r\n",
        bytes.len()
    )?;
    if method != Some("HEAD") {
        stream.write_all(bytes)?;
    }
    Ok(())
}
