//! Files as people write them for containerd, and mistakes in them.

use super::*;

fn read(text: &str) -> Vec<HostSettings> {
    file::parse(text, Path::new("/certs/r.test/hosts.toml")).unwrap()
}

fn urls(hosts: &[HostSettings]) -> Vec<String> {
    let urls = hosts.iter().map(|host| match &host.url {
        Some(url) => {
            let scheme = if url.https { "https" } else { "http" };
            format!("{scheme}://{}{}", url.authority, url.path)
        }
        None => "the registry".to_owned(),
    });
    urls.collect()
}

fn named(path: &str, named_at: &str) -> NamedFile {
    NamedFile {
        path: path.into(),
        named_at: named_at.to_owned(),
    }
}

#[test]
fn hosts_are_asked_in_their_order_and_the_server_last() {
    let hosts = read(
        r#"
server = "registry-1.example.com"
capabilities = []

[host."https://z.test"]
  capabilities = ["pull"]
[host."http://b.test:5000/us/"]
  capabilities = ["pull", "resolve", "push"]
  [host."http://b.test:5000/us/".header]
    x-one = "1"
    x-two = ["2", "3"]
[host."https://a.test/v2/upstream"]
  override_path = true
  dial_timeout = "1.5s"
[host."https://A.test/v2"]
"#,
    );
    assert_eq!(
        urls(&hosts),
        [
            "https://z.test/v2",
            "http://b.test:5000/us/v2",
            "https://a.test/v2/upstream",
            "https://a.test/v2",
            "https://registry-1.example.com/v2",
        ]
    );
    let resolves: Vec<bool> = hosts.iter().map(|host| host.capabilities.resolve).collect();
    assert_eq!(resolves, [false, true, true, true, true]);
    let two: Vec<_> = hosts[1].headers.get_all("x-two").iter().collect();
    assert_eq!(two, ["2", "3"]);
    assert_eq!(hosts[1].headers["x-one"], "1");
    assert_eq!(hosts[2].dial_timeout, Some(Duration::from_millis(1500)));
}

#[test]
fn without_a_server_the_registry_itself_is_the_last_one() {
    let hosts = read("skip_verify = true\n[host.'mirror.test']\nskip_verify = false");
    assert_eq!(urls(&hosts), ["https://mirror.test/v2", "the registry"]);
    assert_eq!(hosts[0].skip_verify, Some(false));
    assert_eq!(hosts[1].skip_verify, Some(true));
}

#[test]
fn certificates_are_named_in_each_form_and_relative_to_the_file() {
    let hosts = read(
        r#"ca = "one.crt"
client = [["c.cert", "/keys/c.key"]]
[host."https://m.test"]
ca = ["/x/one.crt", "two.crt"]
client = "both.pem"
"#,
    );
    let at = "/certs/r.test/hosts.toml";
    let [mirror, server] = &hosts[..] else {
        panic!("{hosts:?}")
    };
    let field = format!("{at}:4: host.\"https://m.test\".ca");
    assert_eq!(
        mirror.authorities,
        [
            named("/x/one.crt", &field),
            named("/certs/r.test/two.crt", &field)
        ]
    );
    let field = format!("{at}:5: host.\"https://m.test\".client");
    let both = named("/certs/r.test/both.pem", &field);
    assert_eq!(mirror.client, Some((both.clone(), both)));
    assert_eq!(
        server.authorities,
        [named("/certs/r.test/one.crt", &format!("{at}:1: ca"))]
    );
    let field = format!("{at}:2: client");
    let pair = (
        named("/certs/r.test/c.cert", &field),
        named("/keys/c.key", &field),
    );
    assert_eq!(server.client, Some(pair));
}

