//! tcpSocket probes.

use rubelet_api::probe::{TargetPort, TcpSocket};
use rubelet_probes::ProbeOutcome;

use crate::server::{PLENTY, SHORT, Server, closed_port, deaf_port, prober};

fn socket(port: u16) -> TcpSocket {
    TcpSocket {
        host: None,
        port: TargetPort::Number(port),
    }
}

#[tokio::test]
async fn a_connection_that_opens_passes() {
    let server = Server::saying("").await;
    let report = prober()
        .tcp(&socket(server.port), "127.0.0.1", PLENTY)
        .await;
    assert_eq!(
        (report.verdict, report.output.as_str()),
        (ProbeOutcome::Passed, "")
    );
    let elsewhere = TcpSocket {
        host: Some("127.0.0.1".into()),
        ..socket(server.port)
    };
    let report = prober().tcp(&elsewhere, "192.0.2.1", PLENTY).await;
    assert_eq!(report.verdict, ProbeOutcome::Passed);
}

#[tokio::test]
async fn a_connection_that_does_not_open_fails() {
    let (port, _socket) = closed_port();
    let report = prober().tcp(&socket(port), "127.0.0.1", PLENTY).await;
    let expected = format!("dial tcp 127.0.0.1:{port}: connect: connection refused");
    assert_eq!(
        (report.verdict, report.output),
        (ProbeOutcome::Failed, expected)
    );
    let report = prober().tcp(&socket(port), "::1", PLENTY).await;
    assert!(
        report
            .output
            .starts_with(&format!("dial tcp [::1]:{port}: ")),
        "{}",
        report.output
    );
}

#[tokio::test]
async fn silence_is_a_timeout() {
    let (port, _listener, _waiting) = deaf_port().await;
    let report = prober().tcp(&socket(port), "127.0.0.1", SHORT).await;
    let expected = format!("dial tcp 127.0.0.1:{port}: i/o timeout");
    assert_eq!(
        (report.verdict, report.output),
        (ProbeOutcome::TimedOut, expected)
    );
    assert!(report.latency >= SHORT);
}

#[tokio::test]
async fn a_port_without_a_number_says_nothing_of_the_container() {
    let unknown = TcpSocket {
        host: None,
        port: TargetPort::Unknown("web".into()),
    };
    let report = prober().tcp(&unknown, "127.0.0.1", PLENTY).await;
    assert_eq!(
        (report.verdict, report.output.as_str()),
        (
            ProbeOutcome::Errored,
            r#"strconv.Atoi: parsing "web": invalid syntax"#
        )
    );
}
