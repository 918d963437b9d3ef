//! The image service over the connection.

use rubelet_cri::{CriResult, v1};

rubelet_cri::image_methods! { rpcs! ImageService through images {} }
