//! Over real sockets.

use std::time::Duration;

use rubelet_api::probe::{GrpcCheck, HttpGet, ProbeHandler, TargetPort, TcpSocket};
use tokio::net::TcpListener;

use crate::{NetProbe as _, ProbeOutcome, Prober};

#[tokio::test]
async fn the_network_is_asked_in_the_way_of_the_probe() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let open = listener.local_addr().unwrap().port();
    let closed = {
        let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
        gone.local_addr().unwrap().port()
    };
    let tcp = |port| ProbeHandler::Tcp(TcpSocket { host: None, port });
    let refused = format!("dial tcp 127.0.0.1:{closed}: connect: connection refused");
    let get = HttpGet {
        host: None,
        port: TargetPort::Number(closed),
        path: "/".into(),
        https: false,
        headers: Vec::new(),
    };
    let check = GrpcCheck {
        port: closed,
        service: "".into(),
    };
    let no_port = "strconv.Atoi: parsing \"web\": invalid syntax";
    for (handler, verdict, output) in [
        (tcp(TargetPort::Number(open)), ProbeOutcome::Passed, ""),
        (
            tcp(TargetPort::Number(closed)),
            ProbeOutcome::Failed,
            &*refused,
        ),
        (
            tcp(TargetPort::Unknown("web".into())),
            ProbeOutcome::Errored,
            no_port,
        ),
        (ProbeHandler::Http(get), ProbeOutcome::Failed, &*refused),
        (
            ProbeHandler::Grpc(check),
            ProbeOutcome::Failed,
            "failed to connect service",
        ),
    ] {
        let report = Prober::new("1.36")
            .probe(&handler, "127.0.0.1", Duration::from_millis(700))
            .await;
        assert_eq!(report.verdict, verdict, "{handler:?}: {report:?}");
        assert!(report.output.contains(output), "{handler:?}: {report:?}");
    }
}
