//! The broken manifests that the tests on a running node use give the messages they promise.

use rubelet_api::{manifest::decode_bytes, parse::parse};

use crate::support::context;

/// A broken manifest: its name, its bytes, and the text of its `.expect` file where a comment would
/// spoil it.
struct Broken(&'static str, &'static [u8], Option<&'static str>);

macro_rules! broken {
    ($($name:literal $(, $expect:literal)?;)*) => {
        &[$(Broken(
            $name,
            include_bytes!(concat!("../../../testbed/tests/data/broken/", $name)),
            broken!(@expect $($expect)?),
        )),*]
    };
    (@expect) => { None };
    (@expect $name:literal) => {
        Some(include_str!(concat!("../../../testbed/tests/data/broken/", $name)))
    };
}

const FILES: &[Broken] = broken! {
    "01-tab-indentation.yaml";
    "02-wrong-indentation.yaml";
    "03-unclosed-quote.yaml";
    "04-half-written.yaml", "04-half-written.expect";
    "05-cut-off-json.yaml", "05-cut-off-json.expect";
    "06-binary-junk.yaml", "06-binary-junk.expect";
    "07-zero-bytes.yaml", "07-zero-bytes.expect";
    "08-latin-1-text.yaml", "08-latin-1-text.expect";
    "09-duplicate-key.yaml";
    "10-alias-bomb.yaml";
    "11-unknown-alias.yaml";
    "12-plain-text.yaml";
    "13-deployment.yaml";
    "14-wrong-api-version.yaml";
    "15-missing-kind.yaml";
    "16-list-of-services.yaml";
    "17-unknown-field.yaml";
    "18-field-in-wrong-place.yaml";
    "19-number-for-a-text.yaml";
    "20-text-for-a-number.yaml";
    "21-list-for-a-mapping.yaml";
    "22-no-name.yaml";
    "23-upper-case-name.yaml";
    "24-uid-leads-out.yaml";
    "25-no-containers.yaml";
    "26-no-image.yaml";
    "27-doubled-container.yaml";
    "28-doubled-volume.yaml";
    "29-mount-without-volume.yaml";
    "30-doubled-mount-path.yaml";
    "31-sub-path-leads-out.yaml";
    "32-relative-host-path.yaml";
    "33-bad-quantity.yaml";
    "34-limit-below-request.yaml";
    "35-unknown-resource.yaml";
    "36-port-out-of-range.yaml";
    "37-doubled-host-port.yaml";
    "38-host-network-port-mismatch.yaml";
    "39-bad-restart-policy.yaml";
    "40-negative-grace.yaml";
    "41-dns-without-server.yaml";
    "42-bad-label.yaml";
    "43-unknown-field-path.yaml";
    "44-unknown-capability.yaml";
    "45-privileged-without-escalation.yaml";
    "46-bidirectional-unprivileged.yaml";
    "47-liveness-probe.yaml";
    "48-secret-volume.yaml";
    "49-config-map-variables.yaml";
    "50-service-account.yaml";
    "51-other-operating-system.yaml";
};

#[test]
fn each_broken_file_gives_its_message_and_no_pod() {
    for Broken(name, bytes, expect) in FILES {
        let first_line = || {
            std::str::from_utf8(bytes)
                .ok()?
                .lines()
                .next()?
                .strip_prefix("# expect: ")
        };
        let expect = expect.map(str::trim_end).or_else(first_line).expect(name);
        let file = decode_bytes(bytes);
        assert!(!file.pods.is_empty(), "{name} counts as empty");
        for raw in file.pods {
            let message = match raw {
                Err(error) => error.to_string(),
                Ok(raw) => {
                    let errors = parse(raw, &context()).map(|_| ()).expect_err(name);
                    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
                    errors.join("; ")
                }
            };
            assert!(
                message.contains(expect),
                "{name}\nexpected: {expect}\nfound:    {message}"
            );
            assert!(
                message.starts_with("line "),
                "{name} has no line: {message}"
            );
        }
    }
}
