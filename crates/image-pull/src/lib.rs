//! Images of containers: whether one must be pulled, with which credentials, and which pods may use it once it is there.
//! It makes the calls; what the policies say is decided in `pod-plan`. It removes no image.
//!
//! - [`images::ImagePuller`] makes sure that the images of a pod are there.
//! - [`node_logins::NodeLogins`] has the registry logins of the node: files, and plugins.
//! - [`image_access::ImageAccess`] keeps, in the kubelet's format, with whose credentials an image was pulled.
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
