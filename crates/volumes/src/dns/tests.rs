//! Tables of policies, files and limits.

use rubelet_api::network::DnsConfig;

use super::*;
use crate::test_support::pod;

const HOST: &str = "\
# a comment
  # another
nameserver 192.0.2.1
nameserver 192.0.2.2 ignored
search old.example
search example.com. corp.example .
options ndots:1 rotate
options ndots:2
sortlist 1.2.3.4
";

fn texts(list: &[&str]) -> Vec<Box<str>> {
    list.iter().map(|&text| text.into()).collect()
}

fn cluster() -> Vec<String> {
    vec!["10.96.0.10".to_owned()]
}

fn inputs<'a>(host: Option<&'a str>, cluster_dns: &'a [String]) -> DnsInputs<'a> {
    DnsInputs {
        host_resolv_conf: host,
        cluster_dns,
        cluster_domain: "cluster.local",
        node_ips: &[],
    }
}

const IN_CLUSTER: &str = "10.96.0.10 | default.svc.cluster.local svc.cluster.local cluster.local example.com \
     corp.example | ndots:5";
const AS_HOST: &str = "192.0.2.1 192.0.2.2 | example.com corp.example | ndots:2 rotate";

fn show(dns: &PodDns) -> String {
    let DnsSettings {
        servers,
        searches,
        options,
    } = &dns.settings;
    format!(
        "{} | {} | {}",
        servers.join(" "),
        searches.join(" "),
        options.join(" ")
    )
}

#[test]
fn each_policy_takes_its_source() {
    use DnsPolicy::{ClusterFirst, ClusterFirstWithHostNet, Default, None};
    for (policy, host_network, expected) in [
        (ClusterFirst, false, IN_CLUSTER),
        (ClusterFirst, true, AS_HOST),
        (ClusterFirstWithHostNet, false, IN_CLUSTER),
        (ClusterFirstWithHostNet, true, IN_CLUSTER),
        (Default, false, AS_HOST),
        (None, false, " |  | "),
    ] {
        let mut pod = pod();
        pod.spec.dns_policy = policy;
        pod.spec.host_network = host_network;
        let dns = pod_dns(&pod, &inputs(Some(HOST), &cluster())).unwrap();
        assert_eq!(show(&dns), expected, "{policy:?} {host_network}");
        assert_eq!(dns.warnings, []);
    }
}

#[test]
fn without_a_cluster_dns_the_host_stands_in_and_an_event_tells() {
    let pod = pod();
    let dns = pod_dns(&pod, &inputs(Some(HOST), &[])).unwrap();
    assert_eq!(show(&dns), AS_HOST);
    let [warning] = &dns.warnings[..] else {
        panic!("{:?}", dns.warnings)
    };
    assert_eq!(warning.reason(), "MissingClusterDNS");
    let text = "kubelet does not have ClusterDNS IP configured and cannot create Pod using \
                \"ClusterFirst\" policy. Falling back to \"Default\" policy.";
    assert_eq!(warning.message(None), text);
    assert_eq!(
        warning.message(Some(&pod)),
        format!("pod: \"web_default(u1)\". {text}")
    );
}

#[test]
fn an_empty_setting_means_the_local_machine() {
    let ips: [IpAddr; 2] = ["10.0.0.1".parse().unwrap(), "fd00::1".parse().unwrap()];
    let mut pod = pod();
    pod.spec.dns_policy = DnsPolicy::Default;
    for (node_ips, expected) in [
        (&ips[..], "127.0.0.1 ::1 | . | "),
        (&[], "127.0.0.1 | . | "),
    ] {
        let inputs = DnsInputs {
            node_ips,
            ..inputs(None, &[])
        };
        assert_eq!(show(&pod_dns(&pod, &inputs).unwrap()), expected);
    }
    pod.spec.dns_policy = DnsPolicy::ClusterFirst;
    let dns = pod_dns(&pod, &inputs(None, &cluster())).unwrap();
    let expected =
        "10.96.0.10 | default.svc.cluster.local svc.cluster.local cluster.local | ndots:5";
    assert_eq!(show(&dns), expected);
}

