//! Addresses of the kubelet's servers.

use crate::error::ConfigError;
use crate::origins::Origin;
use crate::resolve::Resolved;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};

impl Resolved {
    /// Address of the HTTPS server; `None` if it does not run. Without a cluster it runs only if
    /// `enableServer` or `port` was given.
    ///
    /// # Errors
    /// It is configured without a cluster, but authentication or authorization requires an API
    /// server.
    pub fn secure_address(&self) -> Result<Option<SocketAddr>, ConfigError> {
        let config = &self.config;
        let asked = ["enableServer", "port"]
            .iter()
            .any(|field| self.origins.within(field).is_some());
        if !config.enable_server || !(self.joined || asked) {
            return Ok(None);
        }
        if !self.joined {
            let missing = "requires an API server, but --kubeconfig is not set";
            if config.authorization.mode == "Webhook" {
                let advice = "set AlwaysAllow, or disable the HTTPS server";
                return Err(self.problem("authorization.mode", &format!("{missing}; {advice}")));
            }
            let tokens = "authentication.webhook.enabled";
            if self.origins.within(tokens).is_some() && config.authentication.webhook.enabled {
                let advice = "set false, and set clientCAFile";
                return Err(self.problem(tokens, &format!("{missing}; {advice}")));
            }
        }
        Ok(Some(self.address(config.port)))
    }

    /// Address of the server without authentication; `None` if it does not run.
    #[must_use]
    pub fn read_only_address(&self) -> Option<SocketAddr> {
        let port = self.config.read_only_port;
        (port != 0).then(|| self.address(port))
    }

    fn address(&self, port: i32) -> SocketAddr {
        let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let address = self.config.address.parse().unwrap_or(any);
        SocketAddr::new(address, u16::try_from(port).unwrap_or_default())
    }

    fn problem(&self, field: &str, message: &str) -> ConfigError {
        let origin = self
            .origins
            .within(field)
            .map_or(Origin::Default, |(_, origin)| origin.clone());
        ConfigError {
            origin,
            position: None,
            field: Some(field.to_owned()),
            message: message.to_owned(),
            snippet: None,
        }
    }
}
