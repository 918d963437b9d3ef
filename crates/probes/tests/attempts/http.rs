//! httpGet probes that get an answer.

use std::time::Duration;

use rubelet_api::probe::TargetPort;
use rubelet_probes::{MAX_OUTPUT, ProbeOutcome};

use crate::server::{PLENTY, SHORT, Server, answer, answer_one, closed_port, prober};

#[tokio::test]
async fn the_status_is_the_verdict() {
    const WARNING: &str = "Probe terminated redirects, Response body: well";
    for (status, verdict, output) in [
        ("200 OK", ProbeOutcome::Passed, "well"),
        ("299 Odd", ProbeOutcome::Passed, "well"),
        ("300 Multiple Choices", ProbeOutcome::Warned, WARNING),
        ("302 Found", ProbeOutcome::Warned, WARNING),
        ("399 Odd", ProbeOutcome::Warned, WARNING),
        (
            "400 Bad Request",
            ProbeOutcome::Failed,
            "HTTP probe failed with statuscode: 400",
        ),
        (
            "500 Internal Server Error",
            ProbeOutcome::Failed,
            "HTTP probe failed with statuscode: 500",
        ),
    ] {
        let server = Server::saying(answer(status, "well")).await;
        let report = server.probe("/", PLENTY).await;
        assert_eq!(
            (report.verdict, report.output.as_str()),
            (verdict, output),
            "{status}"
        );
    }
}

#[tokio::test]
async fn a_request_looks_like_the_kubelets() {
    let server = Server::saying(answer("200 OK", "")).await;
    let port = server.port;
    let report = server.probe("/healthz?full=1", PLENTY).await;
    assert_eq!(report.verdict, ProbeOutcome::Passed);
    assert_eq!(
        server.requests(),
        [format!(
            "GET /healthz?full=1 HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\
             User-Agent: kube-probe/1.36\r\nAccept: */*\r\nConnection: close\r\n\r\n"
        )]
    );
}

#[tokio::test]
async fn headers_of_the_probe_replace_the_defaults() {
    let server = Server::saying(answer("200 OK", "")).await;
    let mut get = server.get("/");
    for (name, value) in [
        ("Host", "example.com"),
        ("X-Custom", "1"),
        ("User-Agent", "mine"),
        ("Accept", ""),
    ] {
        get.headers.push((name.into(), value.into()));
    }
    let report = prober().http(&get, "127.0.0.1", PLENTY).await;
    assert_eq!(report.verdict, ProbeOutcome::Passed);
    assert_eq!(
        server.requests(),
        [
            "GET / HTTP/1.1\r\nHost: example.com\r\nX-Custom: 1\r\nUser-Agent: mine\r\n\
          Connection: close\r\n\r\n"
        ]
    );
}

#[tokio::test]
async fn only_ten_kibibytes_of_a_body_are_read() {
    let server = Server::saying(answer("200 OK", &"x".repeat(50_000_000))).await;
    let report = server.probe("/", PLENTY).await;
    assert_eq!(report.verdict, ProbeOutcome::Passed);
    assert_eq!(report.output, "x".repeat(MAX_OUTPUT));
}

#[tokio::test]
async fn a_warning_and_its_body_fit_into_ten_kibibytes() {
    let server = Server::saying(answer("304 Not Modified", "")).await;
    assert_eq!(
        server.probe("/", PLENTY).await.output,
        "Probe terminated redirects, Response body: "
    );
    let server = Server::saying(answer("300 Multiple Choices", &"ü".repeat(MAX_OUTPUT))).await;
    let report = server.probe("/", PLENTY).await;
    assert_eq!(report.verdict, ProbeOutcome::Warned);
    assert!(report.output.len() <= MAX_OUTPUT && report.output.ends_with('ü'));
}

#[tokio::test]
async fn all_forms_of_bodies_are_read() {
    for (form, text) in [
        ("to the end", "HTTP/1.0 200 OK\r\n\r\nwell"),
        (
            "in chunks",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nwe\r\n2\r\nll\r\n0\r\n\r\n",
        ),
        (
            "after an interim answer",
            "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwell",
        ),
        (
            "with a folded header",
            "HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 4\r\n\r\nwell",
        ),
    ] {
        let server = Server::saying(text).await;
        let report = server.probe("/", PLENTY).await;
        assert_eq!(
            (report.verdict, report.output.as_str()),
            (ProbeOutcome::Passed, "well"),
            "{form}"
        );
    }
}

