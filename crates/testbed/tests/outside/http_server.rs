//! A web server that sends the same response to every request, until it is changed.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// The headers of a request, names in lower case.
pub(crate) type Headers = BTreeMap<String, String>;

#[derive(Default)]
struct ServerState {
    answer: Mutex<(u16, String)>,
    requests: Mutex<Vec<Headers>>,
    ends: AtomicBool,
}

/// A server on 127.0.0.1; it stops when the value is dropped.
pub(crate) struct HttpServer {
    address: SocketAddr,
    shared: Arc<ServerState>,
    thread: Option<JoinHandle<()>>,
}

impl HttpServer {
    /// Starts one that responds with 200 and this text.
    pub(crate) fn start(text: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(ServerState::default());
        *shared.answer.lock().unwrap() = (200, text.to_owned());
        let serving = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if serving.ends.load(Ordering::SeqCst) {
                    return;
                }
                if let Ok(stream) = stream {
                    // A client that disconnects early does no harm.
                    let _ = answer(stream, &serving);
                }
            }
        });
        let thread = Some(thread);
        Self {
            address,
            shared,
            thread,
        }
    }

    /// The address of the manifest.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/pods", self.address)
    }

    /// Its port on 127.0.0.1.
    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Sets the response.
    pub(crate) fn set(&self, status: u16, text: &str) {
        *self.shared.answer.lock().unwrap() = (status, text.to_owned());
    }

    /// Number of requests, with the headers of the last one.
    pub(crate) fn requests(&self) -> (usize, Headers) {
        let requests = self.shared.requests.lock().unwrap();
        (requests.len(), requests.last().cloned().unwrap_or_default())
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::SeqCst);
        // The thread waits for one more connection.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn answer(stream: TcpStream, shared: &ServerState) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut headers = Headers::new();
    let mut line = String::new();
    reader.read_line(&mut line)?;
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let (status, text) = shared.answer.lock().unwrap().clone();
    write!(
        reader.get_mut(),
        "HTTP/1.1 {status} Word\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    )?;
    shared.requests.lock().unwrap().push(headers);
    Ok(())
}