#[test]
fn without_a_cluster_domain_only_the_hosts_searches_count() {
    let cluster = cluster();
    let inputs = DnsInputs {
        cluster_domain: "",
        ..inputs(Some(HOST), &cluster)
    };
    let dns = pod_dns(&pod(), &inputs).unwrap();
    assert_eq!(
        show(&dns),
        "10.96.0.10 | example.com corp.example | ndots:5"
    );
}

#[test]
fn a_pods_own_settings_are_added_and_doubles_dropped() {
    let mut pod = pod();
    pod.spec.dns_config = DnsConfig {
        nameservers: texts(&["10.96.0.10", "1.1.1.1"]),
        searches: texts(&["corp.example", "own.example"]),
        options: vec![
            ("ndots".into(), Some("2".into())),
            ("edns0".into(), None),
            ("debug".into(), Some("".into())),
        ],
    };
    let dns = pod_dns(&pod, &inputs(Some("search corp.example"), &cluster())).unwrap();
    let expected = "10.96.0.10 1.1.1.1 | default.svc.cluster.local svc.cluster.local \
                    cluster.local corp.example own.example | ndots:2 edns0 debug";
    assert_eq!(show(&dns), expected);
    pod.spec.dns_policy = DnsPolicy::None;
    let dns = pod_dns(&pod, &inputs(Some(HOST), &[])).unwrap();
    let expected = "10.96.0.10 1.1.1.1 | corp.example own.example | ndots:2 edns0 debug";
    assert_eq!(show(&dns), expected);
    assert_eq!(dns.warnings, []);
}

#[test]
fn more_than_three_name_servers_are_cut() {
    let mut pod = pod();
    pod.spec.dns_policy = DnsPolicy::None;
    pod.spec.dns_config.nameservers = texts(&["1.1.1.1", "2.2.2.2", "3.3.3.3", "4.4.4.4"]);
    let dns = pod_dns(&pod, &inputs(None, &[])).unwrap();
    assert_eq!(dns.settings.servers, ["1.1.1.1", "2.2.2.2", "3.3.3.3"]);
    assert_eq!(dns.warnings[0].reason(), "DNSConfigForming");
    let expected = "Nameserver limits were exceeded, some nameservers have been omitted, the \
                    applied nameserver line is: 1.1.1.1 2.2.2.2 3.3.3.3";
    assert_eq!(dns.warnings[0].message(Some(&pod)), expected);
}

#[test]
fn search_domains_are_limited_in_number_length_and_sum() {
    let numbered = |count: usize, length: usize| -> Vec<String> {
        (0..count).map(|n| format!("{n:0length$}")).collect()
    };
    let too_long = vec!["a".to_owned(), "x".repeat(254), "y".repeat(253)];
    for (given, kept) in [
        (numbered(32, 10), 32),
        (numbered(33, 10), 32),
        // 8 * 253 + 7 = 2031, a ninth one exceeds 2048.
        (numbered(8, 253), 8),
        (numbered(9, 253), 8),
        (too_long, 2),
    ] {
        let mut pod = pod();
        pod.spec.dns_policy = DnsPolicy::None;
        pod.spec.dns_config.searches = given.iter().map(|name| name.as_str().into()).collect();
        let dns = pod_dns(&pod, &inputs(None, &[])).unwrap();
        assert_eq!(dns.settings.searches.len(), kept);
        assert_eq!(dns.warnings.len(), usize::from(kept < given.len()));
        for warning in &dns.warnings {
            assert_eq!(warning.reason(), "DNSConfigForming");
            let text = warning.message(Some(&pod));
            let line = dns.settings.searches.join(" ");
            assert!(
                text.ends_with(&format!("the applied search line is: {line}")),
                "{text}"
            );
        }
    }
}

#[test]
fn a_malformed_resolv_conf_is_named_by_its_line() {
    let error = pod_dns(&pod(), &inputs(Some("search a\nnameserver \n"), &[])).unwrap_err();
    let expected = "invalid resolv.conf of the node: line 2 has no nameserver address";
    assert_eq!(error.to_string(), expected);
}
