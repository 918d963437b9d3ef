//! The kubelet's HTTPS port: its access control and its certificate.

use std::{
    future::Future,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, anyhow};
use rubelet_audit::AuditLog;
use rubelet_base::ErrorChain;
use rubelet_cluster::{
    auth::{AccessReviews, TokenReviews},
    node::NodeView as ClusterNode,
};
use rubelet_config::{Flags, Resolved};
use rubelet_http_core::user::{AlwaysAllow, Authenticator, Authorizer};
use rubelet_kube::{
    Client,
    certificates::{
        CertificateHooks, CertificateNotice, ClusterServing, ServingCert, ServingNames,
    },
    clock::WallClock,
};
use rubelet_kubelet_api::{
    Access, ClientCa, EndpointOptions, SecureParts, TlsSettings, bind_port, serve_secure,
};
use rubelet_node_state::clock::Clock;
use rubelet_server::NodeView;
use tokio::{net::TcpListener, sync::watch};
use tracing::{info, warn};

use super::{node::Node, observe::CountRequests};

/// The port, open and not served yet.
pub(super) struct KubeletPort {
    listener: TcpListener,
    tls: TlsSettings,
    client_ca: Option<Arc<ClientCa>>,
    view: Arc<dyn NodeView>,
    observer: Arc<CountRequests>,
    audit: Option<Arc<AuditLog>>,
    node_name: Arc<str>,
    stopped: watch::Receiver<bool>,
}

/// The port before its content exists: an invalid configuration and a port in use end the agent at
/// once.
pub(super) struct OpenPort {
    listener: TcpListener,
    tls: TlsSettings,
    client_ca: Option<Arc<ClientCa>>,
}

/// Opens the port, if it is configured.
pub(super) async fn open(resolved: &Resolved) -> anyhow::Result<Option<OpenPort>> {
    let config = &resolved.config;
    let Some(address) = resolved.secure_address()? else {
        return Ok(None);
    };
    let curves: Vec<u16> = config
        .tls_curve_preferences
        .iter()
        .filter_map(|number| u16::try_from(*number).ok())
        .collect();
    let tls = TlsSettings::new(&config.tls_min_version, &config.tls_cipher_suites, &curves)?;
    for note in &tls.notes {
        warn!("{note}");
    }
    let file = &config.authentication.x509.client_ca_file;
    let client_ca = match file.as_str() {
        "" => None,
        file => {
            let ca = ClientCa::load(Path::new(file)).await;
            Some(Arc::new(ca.map_err(|error| {
                anyhow!("authentication.x509.clientCAFile: {}", ErrorChain(&error))
            })?))
        }
    };
    Ok(Some(OpenPort {
        listener: bind_port(address).await?,
        tls,
        client_ca,
    }))
}

impl OpenPort {
    /// Adds the content that it serves.
    pub(super) fn with_view(
        self,
        view: Arc<dyn NodeView>,
        observer: Arc<CountRequests>,
        audit: Option<Arc<AuditLog>>,
        node: &Node,
        stopped: watch::Receiver<bool>,
    ) -> KubeletPort {
        KubeletPort {
            listener: self.listener,
            tls: self.tls,
            client_ca: self.client_ca,
            view,
            observer,
            audit,
            node_name: Arc::clone(&node.name),
            stopped,
        }
    }
}

impl KubeletPort {
    /// Its number, also if the kernel chose it.
    pub(super) fn number(&self) -> u16 {
        self.listener.local_addr().map_or(0, |at| at.port())
    }

    /// Serves the port of a node of a cluster, until the agent stops.
    ///
    /// # Errors
    /// There is no server certificate.
    pub(super) async fn serve(
        self,
        client: &Client,
        resolved: &Resolved,
        node: watch::Receiver<Arc<ClusterNode>>,
        cert_dir: &Path,
        clock: &Clock,
    ) -> anyhow::Result<impl Future<Output = ()> + Send + use<>> {
        let config = &resolved.config;
        let webhook = &config.authentication.webhook;
        let authenticator = webhook.enabled.then(|| {
            Arc::new(TokenReviews::new(client, webhook.cache_ttl)) as Arc<dyn Authenticator>
        });
        let ttl = &config.authorization.webhook;
        let authorizer: Arc<dyn Authorizer> = match config.authorization.mode.as_str() {
            "AlwaysAllow" => Arc::new(AlwaysAllow),
            _ => Arc::new(AccessReviews::new(
                client,
                ttl.cache_authorized_ttl,
                ttl.cache_unauthorized_ttl,
            )),
        };
        let files = files(resolved);
        let wall = wall(clock);
        let (certificate, renewed) = if config.server_tls_bootstrap {
            let (names, follow) = names(node);
            let serving = ClusterServing {
                client: client.clone(),
                cert_dir: cert_dir.to_owned(),
                files,
                node_name: Arc::clone(&self.node_name),
                names,
                dns_only: resolved.gates.enabled("AllowDNSOnlyNodeCSR"),
                clock: wall,
                notice: CertificateNotice::new("serving certificate"),
                hooks: self.hooks(),
            };
            let (certificate, task) = serving
                .start()
                .map_err(|error| anyhow!("serverTLSBootstrap: {}", ErrorChain(&error)))?;
            let renewed = async move {
                tokio::select! {
                    () = follow => {}
                    never = task => match never {},
                }
            };
            (certificate, Some(renewed))
        } else {
            (self.certificate(resolved, cert_dir, &wall)?, None)
        };
        let serve = self.with(resolved, clock, certificate, authenticator, authorizer);
        Ok(async move {
            match renewed {
                None => serve.await,
                Some(renewed) => tokio::select! {
                    () = serve => {}
                    () = renewed => {}
                },
            }
        })
    }

