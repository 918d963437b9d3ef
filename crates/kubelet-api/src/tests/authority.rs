//! A certificate authority, and those it vouches for.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, date_time_ymd,
};
use rustls::{
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
    server::ResolvesServerCert,
    sign::{CertifiedKey, SingleCertAndKey},
};

use crate::crypto::provider;

pub(super) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key.
pub(super) struct Holder {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
}

impl Clone for Holder {
    fn clone(&self) -> Self {
        Self {
            chain: self.chain.clone(),
            key: self.key.clone_key(),
        }
    }
}

impl Authority {
    pub(super) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        Self(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    pub(super) fn pem(&self) -> String {
        self.0.pem()
    }

    pub(super) fn der(&self) -> CertificateDer<'static> {
        self.0.der().clone()
    }

    /// The node's certificate.
    pub(super) fn server(&self) -> Arc<dyn ResolvesServerCert> {
        let params = CertificateParams::new(["node".to_owned()]).unwrap();
        let holder = self.sign(&params);
        let key = provider()
            .key_provider
            .load_private_key(holder.key)
            .unwrap();
        Arc::new(SingleCertAndKey::from(CertifiedKey::new(holder.chain, key)))
    }

    /// The certificate of a user in some groups.
    pub(super) fn client(&self, user: &str, groups: &[&str]) -> Holder {
        self.sign(&client(user, groups))
    }

    /// One whose time is over.
    pub(super) fn expired_client(&self, user: &str) -> Holder {
        let mut params = client(user, &[]);
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
        self.sign(&params)
    }

    /// One whose time has not come.
    pub(super) fn early_client(&self, user: &str) -> Holder {
        let mut params = client(user, &[]);
        params.not_before = date_time_ymd(3000, 1, 1);
        params.not_after = date_time_ymd(3001, 1, 1);
        self.sign(&params)
    }

    /// One that is for servers only.
    pub(super) fn server_as_client(&self, user: &str) -> Holder {
        let mut params = client(user, &[]);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(&params)
    }

    fn sign(&self, params: &CertificateParams) -> Holder {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Holder {
            chain: vec![certificate.der().clone()],
            key: PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
        }
    }
}

fn client(user: &str, groups: &[&str]) -> CertificateParams {
    let mut params = CertificateParams::default();
    let name = &mut params.distinguished_name;
    *name = rcgen::DistinguishedName::new();
    name.push(DnType::CommonName, user);
    for group in groups {
        name.push(DnType::OrganizationName, *group);
    }
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params
}