#[tokio::test]
async fn a_server_that_keeps_the_connection_open_delays_no_probe() {
    let server = Server::new(|mut stream| async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let _ = stream.write_all(&answer("200 OK", "well")).await;
        let _ = stream.read_to_end(&mut Vec::new()).await;
        std::future::pending::<()>().await;
    })
    .await;
    let report = server.probe("/", PLENTY).await;
    assert_eq!(report.verdict, ProbeOutcome::Passed);
    assert!(report.latency < PLENTY / 2);
}

#[tokio::test]
async fn a_probe_names_its_own_host_or_asks_the_pod() {
    let server = Server::saying(answer("200 OK", "")).await;
    let mut get = server.get("/");
    for (host, default, verdict, output) in [
        (Some("127.0.0.1"), "192.0.2.1", ProbeOutcome::Passed, ""),
        (Some("localhost"), "192.0.2.1", ProbeOutcome::Passed, ""),
        (None, "127.0.0.1", ProbeOutcome::Passed, ""),
        (None, "", ProbeOutcome::Errored, "the pod has no IP address"),
        (
            Some(""),
            "127.0.0.1",
            ProbeOutcome::Errored,
            "the pod has no IP address",
        ),
    ] {
        get.host = host.map(Into::into);
        let report = prober().http(&get, default, PLENTY).await;
        assert_eq!(
            (report.verdict, report.output.as_str()),
            (verdict, output),
            "{host:?}"
        );
    }
    get.host = Some("nowhere.invalid".into());
    let report = prober().http(&get, "127.0.0.1", PLENTY).await;
    assert_eq!(report.verdict, ProbeOutcome::Failed);
    let port = server.port;
    let beginning =
        format!("Get \"http://nowhere.invalid:{port}/\": dial tcp: lookup nowhere.invalid: ");
    assert!(report.output.starts_with(&beginning), "{}", report.output);
}

#[tokio::test]
async fn ipv6_addresses_are_asked_too() {
    let serve = |stream| answer_one(stream, |head| answer("200 OK", head));
    let Ok(server) = Server::on("[::1]:0", serve).await else {
        rubelet_needs::missing("IPv6 on loopback");
        return;
    };
    let report = prober().http(&server.get("/"), "::1", PLENTY).await;
    assert_eq!(report.verdict, ProbeOutcome::Passed);
    let host = format!("Host: [::1]:{}\r\n", server.port);
    assert!(report.output.contains(&host), "{}", report.output);
}

#[tokio::test]
async fn a_port_without_a_number_says_nothing_of_the_container() {
    let server = Server::saying(answer("200 OK", "")).await;
    for (port, output) in [
        (
            TargetPort::Unknown("web".into()),
            r#"strconv.Atoi: parsing "web": invalid syntax"#,
        ),
        (TargetPort::Number(0), "invalid port number: 0"),
    ] {
        let mut get = server.get("/");
        get.port = port;
        let report = prober().http(&get, "127.0.0.1", PLENTY).await;
        assert_eq!(
            (report.verdict, report.output.as_str()),
            (ProbeOutcome::Errored, output)
        );
    }
}

#[tokio::test]
async fn what_cannot_be_sent_fails_with_its_name() {
    let server = Server::saying(answer("200 OK", "")).await;
    let mut get = server.get("/");
    get.headers.push(("x".into(), "a\nb".into()));
    let report = prober().http(&get, "127.0.0.1", PLENTY).await;
    let expected = format!(
        "Get \"http://127.0.0.1:{}/\": net/http: invalid header field value for \"X\"",
        server.port
    );
    assert_eq!(
        (report.verdict, report.output),
        (ProbeOutcome::Failed, expected)
    );
}

#[tokio::test]
async fn a_closed_port_refuses() {
    let (port, _socket) = closed_port();
    let server = Server::saying(answer("200 OK", "")).await;
    let mut get = server.get("/x");
    get.port = TargetPort::Number(port);
    let report = prober().http(&get, "127.0.0.1", PLENTY).await;
    let expected = format!(
        "Get \"http://127.0.0.1:{port}/x\": dial tcp 127.0.0.1:{port}: connect: connection refused"
    );
    assert_eq!(
        (report.verdict, report.output),
        (ProbeOutcome::Failed, expected)
    );
}

#[tokio::test]
async fn the_latency_is_that_of_the_answer() {
    let server = Server::new(|stream| async move {
        tokio::time::sleep(SHORT).await;
        answer_one(stream, |_| answer("200 OK", "")).await;
    })
    .await;
    let report = server.probe("/", PLENTY).await;
    assert_eq!(report.verdict, ProbeOutcome::Passed);
    assert!(report.latency >= SHORT && report.latency < SHORT + Duration::from_secs(5));
}
