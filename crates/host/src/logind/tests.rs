//! logind's stand-in, and a real bus where there is one.

use std::{io::Write as _, os::unix::net::UnixListener, path::Path, thread};

use super::{
    peer::{LogindPeer, SignalSender},
    *,
};

/// A logind with a longest delay of 5 s, its bus and the directory of its configuration.
fn logind() -> (tempfile::TempDir, LogindPeer, Logind) {
    let dir = tempfile::Builder::new()
        .prefix("rbt-host-")
        .tempdir()
        .unwrap();
    let socket = dir.path().join("bus");
    let peer = LogindPeer::start(&socket, 5).unwrap();
    let logind = at(&socket);
    (dir, peer, logind)
}

fn at(socket: &Path) -> Logind {
    Logind {
        address: BusAddress::Path(socket.to_owned()),
        drop_ins: socket.with_file_name("logind.conf.d"),
    }
}

#[tokio::test]
async fn a_lock_is_held_until_it_is_dropped() {
    let (_dir, peer, logind) = logind();
    let mut session = logind.connect().await.unwrap();
    assert!(!session.is_shutting_down().await.unwrap());
    let first = session.delay("rubelet", "a test").await.unwrap();
    let second = session.delay("rubelet", "a test").await.unwrap();
    assert_eq!(peer.locks(), 2);
    drop(first);
    assert_eq!(peer.locks(), 1);
    drop(second);
    assert_eq!(peer.locks(), 0);
    peer.announce(true, SignalSender::Logind);
    assert!(session.is_shutting_down().await.unwrap());
    let refused = session.delay("rubelet", "a test").await.unwrap_err();
    assert!(
        refused
            .to_string()
            .starts_with("org.freedesktop.login1 refused Inhibit: "),
        "{refused}"
    );
}

#[tokio::test]
async fn announcements_arrive_in_order_and_only_from_logind() {
    let (_dir, peer, logind) = logind();
    let mut session = logind.connect().await.unwrap();
    for (begins, sender) in [
        (true, SignalSender::Other),
        (true, SignalSender::Logind),
        (true, SignalSender::Other),
        (false, SignalSender::Logind),
    ] {
        peer.announce(begins, sender);
    }
    // Announcements that come while an answer is awaited are kept.
    session.longest_delay().await.unwrap();
    assert_eq!(session.next().await.unwrap(), LogindEvent::Shutdown(true));
    assert_eq!(session.next().await.unwrap(), LogindEvent::Shutdown(false));
    peer.restart();
    peer.announce(true, SignalSender::Logind);
    assert_eq!(session.next().await.unwrap(), LogindEvent::Restarted);
    assert_eq!(session.next().await.unwrap(), LogindEvent::Shutdown(true));
    peer.disconnect();
    let lost = session.next().await.unwrap_err().to_string();
    assert!(lost.starts_with("cannot reach D-Bus at /"), "{lost}");
}

#[tokio::test]
async fn a_delay_that_is_too_short_is_raised_in_loginds_configuration() {
    let (dir, peer, logind) = logind();
    let mut session = logind.connect().await.unwrap();
    let needed = Duration::from_secs(30);
    assert_eq!(
        session.longest_delay().await.unwrap(),
        Duration::from_secs(5)
    );
    peer.configure(30);
    let raised = session.raise_longest_delay(needed).await.unwrap();
    assert_eq!(raised, needed);
    assert!(peer.calls().iter().any(|method| method == "KillUnit"));
    let file = dir.path().join("logind.conf.d/99-kubelet.conf");
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains("InhibitDelayMaxSec=30\n"), "{text}");
    // Another file of a later name has a smaller value: logind's own limit counts.
    peer.configure(10);
    let raised = session.raise_longest_delay(needed).await.unwrap();
    assert_eq!(raised, Duration::from_secs(10));
}

#[tokio::test]
async fn a_machine_without_a_bus_is_named_as_such() {
    let dir = tempfile::Builder::new()
        .prefix("rbt-host-")
        .tempdir()
        .unwrap();
    let socket = dir.path().join("bus");
    let missing = at(&socket).connect().await.unwrap_err();
    let text = format!(
        "{missing}: {}",
        std::error::Error::source(&missing).unwrap()
    );
    let expected = format!("cannot reach D-Bus at {}: No such file", socket.display());
    assert!(text.starts_with(&expected), "{text}");
}

#[tokio::test]
async fn nonsense_is_an_error_and_not_a_panic() {
    let dir = tempfile::Builder::new()
        .prefix("rbt-host-")
        .tempdir()
        .unwrap();
    for nonsense in [
        &b"NO\r\n"[..],
        &[b'x'; 2000],
        b"OK 1\r\nREJECTED\r\n",
        b"OK 1\r\nAGREE_UNIX_FD\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        b"OK 1\r\nAGREE_UNIX_FD\r\nl\x02\x01\x01\xff\xff\xff\x7f\x01\0\0\0\0\0\0\0",
        b"OK 1\r\nAGREE_UNIX_FD\r\nl\x02\x01\x01\0\0\0\0\x01\0\0\0\x04\0\0\0\x05\x01u\0\0\0\0\0",
    ] {
        let socket = dir.path().join("bus");
        let _ = std::fs::remove_file(&socket);
        let listener = UnixListener::bind(&socket).unwrap();
        let peer = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            // The client may close the connection first.
            let _ = stream.write_all(nonsense);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        });
        at(&socket).connect().await.unwrap_err();
        peer.join().unwrap();
    }
}

/// The real bus has no logind: all that is before its answer works.
#[tokio::test]
async fn a_real_bus_accepts_the_client() {
    let Some(bus) = crate::systemd::tests::Bus::start() else {
        rubelet_needs::missing("dbus-daemon");
        return;
    };
    let missing = at(&bus.socket()).connect().await.unwrap_err().to_string();
    assert!(
        missing.contains("org.freedesktop.login1 refused Get: ")
            && missing.contains("org.freedesktop.DBus.Error.ServiceUnknown"),
        "{missing}"
    );
}
