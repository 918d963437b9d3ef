//! Redirects: followed on the same host, reported elsewhere.

use rubelet_probes::ProbeOutcome;

use crate::server::{PLENTY, SHORT, Server, answer, prober};

fn redirect(status: &str, location: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\nLocation: {location}\r\nContent-Length: 5\r\n\r\nmoved")
        .into_bytes()
}

/// The request line of each request.
fn lines(server: &Server) -> Vec<String> {
    let requests = server.requests();
    let lines = requests.iter().filter_map(|request| request.lines().next());
    lines.map(str::to_owned).collect()
}

#[tokio::test]
async fn every_redirect_to_the_same_host_is_followed() {
    for status in [
        "301 Moved Permanently",
        "302 Found",
        "303 See Other",
        "307 Temporary Redirect",
        "308 Permanent Redirect",
    ] {
        let server = Server::answering(move |head| match head.split(' ').nth(1) {
            Some("/a/start") => redirect(status, "../b?x=1"),
            Some("/b?x=1") => answer("200 OK", "arrived"),
            _ => answer("404 Not Found", ""),
        })
        .await;
        let report = server.probe("/a/start", PLENTY).await;
        assert_eq!(
            (report.verdict, report.output.as_str()),
            (ProbeOutcome::Passed, "arrived")
        );
        assert_eq!(
            lines(&server),
            ["GET /a/start HTTP/1.1", "GET /b?x=1 HTTP/1.1"]
        );
        let referer = format!("\r\nReferer: http://127.0.0.1:{}/a/start\r\n", server.port);
        assert!(server.requests()[1].contains(&referer));
    }
}

#[tokio::test]
async fn another_port_is_the_same_host() {
    let other = Server::saying(answer("200 OK", "other")).await;
    let location = format!("http://127.0.0.1:{}/", other.port);
    let server = Server::saying(redirect("302 Found", &location)).await;
    let report = server.probe("/", PLENTY).await;
    assert_eq!(
        (report.verdict, report.output.as_str()),
        (ProbeOutcome::Passed, "other")
    );
}

#[tokio::test]
async fn a_redirect_to_another_host_is_not_followed_and_gives_a_warning() {
    for location in [
        "http://example.com/",
        "//example.com/",
        "https://127.0.0.2/",
        "mailto:x",
    ] {
        let server = Server::saying(redirect("302 Found", location)).await;
        let report = server.probe("/", PLENTY).await;
        assert_eq!(
            (report.verdict, report.output.as_str()),
            (
                ProbeOutcome::Warned,
                "Probe terminated redirects, Response body: moved"
            ),
            "{location}"
        );
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_circle_ends_after_ten_requests() {
    let server = Server::saying(redirect("302 Found", "/again")).await;
    let report = server.probe("/", PLENTY).await;
    assert_eq!(
        (report.verdict, report.output.as_str()),
        (
            ProbeOutcome::Failed,
            "Get \"/again\": stopped after 10 redirects"
        )
    );
    assert_eq!(server.requests().len(), 10);
}

#[tokio::test]
async fn a_host_header_stays_unless_the_location_names_a_host() {
    for (absolute, kept) in [(false, true), (true, false)] {
        let server = Server::answering(move |head| {
            if head.starts_with("GET /end") {
                return answer("200 OK", "");
            }
            let address = head
                .split("X-Address: ")
                .nth(1)
                .and_then(|rest| rest.lines().next());
            let address = address.expect("the header");
            let location = if absolute {
                format!("http://{address}/end")
            } else {
                "/end".to_owned()
            };
            redirect("302 Found", &location)
        })
        .await;
        let mut get = server.get("/");
        let address = format!("127.0.0.1:{}", server.port);
        get.headers.push(("Host".into(), "example.com".into()));
        get.headers
            .push(("X-Address".into(), address.as_str().into()));
        let report = prober().http(&get, "127.0.0.1", PLENTY).await;
        assert_eq!(report.verdict, ProbeOutcome::Passed);
        let host = if kept { "example.com" } else { &address };
        let second = &server.requests()[1];
        assert!(
            second.contains(&format!("\r\nHost: {host}\r\n")),
            "{second}"
        );
        assert!(second.contains("\r\nX-Address: "), "{second}");
    }
}

#[tokio::test]
async fn redirects_that_lead_nowhere_are_failures() {
    for (location, expected) in [
        (
            "http://127.0.0.1:port/",
            r#"Get "URL": failed to parse Location header "http://127.0.0.1:port/": parse "http://127.0.0.1:port/": invalid port after host"#,
        ),
        (
            "ftp://127.0.0.1/x",
            r#"Get "ftp://127.0.0.1/x": unsupported protocol scheme "ftp""#,
        ),
    ] {
        let server = Server::saying(redirect("302 Found", location)).await;
        let report = server.probe("/", PLENTY).await;
        let url = format!("http://127.0.0.1:{}/", server.port);
        assert_eq!(report.verdict, ProbeOutcome::Failed);
        assert_eq!(report.output, expected.replace("URL", &url));
    }
}

#[tokio::test]
async fn all_requests_together_have_the_time_of_one() {
    let server = Server::new(|stream| async move {
        tokio::time::sleep(SHORT / 3).await;
        crate::server::answer_one(stream, |_| redirect("302 Found", "/again")).await;
    })
    .await;
    let report = server.probe("/", SHORT).await;
    assert_eq!(report.verdict, ProbeOutcome::TimedOut);
    let expected = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
    assert!(report.output.ends_with(expected), "{}", report.output);
}
