//! A kubeconfig, and the one that a bootstrap makes from it.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use rubelet_kube::kubeconfig::Kubeconfig;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    // What the text names is looked for in a directory that is not there.
    let path = Path::new("/nonexistent/kubeconfig");
    let Ok(config) = Kubeconfig::parse(text, path) else {
        return;
    };
    if let Ok(client) = config.client_config(None) {
        assert!(!client.server.host().is_empty());
        assert_ne!(client.server.port(), 0);
    }
    let (certificate, key) = (Path::new("/pki/client.pem"), Path::new("/pki/client.pem"));
    let Ok(written) = config.with_client_certificate(None, certificate, key) else {
        return;
    };
    let again = Kubeconfig::parse(&written, path).expect("what the agent writes it reads");
    assert!(again.warnings().is_empty(), "{:?}", again.warnings());
    let twice = again.with_client_certificate(None, certificate, key);
    assert_eq!(twice.ok().as_ref(), Some(&written));
    // The new file is for the same server.
    let servers = [&config, &again].map(|config| config.client_config(None).ok());
    if let [Some(one), Some(other)] = servers {
        assert_eq!(one.server.host(), other.server.host());
    }
});
