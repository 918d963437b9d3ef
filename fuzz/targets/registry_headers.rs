//! What a registry says in headers: challenges, and where it redirects to. The first byte chooses.
//!
//! Of the images crate only these modules are compiled in: they are private to it.

#![no_main]

use http::Uri;
use libfuzzer_sys::fuzz_target;
use rubelet_images::PullErrorKind;

#[path = "../../crates/images/src/registry/challenge.rs"]
mod challenge;
#[path = "../../crates/images/src/registry/hop.rs"]
mod hop;
#[expect(dead_code, reason = "hosts are compared here, not asked")]
#[path = "../../crates/images/src/registry/origin.rs"]
mod origin;
#[path = "../../crates/images/src/registry/resolve.rs"]
mod resolve;

use challenge::Challenge;

/// What the modules above need of the crate.
#[derive(Debug)]
pub(crate) struct PullError {
    kind: PullErrorKind,
    message: String,
}

impl PullError {
    fn new(kind: PullErrorKind, message: String) -> Self {
        Self { kind, message }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((choice, rest)) = data.split_first() else {
        return;
    };
    let Ok(text) = std::str::from_utf8(rest) else {
        return;
    };
    match choice % 2 {
        0 => challenges(text),
        _ => redirect(text),
    }
});

fn challenges(header: &str) {
    let found = challenge::parse(header);
    assert!(found.len() <= header.len() / 5 + 1);
    let written: Vec<String> = found.iter().map(write).collect();
    assert_eq!(challenge::parse(&written.join(", ")), found, "{header}");
}

fn write(challenge: &Challenge) -> String {
    match challenge {
        Challenge::Basic => "Basic".to_owned(),
        Challenge::Bearer {
            realm,
            service,
            scope,
        } => {
            let parameters = [
                ("realm", Some(realm)),
                ("service", service.as_ref()),
                ("scope", scope.as_ref()),
            ];
            let parameters = parameters.iter().filter_map(|(name, value)| {
                let value = value.as_ref()?.replace('\\', "\\\\").replace('"', "\\\"");
                Some(format!("{name}=\"{value}\""))
            });
            format!("Bearer {}", parameters.collect::<Vec<_>>().join(","))
        }
    }
}

/// Two lines: the URL that was asked, and the header `Location`.
fn redirect(text: &str) {
    let Some((asked, location)) = text.split_once('\n') else {
        return;
    };
    let Ok((_, here)) = origin::parse(asked, "the address") else {
        return;
    };
    let insecure = |authority: &str| origin::is_loopback(authority);
    let hop = match hop::hop(&here, asked, location, insecure) {
        Ok(hop) => hop,
        Err(error) => {
            assert_eq!(error.kind, PullErrorKind::Refused);
            assert!(error.message.len() < 2000 + asked.len());
            return;
        }
    };
    let next: Uri = hop.url.parse().expect("it was read as a URL");
    // What is judged is what is asked.
    assert_eq!(origin::Origin::of(&next).as_ref(), Some(&hop.origin));
    assert!(!hop.keeps_credentials || hop.origin == here, "{text}");
    let downgrade = here.https && !hop.origin.https;
    assert!(!downgrade || insecure(hop.origin.authority()), "{text}");
    let is_path = location.starts_with('/') && !location.starts_with("//");
    if is_path || location.starts_with('?') {
        assert_eq!(hop.origin, here, "a path leads to the same host");
    }
    // Segments of dots are resolved.
    if is_path
        && !location.contains("/.")
        && let Ok(path) = location.parse::<Uri>()
    {
        assert_eq!(next.path_and_query(), path.path_and_query());
    }
}
