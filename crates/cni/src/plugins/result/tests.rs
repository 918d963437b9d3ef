//! Tests of `result`.

use super::*;
use serde_json::json;

#[test]
fn addresses_of_the_pods_own_interface_count() {
    let result = json!({
        "cniVersion": "1.0.0",
        "interfaces": [
            {"name": "cni0", "mac": "a"},
            {"name": "veth12", "mac": "b"},
            {"name": "eth0", "mac": "c", "sandbox": "/run/netns/x"},
            {"name": "net1", "mac": "d", "sandbox": "/run/netns/x"},
        ],
        "ips": [
            {"address": "10.9.0.7/16", "interface": 3},
            {"address": "10.1.0.7/16", "interface": 2},
            {"address": "fd00::7/64", "interface": 2},
        ],
    });
    let found = summary(&result, "eth0");
    assert_eq!(
        found.ips,
        [
            "10.1.0.7".parse::<IpAddr>().unwrap(),
            "fd00::7".parse().unwrap()
        ]
    );
    assert_eq!(found.mac.as_deref(), Some("c"));
    assert_eq!(found.host_interface.as_deref(), Some("veth12"));
}

#[test]
fn results_of_old_plugins_are_understood() {
    let found = summary(
        &json!({"ips": [{"version": "4", "address": "10.1.0.7/16"}]}),
        "eth0",
    );
    assert_eq!(found.ips, ["10.1.0.7".parse::<IpAddr>().unwrap()]);
    let found = summary(
        &json!({"ip4": {"ip": "10.1.0.7/16"}, "ip6": {"ip": "fd00::7/64"}}),
        "eth0",
    );
    assert_eq!(found.ips.len(), 2);
    assert_eq!(summary(&json!({}), "eth0").ips, Vec::<IpAddr>::new());
}

#[test]
fn answers_that_are_no_results_are_reported() {
    assert_eq!(
        parse("a", "1.0.0", b" \n").unwrap(),
        json!({"cniVersion": "1.0.0"})
    );
    assert_eq!(
        parse("a", "1.0.0", b"{}").unwrap(),
        json!({"cniVersion": "1.0.0"})
    );
    assert_eq!(
        parse("a", "1.0.0", br#"{"cniVersion":"0.3.1"}"#).unwrap()["cniVersion"],
        "0.3.1"
    );
    let many = json!({ "ips": vec![json!({"address": "10.1.0.7/16"}); 65] }).to_string();
    let why = parse("a", "1.0.0", many.as_bytes()).unwrap_err();
    assert!(why.to_string().contains("65 addresses"), "{why}");
    let deep = "[".repeat(100_000);
    assert!(parse("a", "1.0.0", deep.as_bytes()).is_err());
    assert!(
        parse("a", "1.0.0", b"[]")
            .unwrap_err()
            .to_string()
            .contains("plugin a")
    );
    assert!(
        parse("a", "1.0.0", b"hello")
            .unwrap_err()
            .to_string()
            .contains("plugin a")
    );
}
