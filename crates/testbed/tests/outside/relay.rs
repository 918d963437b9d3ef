//! Forwards TCP connections to a unix socket, for clients that support TCP only.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Listens on 127.0.0.1 and forwards every connection to the socket, until it is dropped.
pub(crate) struct Relay {
    address: SocketAddr,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Starts one.
    pub(crate) fn start(socket: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let ends = Arc::new(AtomicBool::new(false));
        let (ending, socket) = (Arc::clone(&ends), socket.to_owned());
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if ending.load(Ordering::SeqCst) {
                    return;
                }
                if let Ok(stream) = stream {
                    pass_on(stream, &socket);
                }
            }
        });
        Self {
            address,
            ends,
            thread: Some(thread),
        }
    }

    /// The server's URL.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        // The thread waits for one more connection.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Copies in both directions, until either side closes.
fn pass_on(client: TcpStream, socket: &PathBuf) {
    let Ok(server) = UnixStream::connect(socket) else {
        // The client sees the connection close.
        return;
    };
    let (from_client, from_server) = (client.try_clone(), server.try_clone());
    let (Ok(from_client), Ok(from_server)) = (from_client, from_server) else {
        return;
    };
    std::thread::spawn(move || {
        copy(from_client, &server);
        let _ = server.shutdown(Shutdown::Write);
    });
    std::thread::spawn(move || {
        copy(from_server, &client);
        let _ = client.shutdown(Shutdown::Both);
    });
}

fn copy(mut from: impl Read, mut into: impl Write) {
    // Either side may close at any time.
    let _ = std::io::copy(&mut from, &mut into);
}
