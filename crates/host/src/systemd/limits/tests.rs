//! Tests of `limits`.

use super::*;

#[test]
fn lists_of_processors_become_bits() {
    for (list, expected) in [
        ("0", Some(vec![1])),
        ("0-2,7", Some(vec![0b1000_0111])),
        ("9", Some(vec![0, 2])),
        ("", None),
        ("x", None),
        ("0-99999", None),
    ] {
        assert_eq!(bits(list), expected, "{list}");
    }
}

#[test]
fn limits_are_reported_in_the_words_of_each_version() {
    let limits = LinuxResources {
        cpu: Some(Cpu {
            shares: Some(1024),
            quota: Some(50_500),
            period: Some(100_000),
            ..Cpu::default()
        }),
        memory: Some(Memory {
            limit: Some(4096),
            swap: Some(8192),
            ..Memory::default()
        }),
        ..LinuxResources::default()
    };
    let v2 = properties(&limits, CgroupLayout::V2);
    let number = |name: &'static str, number| (name, Value::Number64(number));
    assert_eq!(
        v2,
        [
            number("CPUWeight", 100),
            number("CPUQuotaPeriodUSec", 100_000),
            number("CPUQuotaPerSecUSec", 510_000),
            number("MemoryMax", 4096),
            number("MemorySwapMax", 4096),
        ]
    );
    let v1 = properties(&limits, CgroupLayout::V1);
    assert!(v1.contains(&number("CPUShares", 1024)), "{v1:?}");
    assert!(v1.contains(&number("MemoryLimit", 4096)), "{v1:?}");
}

#[test]
fn devices_are_never_wider_than_the_rules_unless_all_are_allowed() {
    let rule = |allow, kind, major, minor| DeviceRule {
        allow,
        kind,
        major,
        minor,
        access: "rw".into(),
    };
    let limits = |devices| LinuxResources {
        devices,
        ..LinuxResources::default()
    };
    let some = limits(vec![
        rule(false, DeviceKind::All, None, None),
        rule(true, DeviceKind::Char, Some(1), Some(3)),
        rule(true, DeviceKind::Char, Some(136), None),
    ]);
    let some = properties(&some, CgroupLayout::V2);
    assert_eq!(some[0], ("DevicePolicy", Value::Text("strict".into())));
    let pair = |name: &str| (name.to_owned(), "rw".to_owned());
    let pairs = vec![pair("/dev/char/1:3"), pair("char-136")];
    assert_eq!(some[1], ("DeviceAllow", Value::Pairs(pairs)));
    let all = properties(
        &limits(vec![rule(true, DeviceKind::All, None, None)]),
        CgroupLayout::V2,
    );
    assert_eq!(all[0], ("DevicePolicy", Value::Text("auto".into())));
}
