//! Tests of `key`.

use super::{CertificatePurpose, NodeKey};
use crate::certificates::pem::section;
use crate::certificates::rules::{CertificateTemplate, ServingNames};
use rustls::pki_types::CertificateSigningRequestDer;
use rustls::pki_types::pem::PemObject as _;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer as _;

#[test]
fn a_request_says_who_the_node_is() {
    let key = NodeKey::generate().unwrap();
    let names = ServingNames::of_node([("Hostname", "a"), ("InternalIP", "10.0.0.1")]);
    for (wanted, extensions) in [
        (CertificateTemplate::node("a"), 0),
        (CertificateTemplate::node("a").with(&names), 1),
    ] {
        let pem = key.request(&wanted).unwrap();
        let der = CertificateSigningRequestDer::from_pem_slice(pem.as_bytes()).unwrap();
        let (_, request) = X509CertificationRequest::from_der(&der).unwrap();
        let info = &request.certification_request_info;
        assert_eq!(info.subject.to_string(), "O=system:nodes, CN=system:node:a");
        assert_eq!(info.subject_pki.raw, key.public());
        let found = request.requested_extensions().map_or(0, Iterator::count);
        assert_eq!(found, extensions);
    }
}

#[test]
fn the_name_follows_from_the_key_and_the_subject() {
    let key = NodeKey::generate().unwrap();
    let again = NodeKey::from_pem(key.pem().as_bytes()).unwrap();
    let name = key.request_name(&CertificateTemplate::node("a"), CertificatePurpose::Client);
    assert!(name.starts_with("node-csr-") && name.len() == 52, "{name}");
    assert_eq!(
        again.request_name(&CertificateTemplate::node("a"), CertificatePurpose::Client),
        name
    );
    let other = NodeKey::generate().unwrap();
    for different in [
        key.request_name(&CertificateTemplate::node("b"), CertificatePurpose::Client),
        key.request_name(&CertificateTemplate::node("a"), CertificatePurpose::Serving),
        other.request_name(&CertificateTemplate::node("a"), CertificatePurpose::Client),
    ] {
        assert_ne!(different, name);
    }
}

#[test]
fn a_key_that_a_kubelet_left_is_used() {
    let key = NodeKey::generate().unwrap();
    let der = key.der();
    let pkcs8 = der.secret_der();
    // PKCS#8 holds the form that Go writes: version 1, and 32 bytes of key.
    let mark = [0x02, 0x01, 0x01, 0x04, 0x20];
    let at = pkcs8.windows(5).position(|bytes| bytes == mark).unwrap() - 2;
    let pem = section("EC PRIVATE KEY", &pkcs8[at..]);
    let left = NodeKey::from_pem(pem.as_bytes()).unwrap();
    assert_eq!(left.public(), key.public());
    let name = |key: &NodeKey| {
        key.request_name(&CertificateTemplate::node("a"), CertificatePurpose::Client)
    };
    assert_eq!(name(&left), name(&key));
    assert!(left.request(&CertificateTemplate::node("a")).is_ok());
    assert_eq!(left.pem(), pem);
}

#[test]
fn the_usages_are_upstreams() {
    let key = NodeKey::generate().unwrap();
    assert_eq!(
        key.usages(CertificatePurpose::Client),
        ["digital signature", "client auth"]
    );
    assert_eq!(
        CertificatePurpose::Serving.usages(true),
        ["digital signature", "server auth", "key encipherment"]
    );
}

#[test]
fn the_key_is_not_shown() {
    let key = NodeKey::generate().unwrap();
    assert_eq!(format!("{key:?}"), "NodeKey");
}
