//! The OCI runtime specification's and image configuration's types.
