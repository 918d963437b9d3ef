//! Tests of `platform`.

use super::*;

fn best(
    host: (&str, &str),
    images: &[(&'static str, &'static str)],
) -> Option<(&'static str, &'static str)> {
    let host = Platform::new("linux", host.0, host.1);
    let fit = |(architecture, variant): &(&str, &str)| {
        host.fit(&Platform::new("linux", architecture, variant))
    };
    let fitting = images.iter().filter_map(|image| Some((fit(image)?, image)));
    fitting.max_by_key(|(fit, _)| *fit).map(|(_, image)| *image)
}

#[test]
fn the_best_image_that_runs_is_chosen() {
    let levels = [
        ("amd64", ""),
        ("amd64", "v2"),
        ("amd64", "v3"),
        ("386", ""),
        ("arm64", "v8"),
    ];
    assert_eq!(best(("amd64", "v1"), &levels), Some(("amd64", "")));
    assert_eq!(best(("amd64", "v2"), &levels), Some(("amd64", "v2")));
    assert_eq!(best(("amd64", "v4"), &levels), Some(("amd64", "v3")));
    assert_eq!(best(("arm64", "v8"), &levels), Some(("arm64", "v8")));
    assert_eq!(
        best(("amd64", "v1"), &[("386", ""), ("arm", "v7")]),
        Some(("386", ""))
    );
    assert_eq!(
        best(("arm64", "v8"), &[("arm", "v6"), ("arm", "v7")]),
        Some(("arm", "v7"))
    );
    assert_eq!(best(("arm64", "v8"), &[("arm64", "v9")]), None);
    assert_eq!(
        best(("amd64", "v1"), &[("amd64", "v3"), ("s390x", "")]),
        None
    );
    assert_eq!(
        best(("riscv64", ""), &[("riscv64", "")]),
        Some(("riscv64", ""))
    );
}

#[test]
fn platforms_are_read_as_they_are_written() {
    for (text, platform) in [
        ("linux/arm64", Platform::new("linux", "arm64", "")),
        ("linux/arm/v7", Platform::new("linux", "arm", "v7")),
        ("linux/x86_64", Platform::new("linux", "amd64", "")),
    ] {
        assert_eq!(text.parse::<Platform>(), Ok(platform));
    }
    for text in [
        "",
        "arm64",
        "linux/",
        "/arm64",
        "linux/arm/v7/x",
        "linux/arm/",
        "a b/c",
    ] {
        assert!(text.parse::<Platform>().is_err(), "{text}");
    }
}

#[test]
fn another_system_never_fits_and_silence_fits_worst() {
    let host = Platform::host();
    assert_eq!(
        host.fit(&Platform {
            os: "windows".into(),
            ..host.clone()
        }),
        None
    );
    assert_eq!(host.fit(&Platform::new("unknown", "unknown", "")), None);
    let silent = host.fit(&Platform::default()).unwrap();
    assert!(host.fit(&host).unwrap() > silent);
    let old = Platform {
        variant: String::new(),
        ..host.clone()
    };
    assert!(host.fit(&old).unwrap() > silent);
}
