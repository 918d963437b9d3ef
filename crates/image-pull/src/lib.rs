//! Image pulls of pods: pull policies, registry credentials, and the access of pods to present
//! images. This crate calls the image service; `pod-plan` decides about policies. It removes no
//! images.
//!
//! - [`images::ImagePuller`] ensures that the images of a pod are present.
//! - [`pull_rate::PullRate`] limits pulls per second.
//! - [`node_logins::NodeLogins`] provides the registry credentials of the node, from files and
//!   plugins.
//! - [`image_access::ImageAccess`] records, in the kubelet's format, the credentials with which an
//!   image was pulled.
//!
//! ```
//! use rubelet_image_pull::node_logins::NodeLogins;
//!
//! let root_dir = tempfile::tempdir().expect("a directory");
//! let config = r#"{"auths": {"registry.example": {"username": "ci", "password": "s3cret"}}}"#;
//! std::fs::write(root_dir.path().join("config.json"), config).expect("a file");
//! let logins = NodeLogins::of_kubelet(root_dir.path(), None).read();
//! assert_eq!(logins.lookup("registry.example/app:2")[0].username, "ci");
//! assert!(logins.lookup("other.example/app:2").is_empty());
//! ```

pub mod image_access;
pub mod images;
pub mod node_logins;
pub mod pull_rate;
