//! Names of images: normal forms and invalid names.

use proptest::prelude::*;

use super::*;

const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

#[test]
fn short_names_are_spelled_out() {
    for (text, full) in [
        ("busybox", "docker.io/library/busybox:latest"),
        ("busybox:1.36", "docker.io/library/busybox:1.36"),
        ("me/app", "docker.io/me/app:latest"),
        ("docker.io/busybox", "docker.io/library/busybox:latest"),
        (
            "index.docker.io/busybox",
            "docker.io/library/busybox:latest",
        ),
        ("localhost/app", "localhost/app:latest"),
        ("localhost:5000/app:v1", "localhost:5000/app:v1"),
        ("r.test/a/b/c", "r.test/a/b/c:latest"),
        ("[::1]:5000/app", "[::1]:5000/app:latest"),
        ("UPPER/app", "UPPER/app:latest"),
        (
            "r.test:80/a__b/c--d.e_f:X_y.Z-1",
            "r.test:80/a__b/c--d.e_f:X_y.Z-1",
        ),
    ] {
        assert_eq!(text.parse::<Reference>().unwrap().to_string(), full);
    }
}

#[test]
fn a_digest_needs_no_tag_and_may_have_one() {
    let reference: Reference = format!("busybox@{DIGEST}").parse().unwrap();
    assert_eq!(reference.tag(), None);
    assert_eq!(reference.digest().unwrap().to_string(), DIGEST);
    let reference: Reference = format!("r.test/a:b@{DIGEST}").parse().unwrap();
    assert_eq!(reference.tagged().unwrap(), "r.test/a:b");
    assert_eq!(
        reference.at(reference.digest().unwrap()),
        format!("r.test/a@{DIGEST}")
    );
}

#[test]
fn the_default_registry_has_its_api_elsewhere() {
    let reference: Reference = "busybox".parse().unwrap();
    assert_eq!(reference.registry(), "docker.io");
    assert_ne!(reference.api_host(), reference.registry());
    let reference: Reference = "r.test:1/busybox".parse().unwrap();
    assert_eq!(reference.api_host(), "r.test:1");
}

#[test]
fn an_invalid_name_is_refused() {
    let long = format!("r.test/{}", "a".repeat(250));
    let long_tag = format!("a:{}", "b".repeat(129));
    let identifier = &DIGEST[7..];
    for text in [
        "",
        ":tag",
        "a:",
        "a b",
        "Upper",
        "r.test/Upper",
        "a//b",
        "/a",
        "a/",
        "-a",
        "a-",
        "a..b",
        "a___b",
        "a._b",
        "a@",
        "a@sha256:12",
        "a:b:c",
        "r.test:port/a",
        "r.test:0/a",
        ".test/a",
        "r.test/../a",
        "a:.b",
        "[::1/a",
        "[zz]/a",
        "[::1]x/a",
        "é",
        "a\0b",
        "https://r.test/a",
        &long,
        &long_tag,
        identifier,
    ] {
        assert!(text.parse::<Reference>().is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn a_name_spelled_out_means_itself(text in "([a-zA-Z.]{1,8}(:[0-9]{1,4})?/)?[a-z._/-]{1,20}(:[a-zA-Z0-9._-]{1,8})?") {
        if let Ok(reference) = text.parse::<Reference>() {
            let again: Reference = reference.to_string().parse().unwrap();
            prop_assert_eq!(again, reference);
        }
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in ".{0,80}") {
        let _ = text.parse::<Reference>();
    }
}