    /// Serves the port of a node that is part of no cluster, until the agent stops.
    ///
    /// # Errors
    /// There is no server certificate.
    pub(super) fn serve_alone(
        self,
        flags: &Flags,
        resolved: &Resolved,
        clock: &Clock,
    ) -> anyhow::Result<impl Future<Output = ()> + Send + use<>> {
        let cert_dir = PathBuf::from(flags.cert_dir());
        let certificate = self.certificate(resolved, &cert_dir, &wall(clock))?;
        Ok(self.with(resolved, clock, certificate, None, Arc::new(AlwaysAllow)))
    }

    /// Counts renewals of the port's certificate.
    fn hooks(&self) -> CertificateHooks {
        let metrics = self.observer.metrics();
        let (failed, rotated) = (Arc::clone(metrics), Arc::clone(metrics));
        CertificateHooks {
            failed: Arc::new(move || failed.api.server_renew_errors.inc()),
            rotated: Arc::new(move |lived| rotated.api.server_rotated(lived)),
        }
    }

    fn certificate(
        &self,
        resolved: &Resolved,
        cert_dir: &Path,
        wall: &WallClock,
    ) -> anyhow::Result<Arc<ServingCert>> {
        if let Some((certificate, key)) = files(resolved) {
            let reload = resolved.gates.enabled("ReloadKubeletServerCertificateFile");
            return ServingCert::from_files(&certificate, &key, reload)
                .map_err(|error| anyhow!("tlsCertFile: {}", ErrorChain(&error)));
        }
        ServingCert::made_here(cert_dir, &self.node_name, wall)
            .map_err(|error| anyhow!("{}", ErrorChain(&error)))
            .context("cannot create a certificate for the HTTPS server")
    }

    fn with(
        self,
        resolved: &Resolved,
        clock: &Clock,
        certificate: Arc<ServingCert>,
        authenticator: Option<Arc<dyn Authenticator>>,
        authorizer: Arc<dyn Authorizer>,
    ) -> impl Future<Output = ()> + Send + use<> {
        let config = &resolved.config;
        let (shown, wall) = (Arc::clone(&certificate), wall(clock));
        self.observer
            .metrics()
            .api
            .set_server_ttl(move || shown.ttl_seconds(wall()));
        let parts = SecureParts {
            tls: self.tls,
            certificate,
            access: Access {
                client_ca: self.client_ca,
                anonymous: config.authentication.anonymous.enabled,
                authenticator,
                authorizer,
                node: self.node_name,
                fine_grained: resolved.gates.enabled("KubeletFineGrainedAuthz"),
            },
            options: EndpointOptions {
                debugging_handlers: config.enable_debugging_handlers,
                system_log_handler: config.enable_system_log_handler,
                profiling_handler: config.enable_profiling_handler,
                debug_flags_handler: config.enable_debug_flags_handler,
                split_log_streams: resolved.gates.enabled("PodLogsQuerySplitStreams"),
            },
            observer: self.observer,
            audit: self.audit,
        };
        if let Ok(address) = self.listener.local_addr() {
            info!(%address, "Serving the kubelet API");
        }
        let until = super::until(self.stopped);
        serve_secure(self.listener, self.view, parts, until)
    }
}

/// `tlsCertFile` and `tlsPrivateKeyFile`.
fn files(resolved: &Resolved) -> Option<(PathBuf, PathBuf)> {
    let config = &resolved.config;
    let (certificate, key) = (&config.tls_cert_file, &config.tls_private_key_file);
    let given = !certificate.is_empty() && !key.is_empty();
    given.then(|| (certificate.into(), key.into()))
}

fn wall(clock: &Clock) -> WallClock {
    let clock = clock.clone();
    Arc::new(move || clock.now())
}

/// The node's names in a certificate, as its addresses change.
fn names(
    mut node: watch::Receiver<Arc<ClusterNode>>,
) -> (
    watch::Receiver<ServingNames>,
    impl Future<Output = ()> + Send,
) {
    let of = |node: &ClusterNode| {
        let addresses = node.addresses.iter();
        ServingNames::of_node(addresses.map(|one| (&*one.kind, &*one.address)))
    };
    let (sender, receiver) = watch::channel(of(&node.borrow_and_update()));
    let follow = async move {
        while node.changed().await.is_ok() {
            let now = of(&node.borrow_and_update());
            sender.send_if_modified(|before| {
                let changed = *before != now;
                *before = now;
                changed
            });
        }
        std::future::pending::<()>().await;
    };
    (receiver, follow)
}
