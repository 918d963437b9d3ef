//! Tests of `capabilities`.

use super::*;
use crate::{Dns, PortMapping, Protocol};

fn request() -> NetworkRequest {
    NetworkRequest {
        sandbox: "s1".to_owned(),
        pod_name: "web".to_owned(),
        pod_namespace: "default".to_owned(),
        pod_uid: "u1".to_owned(),
        ..NetworkRequest::default()
    }
}

#[test]
fn arguments_name_the_pod() {
    assert_eq!(
        joined(&args(&request()).unwrap()),
        "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web;K8S_POD_INFRA_CONTAINER_ID=s1;K8S_POD_UID=u1"
    );
}

#[test]
fn a_name_adds_no_arguments() {
    for name in ["a;IP=10.0.0.1", "a=b", "a\0b", "a\nb"] {
        let mut request = request();
        request.pod_name = name.to_owned();
        assert!(
            args(&request)
                .unwrap_err()
                .to_string()
                .contains("K8S_POD_NAME")
        );
    }
}

#[test]
fn values_have_the_form_of_the_conventions() {
    let mut request = request();
    assert_eq!(values(&request, &[]).unwrap(), Map::new());
    request.port_mappings = vec![PortMapping {
        protocol: Protocol::Udp,
        container_port: 53,
        host_port: 5353,
        host_ip: "127.0.0.1".parse().ok(),
    }];
    request.dns = Dns {
        servers: vec!["192.0.2.53".to_owned()],
        ..Dns::default()
    };
    request.cgroup_parent = "/kubepods/pod1".to_owned();
    request.annotations.insert(
        "kubernetes.io/ingress-bandwidth".to_owned(),
        "10M".to_owned(),
    );
    let cidrs = ["10.1.0.0/24".parse().unwrap(), "fd00::/64".parse().unwrap()];
    let found = Value::Object(values(&request, &cidrs).unwrap());
    assert_eq!(
        found,
        json!({
            "portMappings": [{"hostPort": 5353, "containerPort": 53, "protocol": "udp", "hostIP": "127.0.0.1"}],
            "bandwidth": {"ingressRate": 10_000_000, "ingressBurst": i32::MAX},
            "ipRanges": [[{"subnet": "10.1.0.0/24"}], [{"subnet": "fd00::/64"}]],
            "dns": {"servers": ["192.0.2.53"], "searches": [], "options": []},
            "cgroupPath": "/kubepods/pod1",
            "io.kubernetes.cri.pod-annotations": {"kubernetes.io/ingress-bandwidth": "10M"},
        })
    );
}

#[test]
fn amounts_that_make_no_sense_are_refused() {
    for (text, wanted) in [
        ("1k", Some(1000)),
        ("2Mi", Some(2 << 20)),
        ("64000", Some(64000)),
    ] {
        assert_eq!(bits(text), wanted);
    }
    for text in ["", "fast", "1x", "1.5M", "-1M", "99999999999999999999"] {
        assert_eq!(bits(text), None, "{text}");
    }
    let mut request = request();
    request
        .annotations
        .insert("kubernetes.io/egress-bandwidth".to_owned(), "1".to_owned());
    let why = values(&request, &[]).unwrap_err();
    assert!(
        why.to_string().contains("kubernetes.io/egress-bandwidth"),
        "{why}"
    );
}
