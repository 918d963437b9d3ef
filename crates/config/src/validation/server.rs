//! The kubelet's servers: ports, addresses, TLS, authentication.

use super::{Check, CheckResult, ip_address, one_of, range, violation};

const TLS_VERSIONS: [&str; 5] = [
    "",
    "VersionTLS10",
    "VersionTLS11",
    "VersionTLS12",
    "VersionTLS13",
];

/// Go's names of cipher suites, and two older spellings that Kubernetes keeps.
const CIPHER_SUITES: [&str; 27] = [
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_RSA_WITH_RC4_128_SHA",
];

pub(super) fn validate(check: &Check<'_>) -> CheckResult {
    let config = check.config;
    range("port", config.port, 1, 65_535)?;
    range("readOnlyPort", config.read_only_port, 0, 65_535)?;
    range("healthzPort", config.healthz_port, 0, 65_535)?;
    ip_address("address", &config.address)?;
    ip_address("healthzBindAddress", &config.healthz_bind_address)?;
    tls(check)?;
    one_of(
        "authorization.mode",
        &config.authorization.mode,
        &["AlwaysAllow", "Webhook"],
    )?;
    if config.enable_system_log_query && !config.enable_system_log_handler {
        let message = "needs enableSystemLogHandler to be true".to_owned();
        return violation(["enableSystemLogQuery", "enableSystemLogHandler"], message);
    }
    hidden_metrics(&config.show_hidden_metrics_for_version)
}

fn tls(check: &Check<'_>) -> CheckResult {
    let config = check.config;
    if config.tls_cert_file.is_empty() != config.tls_private_key_file.is_empty() {
        let message = "tlsCertFile and tlsPrivateKeyFile must be given together".to_owned();
        return violation(["tlsCertFile", "tlsPrivateKeyFile"], message);
    }
    if config.server_tls_bootstrap && !check.gates.enabled("RotateKubeletServerCertificate") {
        let message = "needs the feature gate RotateKubeletServerCertificate".to_owned();
        return violation(["serverTLSBootstrap"], message);
    }
    one_of("tlsMinVersion", &config.tls_min_version, &TLS_VERSIONS)?;
    for (index, suite) in config.tls_cipher_suites.iter().enumerate() {
        if !CIPHER_SUITES.contains(&suite.as_str()) {
            let hint = rubelet_yaml::nearest(suite, CIPHER_SUITES)
                .map_or(String::new(), |suite| format!("; did you mean {suite:?}?"));
            let field = format!("tlsCipherSuites[{index}]");
            let message = format!("must be a cipher suite's name in Go, is {suite:?}{hint}");
            return violation([field.as_str()], message);
        }
    }
    for (index, &group) in config.tls_curve_preferences.iter().enumerate() {
        range(&format!("tlsCurvePreferences[{index}]"), group, 1, 65_535)?;
    }
    Ok(())
}

fn hidden_metrics(version: &str) -> CheckResult {
    // Upstream accepts only the minor version before the current one.
    one_of("showHiddenMetricsForVersion", version, &["", "1.35"])
}