#[test]
fn an_error_names_its_line_and_field() {
    for (text, error_at) in [
        ("server = 7", "1: server: must be a string"),
        (
            "\n[host.\"https://m.test\"]\n  capabilities = [\n    \"fetch\"]",
            "3: host.\"https://m.test\".capabilities: unknown capability \"fetch\"; use pull, \
             resolve, push or referrers",
        ),
        (
            "[host.\"https://m.test\"]\nserver = \"https://r.test\"",
            "2: host.\"https://m.test\".server: must stand above the first [host.…], where it is \
             the file's server",
        ),
        (
            "mirrors = []",
            "1: mirrors: unknown field; expected server, host, capabilities, ca, client, \
             skip_verify, header, override_path or dial_timeout",
        ),
        (
            "dial_timeout = \"0s\"",
            "1: dial_timeout: must be more than 0s",
        ),
        (
            "skip_verify = \"yes\"",
            "1: skip_verify: must be true or false",
        ),
        ("\nca = [1]", "2: ca: must be a string"),
        (
            "client = [\"a\", \"b\"]",
            "1: client: has several certificates, but only one client certificate is supported",
        ),
        (
            "[header]\n\"a b\" = \"c\"",
            "2: header.a b: is not a valid header name",
        ),
        (
            "[host.\"ftp://m.test\"]",
            "1: host.\"ftp://m.test\": \"ftp://m.test\" is not the URL of a registry host",
        ),
        (
            "server = \"https://u:p@r.test\"",
            "1: server: \"https://u:p@r.test\" is not the URL of a registry host",
        ),
    ] {
        let error = file::parse(text, Path::new("/c/hosts.toml")).unwrap_err();
        assert_eq!(error.to_string(), format!("/c/hosts.toml:{error_at}"));
    }
    let error = file::parse("server = \n", Path::new("/c/hosts.toml")).unwrap_err();
    let error = error.to_string();
    assert!(error.starts_with("/c/hosts.toml:1: "), "{error}");
    assert!(!error.contains('\n'), "{error}");
}

#[test]
fn a_registrys_directory_is_found_by_its_names_and_then_that_for_all() {
    let dir = crate::test_image::directory();
    let roots = [dir.path().join("first"), dir.path().join("second")];
    let found = |registry: &str| {
        let hosts = of_registry(&roots, registry).unwrap();
        hosts.map(|hosts| urls(&hosts)[0].clone())
    };
    let write = |directory: &str| {
        let directory = dir.path().join(directory);
        fs::create_dir_all(&directory).unwrap();
        let server = directory.file_name().unwrap().to_string_lossy();
        let server = server.replace(['_', ':'], "-");
        fs::write(
            directory.join("hosts.toml"),
            format!("server = \"x{server}\""),
        )
        .unwrap();
    };
    assert_eq!(found("r.test:5000"), None);
    for (directory, server) in [
        ("second/_default", "https://x-default/v2"),
        ("second/r.test:5000", "https://xr.test-5000/v2"),
        ("second/r.test_5000_", "https://xr.test-5000-/v2"),
        ("first/_default", "https://x-default/v2"),
    ] {
        write(directory);
        assert_eq!(found("r.test:5000").as_deref(), Some(server));
    }
    assert_eq!(found("other.test").as_deref(), Some("https://x-default/v2"));
}

#[test]
fn a_directory_without_a_file_has_certificates_as_docker_keeps_them() {
    let dir = crate::test_image::directory();
    let directory = dir.path().join("r.test");
    fs::create_dir_all(&directory).unwrap();
    for name in ["ca.crt", "me.cert", "me.key", "README"] {
        fs::write(directory.join(name), "").unwrap();
    }
    let roots = [dir.path().to_owned()];
    let hosts = of_registry(&roots, "r.test").unwrap().unwrap();
    let here = |name: &str| named(directory.join(name).to_str().unwrap(), "");
    let expected = HostSettings {
        authorities: vec![here("ca.crt")],
        client: Some((here("me.cert"), here("me.key"))),
        ..HostSettings::default()
    };
    assert_eq!(hosts, [expected]);
}
